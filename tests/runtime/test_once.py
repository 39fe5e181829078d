"""`once` leaves windows open for the next run; `close` ends them, and the checkpoint with them."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.model.errors import PenstockError
from runtime.streams import local, minutes, parquet_rows, put, rows_of, source


def run(net, spark, folder, **options):
    with ps.Runtime(net, spark, folder / "checkpoint", once=True, **options) as running:
        assert running.wait(timeout=120)


def counted(rows):
    return sorted((row["k"], row["n"], row["total"]) for row in rows)


def test_two_runs_give_each_window_once(spark, tmp_path):
    net = minutes(ps.Network("twice"), tmp_path, ps.parquet(str(tmp_path / "out")))
    first, second = rows_of(0, 25), rows_of(25, 25)  # the window from 20 to 30 lies across both
    put(tmp_path / "cars", "0", first)
    run(net, spark, tmp_path)
    put(tmp_path / "cars", "1", second)
    run(net, spark, tmp_path, close=True)
    wanted = local(net, cars=[*first, *second]).outputs["out"]
    assert counted(parquet_rows(tmp_path / "out")) == counted(wanted)
    run(net, spark, tmp_path, close=True)  # nothing new: nothing happens
    assert len(parquet_rows(tmp_path / "out")) == len(wanted)
    put(tmp_path / "cars", "2", rows_of(50, 5))
    with pytest.raises(PenstockError, match=r"this checkpoint is closed: .* 'cars' has new input"):
        run(net, spark, tmp_path)
    assert len(parquet_rows(tmp_path / "out")) == len(wanted)


def test_a_closed_network_without_windows_takes_no_more_either(spark, tmp_path):
    net = ps.Network("plain")
    sink = ps.memory()
    source(net, tmp_path).filter("v >= 0").output("out", to=sink)
    put(tmp_path / "cars", "0", rows_of(0, 5))
    run(net, spark, tmp_path, close=True)
    put(tmp_path / "cars", "1", rows_of(5, 5))
    with pytest.raises(PenstockError, match="this checkpoint is closed"):
        run(net, spark, tmp_path)
    assert len(sink.rows) == 5


def test_close_alone_is_refused(tmp_path):
    net = minutes(ps.Network("open"), tmp_path, ps.memory())
    with pytest.raises(PenstockError, match="`close` needs `once`"):
        ps.Runtime(net, None, tmp_path / "checkpoint", close=True)
