"""What `check` calls sound can run: limits are stated, and refused with a sentence when a box is written."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.engine.contract.ticket import Ticket
from penstock.engine.spark.jobs.forms import Form, form_of
from penstock.engine.spark.layout.plan import NATIVE_DEPTH, lay_out
from penstock.engine.spark.trains.letters import LetterOrigins, sources_of
from penstock.model.checks.topology import LONGEST_NAME
from penstock.model.errors import PenstockError
from penstock.model.expressions.binding import DEEPEST
from penstock.rewrite.check import check
from penstock.rewrite.subnetworks import split
from penstock.testing import assert_same_result, collect, rows_source, run_network, values
from penstock.testing.spark_run import InForm, run_on_spark

SCHEMA = "time TIMESTAMP, k INT, v BIGINT"


def source(name="limits"):
    return ps.Network(name).source("cars", rows_source(SCHEMA), timestamp="time")


def chain(boxes):
    stream = source()
    for number in range(boxes):
        stream = stream.filter(f"v <> {-number - 1}") if number % 5 == 0 else stream.map(v="v + 1")
    stream.output("out", to=collect())
    return stream.network


TOO_DEEP = {
    "sum": "+".join(["v"] * 5000),
    "and": " and ".join(["v > 1"] * 5000),
    "parentheses": "(" * 5000 + "v" + ")" * 5000,
    "not": "not " * 5000 + "v > 1",
    "minus": "- " * 5000 + "v",
    "calls": "abs(" * 2000 + "v" + ")" * 2000,
    "case": "case when v > 0 then " * 2000 + "v" + " end" * 2000,
}


@pytest.mark.parametrize("text", TOO_DEEP.values(), ids=TOO_DEEP)
def test_too_deep_is_refused(text):
    with pytest.raises(PenstockError, match="nested too deeply") as caught:
        source().map(x=text)
    assert len(str(caught.value)) < 800
    with pytest.raises(PenstockError, match="nested too deeply"):
        source().group_by("k").tumble("1 minute", x=f"max({text})")


def test_the_deepest_expression_runs():
    text = "+".join(["v"] * (DEEPEST - 1))
    stream = source().map(v=text)
    stream.output("out", to=collect())
    assert values(run_network(stream.network, [{"cars": [(0, 1, 2)]}]).outputs["out"]) == [
        (0, 1, 2 * (DEEPEST - 1))
    ]
    assert lay_out(split(stream.network)[0]).native == (), "its Spark SQL would be too long"


def test_a_long_text_is_refused():
    with pytest.raises(PenstockError, match="the expression is too long"):
        source().filter(f"v in ({', '.join(map(str, range(200_000)))})")


@pytest.mark.parametrize("deep", ["{a: " * 5000, "[" * 3000, "- " * 3000])
def test_a_deep_yaml_is_refused(deep):
    with pytest.raises(PenstockError):
        ps.from_yaml(f"network: n\nboxes: {deep}")


@pytest.mark.parametrize(
    "name", ["x" * 300, "é" * 100, "../../x", "/etc/x", "a/b", "", "..", ".hidden", "a\nb", "a\0"]
)
def test_names_stay_in_their_folder(name):
    with pytest.raises(PenstockError):
        ps.Network(name)
    with pytest.raises(PenstockError):
        source().filter("v > 1", name=name or "/")
    with pytest.raises(PenstockError):
        source().output(name or "/", to=ps.memory())


def test_the_longest_name_is_fine():
    name = "x" * LONGEST_NAME
    assert source(name).filter("v > 1", name=name).name == name


@pytest.mark.parametrize("boxes", [150, 500])
def test_many_boxes(boxes):
    net = chain(boxes)
    check(net)
    assert net.explain()
    (sub,) = split(net)
    layout = lay_out(sub)
    assert len(layout.native) == NATIVE_DEPTH
    assert len(layout.stages) == 1
    assert sources_of(net)["out"] == {"cars"}
    assert LetterOrigins(net)
    assert len(run_network(net, [{"cars": [(0, 1, 2)]}]).outputs["out"]) == 1


def test_many_points_in_a_row():
    stream = source()
    for number in range(60):
        stream = stream.filter("v > 1").connection_point(f"p{number}")
    assert [sub.name for sub in split(stream.network)] == [f"p{number}" for number in range(60)]


def test_a_lattice_is_walked_once():
    stream = source()
    for _ in range(60):  # 2**60 paths
        stream = stream.filter("v > 1").union(stream.filter("v < 5"))
    stream.group_by("k").tumble("1 minute", n="count(*)").output("out", to=collect())
    assert sources_of(stream.network)["out"] == {"cars"}
    assert lay_out(split(stream.network)[0]).stages


def re_keyed(windows):
    """Windows in a row, each grouped by another column than the one before."""
    stream = source()
    for number in range(windows):
        keys, other = ("k", "v") if number % 2 else ("v", "k")
        stream = stream.group_by(keys).tumble("1 second", {other: f"max({other})"})
    stream.output("out", to=collect())
    return stream.network


def test_many_windows_with_other_keys():
    """80 stages; a train that would be one of DataFrames took minutes, though `check` said sound."""
    net, rows = re_keyed(80), [(n, n % 7, n % 11) for n in range(50)]
    check(net)
    layout = lay_out(split(net)[0])
    assert len(layout.stages) == 80
    assert form_of(Ticket(0, 0.0, rows=10**6), layout) is Form.TASKS
    expected = run_network(net, [{"cars": rows}]).outputs["out"]
    assert expected
    assert run_on_spark(net, [{"cars": rows}], InForm(Form.TASKS)).outputs["out"] == expected


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_many_windows_with_other_keys_on_spark(spark):
    net, rows = re_keyed(80), [(n // 50, n % 7, n % 11) for n in range(2_500)]
    found = run_on_spark(net, [{"cars": rows}], InForm(Form.TASKS, spark))
    assert_same_result(found, run_network(net, [{"cars": rows}]))


@pytest.mark.parametrize("form", [ps.csv, ps.json, ps.parquet, lambda p: ps.feed(p, SCHEMA, decode=len)])
def test_a_path_that_no_file_can_have_is_refused(form):
    with pytest.raises(PenstockError, match="no file can have this path"):
        form("in\0put")
