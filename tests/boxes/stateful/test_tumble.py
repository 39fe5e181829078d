import pytest

from penstock.testing import examples, values

ROWS = [(1, "a", 1), (3, "b", 2), (9, "a", None), (10, "a", 4), (19, "b", 8), (20, None, 16), (25, None, 32)]


def test_time_windows_by_key(run):
    result = run(lambda s: s.group_by("k").tumble("10 seconds", n="count(*)", v="sum(v)"), ROWS)
    assert values(result.outputs["out"]) == [
        (None, 20, 2, 48),
        ("a", 1, 2, 1),
        ("a", 10, 1, 4),
        ("b", 3, 1, 2),
        ("b", 19, 1, 8),
    ]


def test_without_keys_the_stream_is_one_group(run):
    result = run(lambda s: s.tumble("10 seconds", n="count(*)", with_v="count(v)"), ROWS)
    assert values(result.outputs["out"]) == [(1, 3, 2), (10, 2, 2), (20, 2, 2)]


def test_a_window_closes_when_its_end_is_reached(run):
    def build(s):
        return s.tumble("10 seconds", n="count(*)")

    assert run(build, [(1, "a", 1), (9.999999, "a", 1)], final=False).outputs["out"] == []
    assert values(run(build, [(1, "a", 1), (10, "a", 1)], final=False).outputs["out"]) == [(1, 1)]


def test_lateness_keeps_it_open(run):
    def build(s):
        return s.tumble("10 seconds", n="count(*)")

    trains = [(1, "a", 1), (14, "a", 1)], [(9, "a", 1), (15, "a", 1)]
    assert run(build, trains[0], final=False, lateness="5 seconds").outputs["out"] == []
    assert values(run(build, *trains, final=False, lateness="5 seconds").outputs["out"]) == [(1, 2)]


def test_whole_closes_a_time_as_soon_as_it_is_seen(run):
    def build(s):
        return s.tumble("10 seconds", n="count(*)")

    train = [(1, "a", 1), (9.999999, "a", 1)]
    assert values(run(build, train, final=False, whole=True).outputs["out"]) == [(1, 2)]


def test_windows_are_aligned_to_1970_also_before(run):
    result = run(
        lambda s: s.tumble("10 seconds", lo="window_start()", hi="window_end()"), [(-1, "a", 1), (0, "a", 1)]
    )
    assert values(result.outputs["out"]) == [(-1, -10, 0), (0, 0, 10)]


def test_stamp_latest(run):
    result = run(lambda s: s.tumble("10 seconds", n="count(*)", stamp="latest"), ROWS)
    assert values(result.outputs["out"]) == [(9, 3), (19, 2), (25, 2)]


def test_aggregates_and_nulls(run):
    texts = {
        "n": "count(*)",
        "nv": "count(v)",
        "total": "sum(v)",
        "mean": "avg(v)",
        "low": "min(v)",
        "high": "max(v)",
        "kinds": "count(distinct k)",
        "f": "first(v)",
        "l": "last(v)",
    }
    rows = [(0, "a", None), (1, "a", 4), (2, "b", 2), (3, None, None)]
    assert values(run(lambda s: s.tumble("10 seconds", texts), rows).outputs["out"]) == [
        (0, 4, 2, 6, 3.0, 2, 4, 2, None, None)
    ]


def test_aggregates_of_nothing_but_nulls(run):
    texts = {"nv": "count(v)", "total": "sum(v)", "mean": "avg(v)", "low": "min(v)", "spread": "stddev(v)"}
    result = run(lambda s: s.tumble("10 seconds", texts), [(0, "a", None)])
    assert values(result.outputs["out"]) == [(0, 0, None, None, None, None)]


def test_spread(run):
    result = run(
        lambda s: s.tumble("10 seconds", d="stddev(v)", q="variance(v)"),
        [(0, "a", 2), (1, "a", 4), (10, "a", 1)],
    )
    assert [row["q"] for row in sorted(result.outputs["out"], key=lambda row: row["time"])] == [2.0, None]
    assert result.outputs["out"][0]["d"] == pytest.approx(2**0.5)


def test_expressions_around_aggregates(run):
    result = run(
        lambda s: s.group_by("k").tumble("10 seconds", x="sum(v) / count(*) + 1", y="concat(k, '!')"),
        ROWS[:2],
    )
    assert values(result.outputs["out"]) == [("a", 1, 2.0, "a!"), ("b", 3, 3.0, "b!")]


def test_first_and_last_go_by_time_not_by_arrival(run):
    def build(s):
        return s.tumble("10 seconds", f="first(v)", l="last(v)")

    rows = [(5, "a", 5), (3, "a", 3), (7, "a", 7), (6, "a", 6)]
    assert values(run(build, rows, lateness="5 seconds").outputs["out"]) == [(3, 3, 7)]


def test_ties_go_by_arrival(run):
    rows = [(5, "a", 2), (5, "a", 1), (5, "a", 3)]
    assert values(run(lambda s: s.tumble("10 seconds", f="first(v)", l="last(v)"), rows).outputs["out"]) == [
        (5, 2, 3)
    ]


def test_a_failing_argument_costs_the_tuple(run, dead):
    rows = [(0, "a", 2), (1, "a", 0), (2, "a", 5)]
    result = run(lambda s: s.tumble("10 seconds", n="count(*)", t="sum(10 / v)", name="minutes"), rows)
    assert values(result.outputs["out"]) == [(0, 2, 7.0)]
    assert dead(result) == [("minutes", 1)]


def test_a_failing_result_costs_the_window(run, dead):
    rows = [(0, "a", 0), (10, "a", 2)]
    result = run(lambda s: s.tumble("10 seconds", t="10 / sum(v)", name="minutes"), rows)
    assert values(result.outputs["out"]) == [(10, 5.0)]
    assert dead(result) == [("minutes", 0)]


def test_a_sum_beyond_bigint_fails(run, dead):
    rows = [(0, 2**63 - 1), (1, 1), (10, 1)]
    result = run(
        lambda s: s.tumble("10 seconds", t="sum(big)", name="sums"), rows, schema="time TIMESTAMP, big BIGINT"
    )
    assert values(result.outputs["out"]) == [(10, 1)]
    assert dead(result) == [("sums", 0)]


@pytest.mark.parametrize(
    ("time", "size", "edge"),
    [("9999-12-31T23:59:59", "1 day", "window_end"), ("0001-01-01T00:00:00", "7 days", "window_start")],
)
def test_a_window_edge_beyond_the_years_1_to_9999_fails(run, time, size, edge):
    result = run(lambda s: s.tumble(size, edge=f"{edge}()"), [(time, "a", 1)])
    assert result.outputs["out"] == []
    assert [letter.reason for letter in result.dead_letters] == [f"{edge} is out of the range of TIMESTAMP"]


def test_count_windows_by_key(run):
    rows = [
        (t, k, v)
        for t, (k, v) in enumerate([("a", 1), ("b", 10), ("a", 2), ("a", 3), ("b", 20), ("a", 4), ("a", 5)])
    ]

    def build(s):
        return s.group_by("k").tumble("2 tuples", v="sum(v)")

    complete = [("a", 0, 3), ("a", 3, 7), ("b", 1, 30)]
    assert values(run(build, rows, final=False).outputs["out"]) == complete
    assert values(run(build, rows).outputs["out"]) == sorted([*complete, ("a", 6, 5)])


def test_count_windows_go_by_time(run):
    rows = [(2, "a", 2), (1, "a", 1), (4, "a", 4), (3, "a", 3)]

    def build(s):
        return s.tumble("2 tuples", f="first(v)", l="last(v)")

    for trains in ([rows], [rows[:1], rows[1:2], rows[2:3], rows[3:]]):
        assert values(run(build, *trains, lateness="3 seconds").outputs["out"]) == [(1, 1, 2), (3, 3, 4)]


def test_count_windows_wait_for_earlier_tuples(run):
    def build(s):
        return s.tumble("2 tuples", v="sum(v)")

    assert run(build, [(1, "a", 1), (3, "a", 3)], lateness="3 seconds", final=False).outputs["out"] == []
    result = run(build, [(1, "a", 1), (3, "a", 3)], [(6, "a", 9)], lateness="3 seconds", final=False)
    assert values(result.outputs["out"]) == [(1, 4)]


def test_count_windows_of_a_stream_in_arrival_order_do_not_wait(run):
    result = run(lambda s: s.tumble("2 tuples", v="sum(v)"), [(1, "a", 1), (1, "a", 3)], final=False)
    assert values(result.outputs["out"]) == [(1, 4)]


def test_a_failing_tuple_does_not_count(run, dead):
    rows = [(0, "a", 5), (1, "a", 0), (2, "a", 2)]
    result = run(lambda s: s.tumble("2 tuples", t="sum(10 / v)", name="pairs"), rows, final=False)
    assert values(result.outputs["out"]) == [(0, 7.0)]
    assert dead(result) == [("pairs", 1)]


def test_count_windows_stamp_latest(run):
    result = run(
        lambda s: s.tumble("2 tuples", n="count(*)", stamp="latest"), [(0, "a", 1), (1, "a", 1), (2, "a", 1)]
    )
    assert values(result.outputs["out"]) == [(1, 2), (2, 1)]


@pytest.mark.parametrize("size", ["10 seconds", "3 tuples"])
def test_function_windows(run, size):
    rows = [(2, "a", 2), (1, "a", 1), (3, "a", None)]

    def build(s):
        return s.group_by("k").tumble(size, function=examples.last_two, produces="v INT")

    assert values(run(build, rows, lateness="5 seconds").outputs["out"]) == [("a", 1, None), ("a", 1, 2)]


def test_windows_of_windows_in_the_final_train(run):
    def build(s):
        return s.tumble("10 seconds", n="count(*)").tumble("1 minute", n="sum(n)")

    assert values(run(build, ROWS).outputs["out"]) == [(1, 7)]


def test_counting_starts_afresh_after_final():
    from penstock.engine.local import LocalEngine
    from penstock.model.writing.network import Network
    from penstock.testing import collect, rows_source

    net = Network("afresh")
    net.source("cars", rows_source("time TIMESTAMP, v INT"), timestamp="time").tumble(
        "2 tuples", v="sum(v)"
    ).output("out", to=collect())
    local = LocalEngine(net)
    local.train({"cars": [(0, 1), (1, 2), (2, 3)]}, final=True)
    result = local.train({"cars": [(3, 10), (4, 20), (5, 30)]})
    assert values(result.outputs["out"], "v") == [(3,), (3,), (30,)]
