"""What changes between two runs or while one goes on: ad-hoc queries, views, outputs that are added."""

from __future__ import annotations

import re

import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.model.errors import NetworkError, PenstockError
from penstock.store.points.point import PointReader
from penstock.testing import assert_same_rows
from runtime.streams import minutes, put, rows_of, source, until


def test_views_come_and_go(spark, tmp_path):
    sink, asked, later = ps.memory(), ps.memory(), ps.memory()
    net = minutes(ps.Network("viewed"), tmp_path, sink)
    put(tmp_path / "cars", "0", rows_of(0, 60))
    with ps.Runtime(net, spark, tmp_path / "checkpoint") as running:
        assert running.wait_idle(timeout=120)
        running.attach_view("low", "kept", lambda s: s.filter("k < 3"))
        running.attach("asked", "low", lambda s: s.filter("k >= 1"), to=asked)
        with pytest.raises(NetworkError, match="'asked' reads 'low'"):
            running.detach("low")
        # a change of the network leaves what was attached as it is
        running.replace(minutes(ps.Network("viewed"), tmp_path, sink, predicate="v > 5"))
        assert "low" in running.network.points
        put(tmp_path / "cars", "1", rows_of(60, 60))
        until(running, lambda: running.status().boxes["cars"].rows_in == 120)
        assert running.wait_idle(timeout=60)
        expected = [r for r in kept_rows(tmp_path) if r["k"] < 3]
        assert_same_rows(asked.rows, [r for r in expected if r["k"] >= 1])
        # a point is counted once, by who writes it, and boxes of the same name not together
        counted = running.status().boxes
        assert counted["kept"].rows_in == counted["kept"].rows_out == len(kept_rows(tmp_path))
        assert counted["low"].rows_in == len(expected)
        running.detach("asked")
        running.detach("low")
        assert "low" not in running.network.nodes
        with pytest.raises(NetworkError, match="no connection point 'low'"):
            running.attach("late", "low", lambda s: s, to=ps.memory())
        # anew under the same name: once each, not once more
        running.attach_view("low", "kept", lambda s: s.filter("k < 3"))
        running.attach("later", "low", lambda s: s, to=later)
        assert running.wait_idle(timeout=60)
        assert_same_rows(later.rows, [r for r in kept_rows(tmp_path) if r["k"] < 3])


def kept_rows(folder):
    reader = PointReader(folder / "checkpoint", "kept")
    return reader.read().select(["k", "time", "n", "total"]).to_pylist()


def test_an_ad_hoc_query_after_a_restart(spark, tmp_path):
    """Anew it has everything retained; with `resume` what came since; with another window it is refused."""
    net = minutes(ps.Network("asked"), tmp_path, ps.memory())

    def counts(size):
        return lambda s: s.group_by("k").tumble(size, m="count(*)", name="counts")

    put(tmp_path / "cars", "0", rows_of(0, 60))
    plain, again, resumed = ps.memory(), ps.memory(), ps.memory()
    with ps.Runtime(net, spark, tmp_path / "checkpoint") as running:
        running.attach("plain", "kept", lambda s: s, to=plain)
        running.attach("counted", "kept", counts("1 hour"), to=ps.memory())
        assert running.wait_idle(timeout=120)
    before = kept_rows(tmp_path)
    assert_same_rows(plain.rows, before)
    put(tmp_path / "cars", "1", rows_of(60, 60))
    with ps.Runtime(net, spark, tmp_path / "checkpoint") as running:
        running.attach("plain", "kept", lambda s: s, to=resumed, resume=True)
        running.attach("other", "kept", lambda s: s, to=again)
        with pytest.raises(NetworkError, match="size changed"):
            running.attach("counted", "kept", counts("2 hours"), to=ps.memory(), resume=True)
        running.attach("counted", "kept", counts("2 hours"), to=ps.memory())
        until(running, lambda: running.status().boxes["cars"].rows_in == 120)
        assert running.wait_idle(timeout=60)
    after = kept_rows(tmp_path)
    assert len(after) > len(before)
    assert_same_rows(again.rows, after)
    assert_same_rows(resumed.rows, after[len(before) :])


def test_after_a_change_that_failed_the_network_from_before_runs_on(spark, tmp_path):
    """The folder of the new output holds the rows of another checkpoint, which is found late."""

    def net(folder):
        made = ps.Network("going-back")
        source(made, tmp_path).filter("v >= 0").output("out", to=ps.parquet(str(tmp_path / folder)))
        return made

    put(tmp_path / "cars", "0", rows_of(0, 60))
    with ps.Runtime(net("taken"), spark, tmp_path / "other", once=True) as running:
        assert running.wait(timeout=120)
    with ps.Runtime(net("mine"), spark, tmp_path / "checkpoint") as running:
        assert running.wait_idle(timeout=120)
        with pytest.raises(PenstockError) as refused:
            running.replace(net("taken"))
        with pytest.raises(PenstockError, match=re.escape(refused.value.problem)):
            running.wait_idle(timeout=10)
        assert set(running.replace(net("mine"))) == {"out"}
        put(tmp_path / "cars", "1", rows_of(60, 60))
        until(running, lambda: running.status().boxes["cars"].rows_in == 120)
        assert running.wait_idle(timeout=60)
    assert pq.read_table(tmp_path / "mine").num_rows == 120
    assert pq.read_table(tmp_path / "taken").num_rows == 60


def test_an_output_added_after_a_restart_doubles_nothing(spark, tmp_path):
    def net(*, more):
        made = ps.Network("growing")
        chosen = source(made, tmp_path).filter("v >= 0")
        if more:
            chosen.output("extra", to=ps.parquet(str(tmp_path / "extra")))
        chosen.select("k", "v").output("out", to=ps.parquet(str(tmp_path / "out")))
        return made

    for number, more in enumerate((False, True)):
        put(tmp_path / "cars", str(number), rows_of(60 * number, 60))
        with ps.Runtime(net(more=more), spark, tmp_path / "checkpoint", once=True) as running:
            assert running.wait(timeout=120)
    assert pq.read_table(tmp_path / "out").num_rows == 120
    assert pq.read_table(tmp_path / "extra").num_rows == 60
