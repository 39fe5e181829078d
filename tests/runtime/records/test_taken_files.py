"""A consumer may take files away once they are published, also from a run that is killed later."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import penstock as ps
from runtime.streams import SCHEMA, put, rows_of


def network(folder: Path) -> ps.Network:
    net = ps.Network("n")
    cars = net.source("cars", ps.csv(str(folder / "in"), SCHEMA, settle="0"), timestamp="time")
    net.output("out", cars.filter("v >= 0"), to=ps.csv(str(folder / "out")))
    return net


def test_a_killed_idle_run_goes_on_though_its_last_file_was_taken(tmp_path, spark):
    put(tmp_path / "in", "a", rows_of(0, 20))
    with ps.Runtime(network(tmp_path), spark, tmp_path / "checkpoint") as running:
        assert running.wait_idle(120)
        until = time.monotonic() + 60
        while not (tmp_path / "checkpoint/queries/out/published.json").exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        shutil.copytree(tmp_path / "checkpoint", tmp_path / "as after a kill")
    shutil.rmtree(tmp_path / "checkpoint")
    (tmp_path / "as after a kill").rename(tmp_path / "checkpoint")
    for file in (tmp_path / "out").glob("part-*"):
        file.unlink()
    put(tmp_path / "in", "b", rows_of(20, 20))
    with ps.Runtime(network(tmp_path), spark, tmp_path / "checkpoint", once=True) as running:
        assert running.wait(timeout=120)
    rows = [line for file in (tmp_path / "out").glob("part-*") for line in file.read_text().splitlines()]
    assert len(rows) == 20
