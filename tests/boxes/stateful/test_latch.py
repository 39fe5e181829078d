import pytest

from penstock.model.writing.windows import latch
from penstock.testing import examples, values

ROWS = [(1, "a", 3), (2, "b", 7), (11, "a", 1), (12, "a", None), (31, "a", 9)]


def test_each_answer_covers_all_tuples_so_far(run):
    result = run(
        lambda s: s.group_by("k").latch("10 seconds", best="max(v)", n="count(*)", lo="window_start()"), ROWS
    )
    assert values(result.outputs["out"]) == [
        ("a", 1, 3, 1, 0),
        ("a", 11, 3, 3, 10),
        ("a", 31, 9, 4, 30),
        ("b", 2, 7, 1, 0),
    ]


def test_answers_come_when_windows_close(run):
    result = run(lambda s: s.group_by("k").latch("10 seconds", n="count(*)"), ROWS, final=False)
    assert values(result.outputs["out"]) == [("a", 1, 1), ("a", 11, 3), ("b", 2, 1)]


def test_count_windows(run):
    def build(s):
        return s.group_by("k").latch("2 tuples", v="sum(v)", stamp="latest")

    assert values(run(build, ROWS, final=False).outputs["out"]) == [("a", 11, 4), ("a", 31, 13)]
    assert values(run(build, ROWS).outputs["out"]) == [("a", 11, 4), ("a", 31, 13), ("b", 31, 7)]


def test_failing_arguments(run, dead):
    rows = [(0, "a", 1), (1, "a", 0), (2, "a", 2)]
    result = run(lambda s: s.latch("10 seconds", v="sum(2 / v)", name="life"), rows)
    assert values(result.outputs["out"]) == [(0, 3.0)]
    assert dead(result) == [("life", 1)]


def _running(s):
    return s.group_by("k").latch(
        function=examples.running_count, state="seen BIGINT", produces="k STRING, v INT, seen BIGINT"
    )


@pytest.mark.parametrize("cuts", [[5], [1, 1, 1, 1, 1], [2, 3]])
def test_function_keeps_state_between_trains(run, cuts):
    trains, at = [], 0
    for size in cuts:
        trains.append(ROWS[at : at + size])
        at += size
    result = run(_running, *trains)
    assert values(result.outputs["out"]) == [
        ("a", None, 3),
        ("a", 1, 2),
        ("a", 3, 1),
        ("a", 9, 4),
        ("b", 7, 1),
    ]


def test_function_gets_tuples_in_order(run):
    rows = [(5, "a", 5), (3, "a", 3), (5, "a", 6), (4, "a", 4)]
    result = run(_running, rows[:2], rows[2:], lateness="2 seconds")
    assert values(result.outputs["out"], "v", "seen") == [(3, 1), (4, 2), (5, 3), (6, 4)]


def test_null_is_a_key_of_its_own(run):
    result = run(_running, [(0, None, 1), (1, "a", 2)], [(2, None, 3)])
    assert values(result.outputs["out"], "v", "seen") == [(1, 1), (2, 1), (3, 2)]


def test_without_keys_there_is_one_state(run):
    def build(s):
        return s.latch(function=examples.running_count, state="seen BIGINT", produces="v INT, seen BIGINT")

    assert values(run(build, ROWS[:1], ROWS[1:]).outputs["out"], "seen") == [(1,), (2,), (3,), (4,), (5,)]


def test_tuples_keep_their_timestamps(run):
    result = run(lambda s: _running(s).tumble("10 seconds", n="count(*)"), ROWS)
    assert values(result.outputs["out"]) == [(1, 2), (11, 2), (31, 1)]


def test_a_function_that_makes_timestamps_may_answer_less(run):
    def build(s):
        return s.group_by("k").latch(
            function=examples.every_second,
            state="seen BIGINT",
            produces="time TIMESTAMP, k STRING, seen BIGINT",
        )

    assert values(run(build, ROWS).outputs["out"]) == [(11, "a", 2), (31, "a", 4)]
    windows = run(lambda s: build(s).tumble("10 seconds", n="count(*)"), ROWS)
    assert values(windows.outputs["out"]) == [(11, 1), (31, 1)]


def _merged(a, b):
    return latch(
        [a.group_by("k"), b.group_by("k")],
        function=examples.running_count,
        state="seen BIGINT",
        produces="k STRING, v INT, input INT, seen BIGINT",
    )


def test_several_inputs_are_merged_by_time_ties_by_input(run_two):
    result = run_two(_merged, ([(1, "a", 1), (3, "a", 3)], [(1, "a", 10), (2, "a", 20)]))
    assert values(result.outputs["out"], "seen", "input", "v") == [
        (1, 0, 1),
        (2, 1, 10),
        (3, 1, 20),
        (4, 0, 3),
    ]


def test_an_input_waits_for_the_other(run_two):
    trains = [([(1, "a", 1), (5, "a", 5)], []), ([], [(3, "a", 30)])]
    assert run_two(_merged, trains[0], final=False).outputs["out"] == []
    result = run_two(_merged, *trains, final=False)
    assert values(result.outputs["out"], "seen", "v") == [(1, 1), (2, 30)]


def test_a_tie_is_released_as_far_as_order_is_certain(run_two):
    # the right input stands at 3: at time 3 the left one goes first, and both are in arrival order
    result = run_two(_merged, ([(3, "a", 1), (4, "a", 2)], [(3, "a", 10)]), final=False)
    assert values(result.outputs["out"], "seen", "v") == [(1, 1), (2, 10)]
    # the left input stands at 3 and may bring more of that time, which go before the right one's
    result = run_two(_merged, ([(3, "a", 1)], [(3, "a", 10), (4, "a", 20)]), final=False)
    assert values(result.outputs["out"], "seen", "v") == [(1, 1)]


def test_inputs_of_different_columns(run_two):
    def build(a, b):
        return latch(
            [a, b],
            function=examples.running_count,
            state="seen BIGINT",
            produces="v INT, w DOUBLE, input INT, seen BIGINT",
        )

    result = run_two(build, ([(1, "a", 1)], [(2, 2.5)]), other="time TIMESTAMP, w DOUBLE")
    assert values(result.outputs["out"]) == [(None, 2.5, 1, 2), (1, None, 0, 1)]


def test_aggregates_over_several_inputs(run_two):
    def build(a, b):
        return latch([a, b], "10 seconds", n="count(*)", right="sum(input)", l="last(v)")

    result = run_two(build, ([(1, "a", 1), (15, "a", 2)], [(1, "a", 3)]))
    assert values(result.outputs["out"]) == [(1, 2, 1, 3), (15, 3, 1, 2)]


def test_state_outlives_final():
    from penstock.engine.local import LocalEngine
    from penstock.model.writing.network import Network
    from penstock.testing import collect, rows_source

    net = Network("again")
    cars = net.source("cars", rows_source("time TIMESTAMP, k STRING, v INT"), timestamp="time")
    _running(cars).output("seen", to=collect())
    cars.latch("2 tuples", n="count(*)").output("counted", to=collect())
    local = LocalEngine(net)
    local.train({"cars": ROWS[:1]}, final=True)
    result = local.train({"cars": ROWS[2:4]}, final=True)
    assert values(result.outputs["seen"], "seen") == [(1,), (2,), (3,)]
    assert values(result.outputs["counted"], "n") == [(1,), (3,)]
