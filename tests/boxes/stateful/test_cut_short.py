"""Windows of tuples that the end of input cuts short close at the end, and boxes behind see them there."""

from itertools import pairwise

import pytest

from penstock.engine.local import LocalEngine
from penstock.model.writing.network import Network
from penstock.model.writing.windows import latch
from penstock.testing import assert_same_result, collect, examples, rows_source, values

ROWS = [(1, "a", 1), (5, "b", 2), (5, "b", 3), (8, "b", 4)]
CUTS = ((), (2,), (1, 3), (1, 2, 3), (0, 4, 4))


def cut(rows, cuts):
    return [rows[start:end] for start, end in pairwise((0, *cuts, len(rows)))]


def pairs(s, **options):
    return s.group_by("k").tumble("2 tuples", {"v": "sum(v)"}, stamp="latest", **options)


def by_second(s):
    return s.tumble("1 second", v="sum(v)", n="count(*)")


def test_the_latest_stamp_is_the_time_of_the_end(run):
    assert values(run(pairs, ROWS).outputs["out"]) == [("a", 8, 1), ("b", 5, 5), ("b", 8, 4)]


def test_the_earliest_stamp_stays(run):
    result = run(lambda s: s.group_by("k").tumble("2 tuples", v="sum(v)"), ROWS)
    assert values(result.outputs["out"]) == [("a", 1, 1), ("b", 5, 5), ("b", 8, 4)]


def test_the_end_is_as_far_as_the_lateness_lets_be_known(run):
    result = run(pairs, *cut(ROWS, (2,)), lateness="2 seconds")
    assert values(result.outputs["out"]) == [("a", 6, 1), ("b", 5, 5), ("b", 8, 4)]


def test_tuples_that_do_not_reach_the_box_tell_the_time_too(run):
    result = run(lambda s: by_second(pairs(s.filter("v < 4"))), *cut(ROWS, (3,)))
    assert values(result.outputs["out"]) == [(5, 5, 1), (8, 1, 1)]


def test_the_slowest_input_tells_the_time(run_two):
    def build(left, right):
        both = [left.group_by("k"), right.group_by("k")]
        return latch(both, "3 tuples", n="count(*)", stamp="latest")

    left, right = [(1, "a", 0), (7, "b", 0)], [(2, "b", 0), (6, "b", 0)]
    for trains in ([(left, right)], [(left[:1], right), (left[1:], [])]):
        assert values(run_two(build, *trains).outputs["out"]) == [("a", 6, 1), ("b", 7, 3)]


COUNTED = {
    "tumble": (pairs, [(5, 5, 1), (8, 5, 2)]),
    "slide": (
        lambda s: s.group_by("k").slide("2 tuples", every="1 tuple", v="sum(v)", stamp="latest"),
        [(5, 5, 1), (8, 12, 3)],
    ),
    "gaps": (
        lambda s: s.group_by("k").slide("2 tuples", every="3 tuples", v="sum(v)", stamp="latest"),
        [(5, 5, 1), (8, 1, 1)],
    ),
    "latch": (
        lambda s: s.group_by("k").latch("2 tuples", v="sum(v)", stamp="latest"),
        [(5, 5, 1), (8, 10, 2)],
    ),
    "function": (
        lambda s: s.group_by("k").tumble(
            "2 tuples", function=examples.last_two, produces="v INT", stamp="latest"
        ),
        [(5, 5, 2), (8, 5, 2)],
    ),
}

BEHIND = {
    "point": (lambda p, _: by_second(p.connection_point("kept")), [(5, 5, 1), (8, 5, 2)]),
    "pairs again": (lambda p, _: p.tumble("2 tuples", v="sum(v)", stamp="latest"), [(8, 4), (8, 6)]),
    "slide": (
        lambda p, _: p.slide("4 seconds", every="2 seconds", v="sum(v)", stamp="latest"),
        [(5, 5), (5, 5), (8, 5), (8, 5)],
    ),
    "latch": (lambda p, _: p.latch("1 second", v="sum(v)"), [(5, 5), (8, 10)]),
    "function": (
        lambda p, _: p.latch(
            function=examples.running_count, state="seen BIGINT", produces="k STRING, v BIGINT, seen BIGINT"
        ),
        [("a", 1, 2), ("b", 4, 3), ("b", 5, 1)],
    ),
    "join": (lambda p, s: p.join(s, within=0).select("v", "v_right"), [(1, 4), (4, 4), (5, 2), (5, 3)]),
    "diffused join": (
        lambda p, s: p.join(s, within=0, distribution="diffused").select("v", "v_right"),
        [(1, 4), (4, 4), (5, 2), (5, 3)],
    ),
    "union": (
        lambda p, s: by_second(p.union(s.select("k", "time", v="cast(v AS BIGINT)"))),
        [(1, 1, 1), (5, 10, 3), (8, 9, 3)],
    ),
}


@pytest.mark.parametrize("name", COUNTED)
def test_time_windows_behind_each_kind(run, name):
    build, expected = COUNTED[name]
    result = run(lambda s: by_second(build(s)), *cut(ROWS, (2,)))
    assert (values(result.outputs["out"]), result.dead_letters) == (expected, [])


@pytest.mark.parametrize("name", BEHIND)
def test_each_kind_behind_windows_of_tuples(run, name):
    build, expected = BEHIND[name]
    result = run(lambda s: build(pairs(s), s), *cut(ROWS, (3,)))
    assert (values(result.outputs["out"]), result.dead_letters) == (expected, [])


@pytest.mark.parametrize("lateness", [0, "1 second", "20 seconds"])
def test_neither_the_cutting_nor_the_moment_of_the_end_matters(lateness):
    net = Network("cut short")
    cars = net.source(
        "cars", rows_source("time TIMESTAMP, k STRING, v INT"), timestamp="time", lateness=lateness
    )
    for name, (build, _) in COUNTED.items():
        by_second(build(cars)).output(f"counted {name}", to=collect())
    for name, (build, _) in BEHIND.items():
        build(pairs(cars), cars).output(f"behind {name}", to=collect())
    whole = LocalEngine(net).run([{"cars": ROWS}])
    for cuts in CUTS:
        trains = [{"cars": rows} for rows in cut(ROWS, cuts)]
        assert_same_result(LocalEngine(net).run(trains), whole)
        at_once = LocalEngine(net)
        at_once.run(trains[:-1], final=False)
        assert_same_result(at_once.train(trains[-1], final=True), whole)
