"""A run with a recovery target on Spark: a machine that goes down, and the rows of an undisturbed run."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.spark.recovery import version_folder
from penstock.engine.spark.recovery.state_versions import StateVersions
from penstock.engine.spark.runs.train_run import TrainRun
from penstock.engine.spark.tasks import state
from penstock.engine.spark.trains import train
from penstock.store.dead_letters import DeadLetters
from penstock.testing import examples

ROWS = "time TIMESTAMP, k INT, v INT"


def put(folder: Path, number: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"2024-01-01 00:{number:02d}:{i:02d},{i % 5},{number * 60 + i}\n" for i in range(60)]
    (folder / f"{number}.csv").write_text("".join([*lines, "rubbish\n"]))


def network(source: Path, out: Path) -> ps.Network:
    """Native boxes, two stages, a point, and a sub-network with state that reads it."""
    net = ps.Network("windows")
    rows = net.source("rows", ps.csv(str(source), ROWS, settle="0"), timestamp="time", stays=True)
    fine = rows.filter("100 / v > -1", name="fine")  # v = 0 fails: a dead letter
    kept = fine.group_by("k").tumble("20 seconds", n="count(*)", total="sum(v)").connection_point("kept")
    again = kept.group_by("k").latch(
        function=examples.running_count,
        state="seen BIGINT",
        produces="time TIMESTAMP, k INT, n BIGINT, seen BIGINT",
        name="number",
    )
    again.output("numbered", to=ps.parquet(str(out / "numbered")))
    net.output("all", fine, to=ps.csv(str(out / "all")))
    above = fine.filter("100 / (v - 7) > 0", name="above")  # leads into no stage
    net.output("some", above, to=ps.csv(str(out / "some")))
    sums = fine.group_by("k").tumble("30 seconds", m="max(v)", name="sums").group_by("m", name="by_m")
    counted = sums.tumble("1 minute", n="count(*)", name="counted")
    net.output("maxima", counted, to=ps.parquet(str(out / "max")))
    return net


def run(spark, source: Path, folder: Path, recovery: str | None, *, close: bool = False) -> ps.Runtime:
    state._RESIDENT.clear()
    runtime = ps.Runtime(
        network(source, folder / "out"),
        spark,
        folder / "checkpoint",
        once=True,
        close=close,
        partitions=2,
        policy=AsSoonAsPossible(100),
        recovery=recovery,
    )
    with runtime:
        assert runtime.wait(timeout=120)
    return runtime


def written(folder: Path):
    texts = "".join(f.read_text() for name in ("all", "some") for f in (folder / "out" / name).glob("*.csv"))
    tables = [pq.read_table(f) for name in ("numbered", "max") for f in (folder / "out" / name).glob("*")]
    rows = sorted(str(row) for table in tables for row in table.to_pylist())
    return (
        sorted(texts.splitlines()),
        rows,
        sorted(DeadLetters(folder / "checkpoint").read()["raw"].to_pylist()),
    )


@pytest.mark.slow
@pytest.mark.parametrize(("recovery", "frames"), [("1 hour", False), ("100 ms", False), ("1 hour", True)])
def test_the_machine_goes_down_between_two_runs(spark, tmp_path, monkeypatch, caplog, recovery, frames):
    if frames:
        monkeypatch.setattr(train, "train_run", TrainRun)
    memory, source = tmp_path / "memory", tmp_path / "in"
    memory.mkdir()
    monkeypatch.setattr(version_folder, "MEMORY", memory)
    monkeypatch.setattr(version_folder, "_has_room", lambda _folder: True)
    put(source, 0)
    put(source, 1)
    with monkeypatch.context() as patched:
        patched.setattr(StateVersions, "close", lambda _versions: None)  # as if it was killed
        runtime = run(spark, source, tmp_path / "a", recovery)
        assert "snapshots in the background" in runtime.explain()
    assert not list((tmp_path / "a").rglob("state"))
    version_folder.shutil.rmtree(memory)
    memory.mkdir()
    put(source, 2)
    run(spark, source, tmp_path / "a", recovery, close=True)
    run(spark, source, tmp_path / "b", None, close=True)
    assert written(tmp_path / "a") == written(tmp_path / "b")
    if recovery == "1 hour":
        assert "run again" in caplog.text
    assert not list(memory.iterdir())
