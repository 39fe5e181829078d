from penstock.testing import examples, values

ROWS = [(1, "a", 1), (12, "b", 2), (25, "a", 4)]


def test_rolling_time_windows(run):
    result = run(lambda s: s.slide("20 seconds", every="10 seconds", lo="window_start()", v="sum(v)"), ROWS)
    assert values(result.outputs["out"], "lo", "time", "v") == [
        (-10, 1, 1),
        (0, 1, 3),
        (10, 12, 6),
        (20, 25, 4),
    ]


def test_by_key(run):
    result = run(lambda s: s.group_by("k").slide("20 seconds", every="10 seconds", n="count(*)"), ROWS)
    assert values(result.outputs["out"]) == [
        ("a", 1, 1),
        ("a", 1, 1),
        ("a", 25, 1),
        ("a", 25, 1),
        ("b", 12, 1),
        ("b", 12, 1),
    ]


def test_closes_by_its_end(run):
    result = run(lambda s: s.slide("20 seconds", every="10 seconds", lo="window_start()"), ROWS, final=False)
    assert values(result.outputs["out"], "lo") == [(-10,), (0,)]


def test_steps_longer_than_the_window_leave_gaps(run):
    result = run(
        lambda s: s.slide("5 seconds", every="10 seconds", lo="window_start()", n="count(*)"),
        [(1, "a", 1), (7, "a", 1), (14, "a", 1)],
    )
    assert values(result.outputs["out"], "lo", "n") == [(0, 1), (10, 1)]


def test_a_window_that_is_no_multiple_of_its_step(run):
    result = run(
        lambda s: s.slide("15 seconds", every="10 seconds", lo="window_start()"), [(12, "a", 1), (17, "a", 1)]
    )
    assert values(result.outputs["out"], "lo") == [(0,), (10,)]


def test_a_failing_tuple_is_one_dead_letter_not_one_a_window(run, dead):
    rows = [(1, "a", 0), (2, "a", 5)]
    result = run(lambda s: s.slide("30 seconds", every="10 seconds", t="sum(10 / v)", name="rolling"), rows)
    assert values(result.outputs["out"], "t") == [(2.0,)] * 3
    assert dead(result) == [("rolling", 0)]


def test_count_windows(run):
    rows = [(t, "a", 2**t) for t in range(5)]

    def build(s):
        return s.slide("3 tuples", every="2 tuples", v="sum(v)")

    assert values(run(build, rows, final=False).outputs["out"]) == [(0, 7), (2, 28)]
    # every started window, with what it has
    assert values(run(build, rows).outputs["out"]) == [(0, 7), (2, 28), (4, 16)]


def test_count_windows_with_gaps(run):
    rows = [(t, "a", t) for t in range(8)]
    result = run(lambda s: s.slide("2 tuples", every="3 tuples", f="first(v)", l="last(v)"), rows)
    assert values(result.outputs["out"], "f", "l") == [(0, 1), (3, 4), (6, 7)]


def test_count_windows_by_key_over_trains(run):
    rows = [(t, k, t) for t, k in enumerate("aabababb")]

    def build(s):
        return s.group_by("k").slide("2 tuples", every="1 tuple", v="sum(v)")

    whole = values(run(build, rows, final=False).outputs["out"])
    assert whole == [("a", 0, 1), ("a", 1, 4), ("a", 3, 8), ("b", 2, 6), ("b", 4, 10), ("b", 6, 13)]
    assert values(run(build, *[[row] for row in rows], final=False).outputs["out"]) == whole


def test_function(run):
    def build(s):
        return s.slide(
            "20 seconds", every="10 seconds", function=examples.last_two, produces="v INT", stamp="latest"
        )

    result = run(build, [(1, "a", 1), (2, "a", 2), (3, "a", 3)])
    assert values(result.outputs["out"]) == [(3, 2), (3, 2), (3, 3), (3, 3)]
