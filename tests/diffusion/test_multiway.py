"""Three and more streams, chain and star: equal to nested loops over all of them, on each engine."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.model.errors import NetworkError
from penstock.testing import collect, rows_source, run_network

SCHEMA = "time TIMESTAMP, k INT, v INT"


def network(count: int, shape: str, within, *, on=True, where="", **spread):
    net = ps.Network("many")
    streams = [net.source(f"s{n}", rows_source(SCHEMA), timestamp="time") for n in range(count)]
    joined = ps.join(
        *streams, on="k" if on else (), within=within, shape=shape, where=where, name="all", **spread
    )
    joined.output("out", to=collect())
    return net


def truth(rows: list[list[tuple[int, int, int]]], shape: str, within, *, on=True) -> Counter:
    found = Counter()
    for group in product(*rows):
        near = all(
            -before <= group[n][0] - group[n - 1 if shape == "chain" else 0][0] <= after
            for n, (after, before) in enumerate(within, 1)
        )
        if near and (not on or len({row[1] for row in group}) == 1):
            found[tuple(row[2] for row in group)] += 1
    return found


def given_rows(result, count: int) -> Counter:
    names = ["v", *(f"v_{n}" for n in range(2, count + 1))]
    return Counter(tuple(row[n] for n in names) for row in result.outputs["out"])


streams = st.lists(st.tuples(st.integers(0, 12), st.sampled_from([1, 1, 2])), max_size=9).map(sorted)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rows=st.lists(streams, min_size=3, max_size=4),
    shape=st.sampled_from(["chain", "star"]),
    bounds=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=3, max_size=3),
    on=st.booleans(),
    distribution=st.sampled_from(["hash", "diffused", "auto"]),
    cut=st.integers(1, 5),
)
def test_equal_to_nested_loops(rows, shape, bounds, on, distribution, cut):
    within = bounds[: len(rows) - 1]
    tuples = [[(t, k, n) for n, (t, k) in enumerate(stream)] for stream in rows]
    spread = {} if distribution == "hash" else {"distribution": distribution, "servers": 3, "sample": 2}
    net = network(len(rows), shape, list(within), on=on, **spread)
    # trains by time, so that nothing is late
    trains = [
        {f"s{n}": [row for row in stream if row[0] // cut == part] for n, stream in enumerate(tuples)}
        for part in range(13 // cut + 1)
    ]
    assert given_rows(run_network(net, trains), len(rows)) == truth(tuples, shape, within, on=on)


@pytest.mark.parametrize("shape", ["chain", "star"])
def test_on_each_engine(engine, shape):
    tuples = [[(t, t % 2, t + 100 * n) for t in range(n, 14, n + 1)] for n in range(3)]
    net = network(3, shape, [(3, 2), (2, 4)], distribution="diffused", servers=2, sample=2)
    trains = [
        {f"s{n}": [r for r in s if r[0] // 5 == part] for n, s in enumerate(tuples)} for part in range(3)
    ]
    wanted = truth(tuples, shape, [(3, 2), (2, 4)])
    assert len(wanted) > 10
    assert given_rows(engine(net, *trains), 3) == wanted


def test_a_condition_over_the_whole_row():
    net = network(3, "star", [(3, 3), (3, 3)], where="v + v_2 = v_3 OR v_3 = 0")
    rows = [[(0, 1, 1), (1, 1, 2)], [(0, 1, 2)], [(2, 1, 3), (2, 1, 4), (2, 2, 0)]]
    result = run_network(net, [{f"s{n}": s for n, s in enumerate(rows)}])
    assert given_rows(result, 3) == Counter([(1, 2, 3), (2, 2, 4)])


def test_what_cannot_be_is_refused():
    with pytest.raises(NetworkError, match="a join of fewer than two streams"):
        network(1, "chain", 1)
    with pytest.raises(NetworkError, match="unknown shape of a join\n  found:    'ring'"):
        network(3, "ring", 1)
    with pytest.raises(
        NetworkError, match="within: not one for each stream after the first\n  found:    1 for 2"
    ):
        network(3, "chain", [1])
    with pytest.raises(NetworkError, match="box 'all': within: 'soon' is not a length of time"):
        network(3, "chain", "soon")


def three():
    net = ps.Network("three")
    return [net.source(name, rows_source(SCHEMA), timestamp="time") for name in "abc"]


def joined(streams, trains, **options):
    """The values of all rows that `ps.join` gives."""
    made = ps.join(*streams, on=options.pop("on", "k"), within=5, **options)
    made.output("out", to=collect())
    return [tuple(row.values()) for row in run_network(made.network, trains).outputs["out"]]


def test_a_stream_that_others_must_be_near_shows_its_time():
    """Without the time of `a`, that of `b` would stand under its name: `c` was measured from there."""
    a, b, c = three()
    with pytest.raises(NetworkError, match="'select_1' has left out its timestamp column 'time'"):
        ps.join(a.select("k", x="k"), b, c, on="k", within=5, shape="star")
    with pytest.raises(NetworkError, match="'select_2' has left out its timestamp column 'time'"):
        ps.join(a, b, c.select("k"), on="k", within=5)


def test_a_first_stream_that_nobody_is_measured_from_may_leave_its_time_out():
    a, b, c = three()
    streams = [a.select("k", x="v"), b.select("time", "k"), c.select("time", "k")]
    trains = [{"a": [(0, 1, 7)], "b": [(4, 1, 0)], "c": [(9, 1, 0), (10, 1, 0)]}]
    rows = joined(streams, trains)
    assert [(row[:2], row[2].second, row[3].second) for row in rows] == [((1, 7), 4, 9)]


def test_pairs_are_measured_only_where_they_show_their_own_time():
    """A pair has the earlier of two times, and shows that of its left tuple."""
    a, b, c = three()
    either = a.join(b, on="k", within=5, name="either")
    with pytest.raises(NetworkError, match="'positive' does not show the times"):
        ps.join(either.filter("v > 0", name="positive"), b, c, on="k", within=5, shape="star")
    with pytest.raises(NetworkError, match="'again' does not show the times"):
        ps.join(a, either.connection_point("again"), c, on="k", within=5)
    left_first = a.join(b, on="k", within=(5, 0))
    windows = either.group_by("k").tumble("10 seconds", n="count(*)")
    for shown in (left_first, windows):
        assert ps.join(shown, b, c, on="k", within=5, shape="star").type.timestamp == "time"


def test_by_equal_times():
    """They are one column of the rows, so the third stream has none of its own."""
    a, b, c = three()
    trains = [{"a": [(0, 1, 1), (1, 1, 2)], "b": [(1, 1, 3)], "c": [(0, 1, 4), (1, 1, 5)]}]
    streams = a.select("time", "v"), b.select("time", w="v"), c.select("time", x="v")
    rows = joined(streams, trains, on="time")
    assert [row[1:] for row in rows] == [(2, 3, 5)]
