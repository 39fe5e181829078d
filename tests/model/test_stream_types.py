"""What leaves each box: columns, timestamp, grouping, order, lag."""

from __future__ import annotations

import pytest

import penstock as ps
from model import sample_functions
from penstock.model.types import StreamType

MINUTE = 60_000_000


@pytest.fixture
def cars():
    form = ps.csv("in/", "time TIMESTAMP, vid INT, spd INT, seg INT, plate STRING")
    return ps.Network("n").source("cars", form, timestamp="time")


def ddl(stream):
    return stream.schema.ddl()


def test_source(cars):
    assert cars.type == StreamType(cars.schema, "time", (), arrival_order=True, lag=0)


def test_filter_and_drop_change_nothing(cars):
    assert cars.filter("spd < 40").drop(0.5).type == cars.type


def test_map_adds_at_the_end_and_replaces_in_place(cars):
    assert ddl(cars.map(spd="spd * 1.5", fast="spd > 90")) == (
        "time TIMESTAMP, vid INT, spd DOUBLE, seg INT, plate STRING, fast BOOLEAN"
    )


def test_select_is_exact_and_may_rename_the_timestamp(cars):
    chosen = cars.select("vid", when="time")
    assert ddl(chosen) == "vid INT, when TIMESTAMP"
    assert chosen.type.timestamp == "when"
    assert ddl(chosen.tumble("1 minute", n="count(*)")) == "when TIMESTAMP, n BIGINT"


def test_select_without_the_timestamp_stays_stamped(cars):
    assert ddl(cars.select("vid").tumble("1 minute", n="count(*)")) == "time TIMESTAMP, n BIGINT"


def test_apply_keeps_or_replaces(cars):
    assert ddl(cars.select("vid").apply(sample_functions.one, produces="x INT")) == "vid INT, x INT"
    assert ddl(cars.apply(sample_functions.one, produces="x INT", keep=False)) == "x INT"


def test_grouping_holds_through_stateless_boxes_and_ends_in_a_window(cars):
    grouped = cars.group_by("seg", "plate").filter("spd > 0").map(x="spd + 1").drop(0.1)
    assert grouped.type.keys == ("seg", "plate")
    minutes = grouped.tumble("1 minute", n="count(*)", start="window_start()")
    assert ddl(minutes) == "seg INT, plate STRING, time TIMESTAMP, n BIGINT, start TIMESTAMP"
    assert minutes.type.keys == ()


def test_case_is_map_then_group_by(cars):
    kinds = cars.map(kind="CASE WHEN spd > 60 THEN 'fast' ELSE 'slow' END").group_by("kind")
    assert ddl(kinds.tumble("1 minute", n="count(*)")) == "kind STRING, time TIMESTAMP, n BIGINT"


def test_window_function(cars):
    made = cars.group_by("vid").tumble(
        "10 tuples", function=sample_functions.one, produces="x INT", stamp="latest"
    )
    assert ddl(made) == "vid INT, time TIMESTAMP, x INT"


@pytest.mark.parametrize(
    ("build", "lag"),
    [
        (lambda s: s.tumble("1 minute", n="count(*)"), MINUTE),
        (lambda s: s.slide("5 minutes", every="1 minute", n="count(*)"), 5 * MINUTE),
        (lambda s: s.tumble("1 minute", n="count(*)").tumble("2 minutes", n="count(*)"), 3 * MINUTE),
        (lambda s: s.tumble("10 tuples", n="count(*)"), None),
        (lambda s: s.tumble("10 tuples", n="count(*)", stamp="latest"), 0),
        (lambda s: s.resample("1 second", columns="spd", limit="1 minute"), MINUTE),
        (lambda s: s.join(s, within=("1 minute", "3 minutes")), 3 * MINUTE),
        (
            lambda s: s.union(
                s.resample("1 s", columns="spd").select(
                    *s.schema.names[:2], spd="cast(spd as int)", seg="seg", plate="plate"
                )
            ),
            10_000_000,
        ),
        (lambda s: s.latch("1 minute", n="count(*)"), MINUTE),
        (lambda s: s.latch("5 tuples", n="count(*)"), None),
    ],
)
def test_lag(cars, build, lag):
    assert build(cars).type.lag == lag


def test_a_lagging_stream_may_be_kept_and_put_out(cars):
    tens = cars.tumble("10 tuples", n="count(*)")
    tens.connection_point("tens")
    tens.output("out", to=ps.console())


@pytest.mark.parametrize(
    ("build", "ordered"),
    [
        (lambda s: s.filter("spd > 0").map(x="1").group_by("vid"), True),
        (lambda s: s.union(s), False),
        (lambda s: s.tumble("1 minute", n="count(*)"), False),
        (lambda s: s.latch(function=sample_functions.two, produces="vid INT"), True),
        (lambda s: s.latch(function=sample_functions.two, produces="time TIMESTAMP"), False),
        (lambda s: s.connection_point("kept"), False),
    ],
)
def test_arrival_order(cars, build, ordered):
    assert build(cars).type.arrival_order is ordered


def test_join_columns(cars):
    other = cars.select("time", "seg", "spd", car="vid")
    made = cars.select("time", "vid", "spd", "seg").join(other, on=["seg", ("vid", "car")], within="1 minute")
    assert (
        ddl(made) == "time TIMESTAMP, vid INT, spd INT, seg INT, time_right TIMESTAMP, spd_right INT, car INT"
    )


def test_latch_of_several_streams_sees_the_columns_of_all(cars):
    form = ps.csv("calls/", "time TIMESTAMP, vid INT, phone STRING")
    calls = cars.network.source("calls", form, timestamp="time")
    made = ps.latch(
        [cars.group_by("vid"), calls.group_by("vid")],
        function=sample_functions.two,
        reads=["phone", "spd", "input"],
        state="n BIGINT",
        produces="vid INT, n BIGINT",
    )
    assert ddl(made) == "vid INT, n BIGINT"
    assert made.type.timestamp == "time"


def test_group_by_across_streams(cars):
    more = cars.filter("spd > 90")
    assert ps.group_by("vid", cars, more).type.keys == ("vid",)
    assert cars.group_by("vid", also=[more]).node.inputs == ("cars", "filter_1")


def test_resample_makes_numbers_double(cars):
    assert ddl(cars.group_by("vid").resample("1 second", columns=["spd"])) == (
        "time TIMESTAMP, vid INT, spd DOUBLE, seg INT, plate STRING, synthetic BOOLEAN"
    )
