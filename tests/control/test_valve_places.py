"""Where a network may be shed, by which grain, and why not."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.control.valve_places import check_grains, memory_behind, places
from penstock.engine.contract.valve import lot_of
from penstock.model.errors import NetworkError

LOSS = ps.QoS(delay=[(0, 1), (5, 1), (30, 0)], loss=[(0, 0), (50, 0.9), (100, 1)])
ROUGH = ps.QoS(delay=[(0, 1), (5, 1), (30, 0)], loss=[(0, 0), (100, 1)], approximate=True)
STRICT = ps.QoS(delay=[(0, 1), (5, 1), (30, 0)])
SECOND = 1_000_000


def cars(format_=ps.csv):
    net = ps.Network("n")
    schema = "time TIMESTAMP, vid INT, spd INT"
    return net.source("cars", format_("in/", schema=schema), timestamp="time")


def place(stream, at="cars"):
    return next(each for each in places(stream.network) if each.at == at)


def grain(build, qos=LOSS, format_=ps.csv, at="cars"):
    stream = cars(format_)
    build(stream).output("out", to=ps.console(), qos=qos)
    found = place(stream, at)
    return found.grain, found.why


def test_without_memory_tuples_go_in_as_large_pieces_as_the_source_allows():
    assert grain(lambda s: s.filter("spd < 40")) == ("blocks", "")
    assert grain(lambda s: s.filter("spd < 40"), format_=ps.parquet) == ("slices", "")


def test_joins_keep_a_subset_of_pairs():
    assert grain(lambda s: s.join(s, on="vid", within="1 minute"))[0] == "blocks"


def test_windows_of_time_go_whole():
    stream = cars()
    stream.slide("1 minute", every="10 seconds", n="count(*)").output("out", to=ps.console(), qos=LOSS)
    chosen = place(stream)
    assert (chosen.grain, chosen.exact) == ("windows", True)
    assert (chosen.size, chosen.every) == (60 * SECOND, 10 * SECOND)


def test_a_view_asks_for_exact_answers_as_an_output_does():
    stream = cars()
    nested = stream.tumble("10 seconds", n="count(*)").tumble("1 minute", n="sum(n)")
    nested.view("seen", keep="1 hour", shed=True, qos=LOSS)
    assert place(stream).grain is None


def test_windows_of_windows_only_approximately():
    def nested(s):
        return s.tumble("10 seconds", n="count(*)").tumble("1 minute", n="sum(n)")

    assert grain(nested)[0] is None
    assert "approximate: true" in grain(nested)[1]
    assert grain(nested, ROUGH)[0] == "blocks"


def test_grouped_windows_of_windows_by_keys():
    def nested(s):
        tens = s.group_by("vid").tumble("10 seconds", n="count(*)")
        return tens.group_by("vid").tumble("1 minute", n="sum(n)")

    stream = cars()
    nested(stream).output("out", to=ps.console(), qos=LOSS)
    assert (place(stream).grain, place(stream).keys) == ("keys", ("vid",))


@pytest.mark.parametrize(
    "build",
    [
        lambda s: s.group_by("vid").tumble("10 tuples", n="count(*)"),
        lambda s: s.group_by("vid").latch("1 minute", n="count(*)"),
        lambda s: s.group_by("vid").resample("1 second", columns="spd"),
    ],
)
def test_boxes_that_need_all_tuples_of_a_key(build):
    assert grain(build)[0] is None
    assert "shed: keys" in grain(build)[1]
    assert grain(build, ROUGH)[0] is None
    assert grain(lambda s: build(s).shed("keys"))[0] == "keys"


def test_keys_that_change_on_the_way_are_no_grain():
    def build(s):
        return s.map(vid="vid % 10").group_by("vid").tumble("10 tuples", n="count(*)").shed("keys")

    assert grain(build)[0] is None


@pytest.mark.parametrize(
    ("build", "qos", "why"),
    [
        (lambda s: s.filter("spd < 40"), STRICT, "output 'out' has no loss graph"),
        (lambda s: s.filter("spd < 40"), None, "output 'out' has no loss graph"),
        (lambda s: s.filter("spd < 40", name="f").shed("never"), LOSS, "filter 'f' says shed: never"),
        (
            lambda s: s.connection_point("kept").filter("spd < 40"),
            LOSS,
            "connection point 'kept' promises its whole history (shed: true allows it)",
        ),
    ],
)
def test_never(build, qos, why):
    assert grain(build, qos) == (None, why)


def test_a_point_that_may_lose_tuples_and_the_reader_of_one_that_may_not():
    assert grain(lambda s: s.connection_point("kept", shed=True).filter("spd < 40"))[0] == "blocks"
    assert grain(lambda s: s.connection_point("kept").filter("spd < 40"), at="kept")[0] == "tuples"


def test_behind_a_split_each_branch_has_its_place_and_the_strict_one_closes_the_source():
    stream = cars()
    shared = stream.map(kmh="spd * 1.6", name="shared")
    shared.filter("kmh > 100", name="fast").output("alarms", to=ps.console(), qos=STRICT)
    shared.tumble("10 seconds", n="count(*)", name="tens").output("means", to=ps.console(), qos=LOSS)
    shared.filter("kmh > 50", name="some").output("scores", to=ps.console(), qos=LOSS)
    found = {each.at: each for each in places(stream.network)}
    assert list(found) == ["cars", "shared->fast", "shared->tens", "shared->some"]
    assert found["cars"].grain is None
    assert found["shared->fast"].grain is None
    assert (found["shared->tens"].grain, found["shared->some"].grain) == ("windows", "blocks")
    assert {each.lot for each in found.values() if each.grain != "windows"} == {lot_of("cars")}
    assert found["shared->tens"].outputs == {"means"}


def test_whole_windows_of_one_branch_are_no_grain_for_another():
    """For ten seconds `scores` would get all of its tuples or none: no share between could be kept."""
    stream = cars()
    stream.tumble("10 seconds", n="count(*)", name="tens").output("means", to=ps.console(), qos=LOSS)
    stream.filter("spd > 50", name="some").output("scores", to=ps.console(), qos=LOSS)
    assert {each.at: each.grain for each in places(stream.network)} == {
        "cars": "windows",
        "cars->tens": "windows",
        "cars->some": "blocks",
    }


def test_how_long_boxes_remember():
    stream = cars()
    tens = stream.group_by("vid").tumble("10 seconds", n="count(*)", name="tens")
    tens.output("means", to=ps.console(), qos=LOSS)
    pairs = stream.join(tens, on="vid", within=("1 minute", "5 seconds"), name="pairs")
    pairs.output("pairs_out", to=ps.console(), qos=LOSS)
    stream.filter("spd > 1", name="some").output("plain", to=ps.console(), qos=LOSS)
    stream.group_by("vid").latch("1 minute", n="count(*)").output("ever", to=ps.console(), qos=LOSS)
    net = stream.network
    assert memory_behind(net, "cars", "plain") == 0
    assert memory_behind(net, "cars", "means") == 10 * SECOND
    assert memory_behind(net, "cars", "pairs_out") == 70 * SECOND
    assert memory_behind(net, "cars->pairs", "pairs_out") == 60 * SECOND
    assert memory_behind(net, "cars", "ever") is None


def test_the_text_form_goes_both_ways():
    stream = cars()
    kept = stream.filter("spd < 40", name="f").shed("never").connection_point("kept", shed=True)
    kept.output("out", to=ps.console(), qos=ROUGH)
    text = ps.to_yaml(stream.network)
    assert "shed: never" in text
    assert "shed: true" in text
    assert "approximate: true" in text
    assert ps.from_yaml(text) == stream.network


def roads(qos=LOSS, keys="road"):
    """A feed of groups of roads: a memory of each road, and one of each vehicle that drives on many."""
    net = ps.Network("n")
    schema = "time TIMESTAMP, road INT, vid INT"
    text = ps.feed("in/", schema, decode=lambda _chunk, _at: ({}, [], []), keys=keys)
    rows = net.source("rows", text, timestamp="time")
    by_road = rows.group_by("road").latch("1 minute", n="count(*)", name="by_road").shed("keys")
    by_road.output("counts", to=ps.console(), qos=LOSS)
    if qos is not None:
        vehicles = rows.group_by("vid").latch("1 minute", n="count(*)", name="by_vehicle").shed("keys")
        vehicles.output("vehicles", to=ps.console(), qos=qos)
    return rows


def test_a_feed_loses_whole_groups_unread():
    found = place(roads(None), "rows")
    assert (found.grain, found.keys, found.in_groups, found.exact) == ("keys", (), True, True)
    assert found.valve(0.5).keys == ()


def test_a_box_that_mixes_groups_must_be_for_approximate_answers():
    assert place(roads(LOSS), "rows").grain is None
    found = place(roads(ROUGH), "rows")
    assert (found.in_groups, found.exact) == (True, False)
    other = place(roads(None, keys="vid"), "rows")
    assert not other.in_groups, "its groups are those of vehicles"


def test_nothing_is_shed_behind_a_feed_that_loses_groups():
    behind = [each for each in places(roads(ROUGH).network) if each.at != "rows"]
    assert behind
    assert {each.why for each in behind} == {"'rows' loses whole groups, with all their answers"}


def test_a_window_over_tuples_and_over_windows_of_them_is_not_exact():
    """One of its inputs comes through a window: whole windows of the source are not whole ones of it."""

    def build(stream):
        speeds = stream.select("spd")
        sums = speeds.slide("1 minute", every="10 seconds", spd="sum(spd)").select(spd="CAST(spd AS INT)")
        return speeds.union(sums).slide("1 minute", every="10 seconds", n="count(*)")

    assert grain(build)[0] is None


@pytest.mark.parametrize(
    ("build", "grain"),
    [
        (lambda a, b: a.union(b).tumble("10 seconds", n="count(*)"), "windows"),
        (lambda a, b: a.join(b, on="k", within="1 second").shed("keys"), "keys"),
    ],
)
def test_of_two_sources_that_meet_the_same_windows_and_keys_stay(build, grain):
    """Chosen apart, a join or a window would keep the product of what its sources keep."""
    net = ps.Network("n")
    streams = [net.source(n, ps.csv(n, "time TIMESTAMP, k INT"), timestamp="time") for n in "ab"]
    net.output("out", build(*streams), to=ps.console(), qos=LOSS)
    one, other = places(net)
    assert one.grain == grain
    assert one.choice == other.choice


def test_windows_are_chosen_by_the_sub_network_that_closes_them():
    """The reader of a point may be trains behind the valve that has chosen a window in front of it."""

    def build(stream):
        return stream.connection_point("kept", shed=True).tumble("10 seconds", n="count(*)")

    assert grain(build)[0] is None
    assert grain(build, at="kept")[0] == "windows"
    assert grain(build, ROUGH)[0] == "blocks"


def checked(build, qos=LOSS):
    stream = cars()
    build(stream).output("out", to=ps.console(), qos=qos)
    check_grains(stream.network)


@pytest.mark.parametrize(
    ("build", "shed"),
    [
        (lambda s: s.tumble("10 seconds", n="count(*)", name="box").shed("keys"), "keys"),
        (lambda s: s.filter("spd < 40", name="box").shed("keys"), "keys"),
        (
            lambda s: (
                s.map(vid="vid % 10")
                .group_by("vid")
                .tumble("9 tuples", n="count(*)", name="box")
                .shed("keys")
            ),
            "keys",
        ),
        (
            lambda s: (
                s.tumble("1 second", n="count(*)").tumble("1 minute", n="sum(n)", name="box").shed("windows")
            ),
            "windows",
        ),
    ],
)
def test_a_grain_that_cannot_be_had_is_refused(build, shed):
    with pytest.raises(
        NetworkError, match=rf"test_valve_places\.py:\d+: box 'box': shed: {shed}, but nothing"
    ):
        checked(build)
    checked(build, STRICT)  # nothing is to be shed, so nothing is missing


def test_a_grain_that_can_be_had_at_one_place_is_not_refused():
    """At the source the keys of the branches differ; on the arrows each has its own."""
    stream = cars()
    for key in ("vid", "spd"):
        counted = stream.group_by(key).latch("1 minute", n="count(*)").shed("keys")
        counted.output(f"by_{key}", to=ps.console(), qos=LOSS)
    assert place(stream).wanted == "keys"
    check_grains(stream.network)
    check_grains(roads(LOSS).network)
    check_grains(roads(ROUGH).network)


def trips_and_tolls(on, schema="time TIMESTAMP, id INT, toll INT"):
    """The output sums the tolls of each `id` of the trips; a toll has an `id` too."""
    net = ps.Network("n")
    trips = net.source("trips", ps.csv("trips", "time TIMESTAMP, id INT, seg INT"), timestamp="time")
    tolls = net.source("tolls", ps.csv("tolls", schema), timestamp="time").filter("toll > 0")
    paid = trips.join(tolls, on=on, within="1 minute").group_by("id")
    paid.tumble("1 minute", total="sum(toll)").output("out", to=ps.console(), qos=LOSS)
    return trips


def test_a_key_of_the_right_side_is_no_key_of_the_pairs_that_show_another_of_its_name():
    """Without the tolls of some segments, the sum of every vehicle would be too small."""
    found = place(trips_and_tolls([("seg", "id")]), "tolls")
    assert found.grain is None
    assert "approximate: true" in found.why


def test_a_key_of_the_right_side_that_equals_the_left_one_is_a_key_of_the_pairs():
    found = place(trips_and_tolls("id"), "tolls")
    assert (found.grain, found.keys, found.exact) == ("keys", ("id",), True)
