"""Late at the source, late at a box, idle inputs: with fixed trains, since lateness is about trains."""

import pytest

from penstock.engine.local import LocalEngine
from penstock.model.writing.network import Network
from penstock.testing import HandClock, collect, rows_source, values

SCHEMA = "time TIMESTAMP, k STRING, v INT"


def test_older_than_the_newest_of_earlier_trains_is_late(run, dead):
    result = run(lambda s: s, [(10, "a", 1)], [(9, "a", 2), (10, "a", 3), (11, "a", 4)])
    assert values(result.outputs["out"], "v") == [(1,), (3,), (4,)]
    assert dead(result) == [("cars", 1)]
    letter = result.dead_letters[0]
    assert letter.reason.startswith("late: ")
    assert (letter.source, letter.box) == ("cars", "cars")
    assert letter.train == 1


def test_disorder_within_a_train_is_not_late(run, dead):
    result = run(lambda s: s, [(10, "a", 1), (2, "a", 2)], [(10, "a", 3)])
    assert len(result.outputs["out"]) == 3
    assert dead(result) == []


@pytest.mark.parametrize(("t", "late"), [(7, 0), (6.999999, 1)])
def test_lateness_is_included(run, dead, t, late):
    assert len(dead(run(lambda s: s, [(10, "a", 1)], [(t, "a", 2)], lateness="3 seconds"))) == late


@pytest.mark.parametrize(("t", "late"), [(10, 1), (10.000001, 0)])
def test_whole_makes_the_same_time_late(run, dead, t, late):
    assert len(dead(run(lambda s: s, [(10, "a", 1)], [(t, "a", 2)], whole=True))) == late


def test_a_late_tuple_does_not_hold_back_later_ones_and_still_has_its_place(run, dead):
    result = run(lambda s: s.drop(0.0), [(10, "a", 0)], [(1, "a", 1)], [(5, "a", 2), (12, "a", 3)])
    assert values(result.outputs["out"], "v") == [(0,), (3,)]
    assert dead(result) == [("cars", 1), ("cars", 2)]


def test_a_null_timestamp(run, dead):
    result = run(lambda s: s, [(None, "a", 1), (1, "a", 2)])
    assert values(result.outputs["out"], "v") == [(2,)]
    assert [letter.reason for letter in result.dead_letters] == ["timestamp is null"]
    assert dead(result) == [("cars", 0)]


def test_late_tuples_are_in_no_window(run):
    def build(s):
        return s.tumble("10 seconds", n="count(*)")

    assert values(run(build, [(1, "a", 1), (12, "a", 1)], [(2, "a", 1)]).outputs["out"]) == [(1, 1), (12, 1)]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ((1, "a", 2**31), "column 'v': 2147483648 is out of the range of INT"),
        ((1, "a", "7"), "column 'v': '7' (str) is no INT"),
        ((1, "a", True), "column 'v': True (bool) is no INT"),
        ((1, 5, 1), "column 'k': 5 (int) is no STRING"),
        (("yesterday", "a", 1), "column 'time': Invalid isoformat string: 'yesterday'"),
        ((1e300, "a", 1), "column 'time': 1e+300 is out of the range of TIMESTAMP"),
        ((1, "a"), "(1, 'a') is no row of 3 columns"),
    ],
)
def test_what_cannot_be_converted_is_a_dead_letter(row, reason):
    net = _union_network()
    result = LocalEngine(net).run([{"left": [(0, "a", 0), row]}])
    assert [(letter.reason, letter.offset) for letter in result.dead_letters] == [(reason, 1)]


@pytest.mark.parametrize("time", [5, 5.0, "1970-01-01T00:00:05", "1970-01-01T02:00:05+02:00"])
def test_times_may_be_given_in_several_ways(run, time):
    assert values(run(lambda s: s, [(time, "a", 1)]).outputs["out"]) == [(5, "a", 1)]


def _union_network(window="10 seconds"):
    net = Network("idle")
    left = net.source("left", rows_source(SCHEMA), timestamp="time", idle="30 seconds")
    right = net.source("right", rows_source(SCHEMA), timestamp="time", idle=None)
    left.union(right).tumble(window, n="count(*)", name="tens").output("out", to=collect())
    return net


def test_an_idle_input_does_not_stall_windows_for_ever():
    clock = HandClock()
    local = LocalEngine(_union_network(), clock=clock.now)
    local.train({"left": [(1, "a", 1)], "right": [(2, "a", 1), (25, "a", 1)]})
    clock.advance("29 seconds")
    assert local.train({}).outputs["out"] == []
    clock.advance("1 second")
    assert values(local.train({}).outputs["out"]) == [(1, 2)]


def test_an_input_that_comes_back_too_late_loses_tuples_at_the_box():
    clock = HandClock()
    local = LocalEngine(_union_network(), clock=clock.now)
    local.train({"left": [(1, "a", 1)], "right": [(25, "a", 1)]})
    clock.advance("30 seconds")
    local.train({})
    result = local.train({"left": [(3, "a", 2), (26, "a", 3)], "right": [(41, "a", 1)]}, final=True)
    assert values(result.outputs["out"]) == [(1, 1), (25, 2), (41, 1)]
    assert [(letter.box, letter.offset, letter.source) for letter in result.dead_letters] == [("tens", 1, "")]
    assert result.dead_letters[0].reason.startswith("late: ")


def test_an_input_that_never_came_is_idle_too():
    clock = HandClock()
    local = LocalEngine(_union_network(), clock=clock.now)
    clock.advance("31 seconds")
    assert values(local.train({"right": [(2, "a", 1), (25, "a", 1)]}).outputs["out"]) == [(2, 1)]


def test_idle_none_waits_for_ever():
    clock = HandClock()
    local = LocalEngine(_union_network(), clock=clock.now)
    local.train({"left": [(25, "a", 1)], "right": [(2, "a", 1)]})
    clock.advance("1 hour")
    assert local.train({"left": [(50, "a", 1)]}).outputs["out"] == []


def test_a_single_idle_source_closes_nothing():
    clock = HandClock()
    net = Network("alone")
    net.source("cars", rows_source(SCHEMA), timestamp="time").tumble("10 seconds", n="count(*)").output(
        "out", to=collect()
    )
    local = LocalEngine(net, clock=clock.now)
    local.train({"cars": [(1, "a", 1)]})
    clock.advance("1 hour")
    assert local.train({}).outputs["out"] == []
    assert local.train({"cars": [(2, "a", 1)]}).dead_letters == []


def test_unknown_sources_are_refused():
    with pytest.raises(Exception, match="'idle' has no source 'lefd'\n  hint:     did you mean 'left'"):
        LocalEngine(_union_network()).train({"lefd": []})


def test_unknown_drop_boxes_are_refused():
    with pytest.raises(Exception, match="network 'idle' has no drop box 'tens'"):
        LocalEngine(_union_network()).run([{}], drop_rates={"tens": 0.5})
