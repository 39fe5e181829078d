"""Standing queries on a running network: old data and new, several streams, restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from penstock.standing import QueryError, StandingQueries, UnknownHandleError
from penstock.standing.serving.stream_feeds import own_point
from runtime.streams import put

SLOW = "SELECT k, v FROM reports WHERE v < 20 AND k BETWEEN 1 AND 3 BEGIN now - 30 seconds END now"


def network(folder: Path) -> ps.Network:
    net = ps.Network("road")
    cars = net.source(
        "cars",
        ps.csv(str(folder / "cars"), "time TIMESTAMP, k INT, v INT"),
        timestamp="time",
        lateness="5 seconds",
    )
    cars.filter("v >= 0", name="valid").connection_point("reports", keep="1 hour")
    tolls = net.source(
        "tolls", ps.csv(str(folder / "tolls"), "time TIMESTAMP, k INT, toll INT"), timestamp="time"
    )
    tolls.output("paid", to=ps.parquet(str(folder / "paid")))
    return net


def rows(first: int, count: int) -> list[tuple[int, int, int]]:
    return [(second, second % 5, (second * 7) % 40 - 2) for second in range(first, first + count)]


def slow(until: int) -> list[tuple[int, int]]:
    """What SLOW must answer when the stream has come to a second."""
    every = [(k, v) for t, k, v in rows(0, until + 1) if t >= until - 30 and 0 <= v < 20 and 1 <= k <= 3]
    return sorted(every)


def joined(until: int) -> list[tuple[int, int]]:
    """What the join of reports and tolls must answer when the reports have come to a second."""
    tolls = [(s, s % 5) for s in range(0, 40, 4) if s > 30]
    return sorted((k, s) for _, k, v in rows(0, until + 1) if v > 30 for s, toll_k in tolls if toll_k == k)


def found(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


@pytest.mark.slow
def test_old_data_and_new_and_a_restart(spark: Any, tmp_path: Path) -> None:
    put(tmp_path / "cars", "a", rows(0, 50))
    put(tmp_path / "tolls", "a", [(s, s % 5, s) for s in range(0, 40, 4)])
    with ps.Runtime(network(tmp_path), spark, tmp_path / "ckpt") as runtime:
        runtime.wait_idle()
        service = StandingQueries(runtime)
        handle = service.register(SLOW, client="me")
        assert found(handle.invoke()) == slow(49)
        kept = service.register(SLOW, mode="C")
        put(tmp_path / "cars", "b", rows(50, 25))
        runtime.wait_idle()
        assert found(handle.invoke()) == slow(74) == found(kept.invoke())
        assert found(handle.invoke(at=60.0)) == slow(60)
        # a source without a connection point is read beside the network
        pairs = service.register(
            "SELECT r.k, t.toll FROM reports r, tolls t WHERE r.k = t.k AND t.toll > 30 AND r.v > 30"
        )
        runtime.wait_idle()
        assert found(pairs.invoke()) == joined(74)
        with pytest.raises(QueryError, match="did you mean 'reports'"):
            service.register("SELECT k FROM report")
        kept.unregister()
        service.stop()
        runtime.attach_view("fast", "reports", lambda s: s.filter("v > 35"))
        runtime.wait_idle()
        # another service on the same runtime, which knows what was attached meanwhile
        with StandingQueries(runtime) as another:
            assert found(another.invoke(handle.id)) == slow(74)
            fast = another.register("SELECT k, v FROM fast")
            assert found(fast.invoke()) == sorted((k, v) for _, k, v in rows(0, 75) if v > 35)
            fast.unregister()
    with (
        ps.Runtime(network(tmp_path), spark, tmp_path / "ckpt") as runtime,
        StandingQueries(runtime) as service,
    ):
        again = service.handle(handle.id)
        assert found(again.invoke()) == slow(74)
        put(tmp_path / "cars", "c", rows(75, 10))
        runtime.wait_idle()
        assert found(again.invoke()) == slow(84)
        assert found(service.invoke(pairs.id)) == joined(84)
        assert [each["client"] for each in service.list("me")] == ["me"]
        with pytest.raises(UnknownHandleError):
            service.handle(kept.id)


def test_sources_of_similar_names_share_no_point() -> None:
    names = ["a.b", "a-b", "a b", "a_b", "cars"]
    points = [own_point(name) for name in names]
    assert len({*points}) == len(names)
    assert points[-2:] == ["standing_a_b", "standing_cars"]
    assert all(point.replace("_", "").isalnum() for point in points)
