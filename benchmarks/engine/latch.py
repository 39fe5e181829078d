"""Latch with a vectorised function over 100,000 keys, in trains of one second, and its recovery from kill -9.

Prepared Parquet files hold one second of tuples. They are read as fast as possible, then one second every
second. Then the process group is killed in mid-stream and started again: the output must be that of an
uninterrupted run. The output counts each key's tuples, so lost or doubled state would show.

Figure: tuples a second, seconds of a train, latency from file to commit, processor seconds a million tuples.
Time:   about 6 minutes; --quick about 2.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import penstock as ps
from benchmarks.common.command_line import options
from benchmarks.common.process_tree import Spent, spent
from benchmarks.common.results import recording
from benchmarks.common.running_network import CommittedTrain, Feeder, TrainWatch
from benchmarks.common.spark import scratch, session
from benchmarks.common.tables import quantile, show
from benchmarks.engine.jobs import START, running
from penstock.engine.contract.policy import AsSoonAsPossible

KEYS, FILES, GOAL = 100_000, 2, 300_000
SCHEMA = "time TIMESTAMP, vid INT, spd INT"


def prepare(folder: Path, seconds: int, rate: int, seed: int) -> list[Path]:
    """So many seconds of tuples, two files each."""
    dice = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    files = []
    for second in range(seconds):
        times = START + second * 1_000_000 + np.arange(rate) * 1_000_000 // rate
        for part in range(FILES):
            n = len(times[part::FILES])
            columns = {
                "vid": pa.array(dice.integers(0, KEYS, n), pa.int32()),
                "spd": pa.array(dice.integers(0, 100, n), pa.int32()),
            }
            path = folder / f"{second * FILES + part:06d}.parquet"
            pq.write_table(
                pa.table({"time": pa.array(times[part::FILES], pa.timestamp("us", "UTC")), **columns}), path
            )
            os.utime(path, (1_700_000_000 + second * FILES + part,) * 2)
            files.append(path)
    return files


def network(source: Path, out: Path) -> ps.Network:
    net = ps.Network("latch")
    reports = net.source("reports", ps.parquet(str(source), schema=SCHEMA), timestamp="time")
    counts = reports.group_by("vid").latch(
        function=running, state="n BIGINT, top INT", produces="time TIMESTAMP, vid INT, n BIGINT, top INT"
    )
    net.output("out", counts, to=ps.parquet(str(out)))
    return net


def run(spark: Any, source: Path, work: Path, rate: int, *, feed: list[Path] | None = None) -> dict[str, Any]:
    """One run; with `feed`, a second of tuples every second."""
    source.mkdir(parents=True, exist_ok=True)
    net, policy = network(source, work / "out"), AsSoonAsPossible(length=rate)
    given: list[float] = []
    with ps.Runtime(
        net, spark, work / "checkpoint", once=feed is None, close=feed is None, policy=policy, partitions=2
    ) as runtime:
        watch = TrainWatch(next(iter(runtime.queries.values())))
        with spent() as took:
            if feed is None:
                runtime.wait(900)
            else:
                feeder = Feeder(feed, source, 1.0, FILES)
                feeder.start()
                feeder.join()
                runtime.wait_idle(120)
                given = feeder.given
    return _figures(watch.seen, took, rate, given)


def _figures(seen: list[CommittedTrain], took: Spent, rate: int, given: list[float]) -> dict[str, Any]:
    full = [train for train in seen if train.rows >= rate // 2]
    steady = full[len(full) // 3 :]  # the first trains warm up
    lengths = [train.done - train.started for train in steady]
    tuples, steady_tuples = sum(t.rows for t in seen), sum(t.rows for t in steady)
    cpu = steady[-1].cpu - steady[0].cpu
    row = {
        "mode": "a second of tuples a second" if given else "as fast as possible",
        "tuples": tuples,
        "tuples_per_s": steady_tuples / (steady[-1].done - steady[0].started),
        "train_p50_s": quantile(lengths, 0.5),
        "train_p99_s": quantile(lengths, 0.99),
        "cpu_s_per_M": cpu / (steady_tuples - steady[0].rows) * 1e6,
        "cpu_s_per_M_with_warm_up": took.cpu / tuples * 1e6,
        "state_kb_per_train": sum(t.state_bytes for t in steady) / len(steady) / 1000,
    }
    if given:
        behind = [_done_at(seen, (i + 1) * rate) - at for i, at in enumerate(given)][len(given) // 3 :]
        row |= {"latency_p50_s": quantile(behind, 0.5), "latency_p99_s": quantile(behind, 0.99)}
    return row


def _done_at(seen: list[CommittedTrain], rows: int) -> float:
    """When so many tuples were through."""
    passed = 0
    for train in seen:
        passed += train.rows
        if passed >= rows:
            return train.done
    return float("inf")


# -- kill -9


def child(source: Path, work: Path, rate: int) -> None:
    spark = session()
    run(spark, source, work, rate)
    spark.stop()


def in_child(source: Path, work: Path, rate: int, kill_after: int | None = None) -> float:
    """Run in a process group of its own; with `kill_after` it is killed when so many trains are committed."""
    begun = time.monotonic()
    command = [sys.executable, "-m", "benchmarks.engine.latch", "--child", str(source), str(work), str(rate)]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, start_new_session=True, stdout=quiet, stderr=quiet)
    while process.poll() is None:
        if kill_after is not None and _committed(work) >= kill_after:
            time.sleep(0.13)  # somewhere within the next train
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return time.monotonic() - begun
        time.sleep(0.02)
    if process.returncode:
        raise RuntimeError(f"the child failed with exit code {process.returncode}")
    return time.monotonic() - begun


def _committed(work: Path) -> int:
    return len(list(work.glob("checkpoint/queries/*/commits/*.json")))


def kills(root: Path, source: Path, rate: int, points: list[int]) -> dict[str, Any]:
    """An uninterrupted run, and one that is killed at each of the points."""
    in_child(source, root / "whole", rate)
    for committed in points:
        in_child(source, root / "killed", rate, committed)
    restart = in_child(source, root / "killed", rate)
    one, other = _rows(root / "whole"), _rows(root / "killed")
    return {
        "kills": len(points),
        "tuples": one.num_rows,
        "equal": one.equals(other),
        "last_restart_to_end_s": restart,
    }


def _rows(work: Path) -> pa.Table:
    files = sorted((work / "out").glob("part-*.parquet"))
    table = pa.concat_tables([pq.ParquetFile(f).read() for f in files])
    return table.sort_by([("time", "ascending"), ("vid", "ascending"), ("n", "ascending")]).combine_chunks()


# -- the script


def speed(root: Path, chosen: argparse.Namespace) -> list[dict[str, Any]]:
    """As fast as possible; then, unless this is quick, in real time."""
    prepare(root / "in", chosen.seconds, chosen.rate, chosen.seed)
    spark = session()
    rows = [run(spark, root / "in", root / "fast", chosen.rate)]
    shutil.rmtree(root / "fast")
    if chosen.live or not chosen.quick:
        files = sorted((root / "in").glob("*.parquet"))
        rows.append(run(spark, root / "live-in", root / "live", chosen.rate, feed=files))
        shutil.rmtree(root / "live")
    spark.stop()
    return rows


def after_kills(root: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    rate = min(chosen.rate, 100_000)
    prepare(root / "kill-in", 8, rate, chosen.seed + 1)
    return kills(root, root / "kill-in", rate, [4] if chosen.quick else [2, 3, 5])


def parse() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--rate", type=int, default=GOAL, help="tuples a second of event time")
    parser.add_argument("--seconds", type=int, help="of input")
    parser.add_argument("--no-kill", action="store_true", help="leave out the kills")
    parser.add_argument("--live", action="store_true", help="in real time also with --quick")
    chosen = parser.parse_args()
    chosen.seconds = chosen.seconds or (10 if chosen.quick else 60)
    return chosen


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        child(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
        return 0
    chosen = parse()
    config = {"rate": chosen.rate, "seconds": chosen.seconds, "keys": KEYS}
    with recording("engine-latch", chosen, **config) as record, scratch() as root:
        rows = speed(root, chosen)
        record.figures = {"speed": rows}
        show(f"Latch over {KEYS:,} keys (goal: {GOAL:,} tuples/s in trains of a second)", rows[::-1])
        if not chosen.no_kill:
            record.figures["kill"] = killed = after_kills(root, chosen)
            show("kill -9 of the process group", [killed])
            if not killed["equal"]:
                record.found_wrong("the output after the kills differs from that of an uninterrupted run")
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
