"""Latch with a vectorised function over 100,000 keys: how many tuples a second, in trains of one second; and kill -9.

Prepared Parquet files hold one second each. First as fast as possible, then (full) one second of tuples every second.
Then the process group is killed in mid-stream and started again: the output must be that of an uninterrupted run. The
output counts each key's tuples, so any state that were lost or doubled would show in it.
"""

from __future__ import annotations

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
from common import Feeder, TrainWatch, options, quantile, scratch, session, show, spent, write_result
from overhead_jobs import START, running
from penstock.engine.contract.policy import AsSoonAsPossible

KEYS, FILES, GOAL = 100_000, 2, 300_000
SCHEMA = "time TIMESTAMP, vid INT, spd INT"


def prepare(folder: Path, seconds: int, rate: int, seed: int) -> list[Path]:
    """So many seconds of tuples, two files each."""
    dice = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    made = []
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
            made.append(path)
    return made


def network(source: Path, out: Path) -> ps.Network:
    net = ps.Network("latch")
    reports = net.source("reports", ps.parquet(str(source), schema=SCHEMA), timestamp="time")
    made = reports.group_by("vid").latch(
        function=running, state="n BIGINT, top INT", produces="time TIMESTAMP, vid INT, n BIGINT, top INT"
    )
    net.output("out", made, to=ps.parquet(str(out)))
    return net


def run(
    spark: Any, source: Path, place: Path, rate: int, *, feed: list[Path] | None = None
) -> dict[str, Any]:
    """One run; with `feed`, a second of tuples every second."""
    net = network(source, place / "out")
    source.mkdir(parents=True, exist_ok=True)
    with ps.Runtime(
        net,
        spark,
        place / "checkpoint",
        once=feed is None,
        policy=AsSoonAsPossible(length=rate),
        partitions=2,
    ) as running_:
        watch = TrainWatch(next(iter(running_.queries.values())))
        with spent() as took:
            if feed is None:
                running_.wait(900)
            else:
                feeder = Feeder(feed, source, 1.0, FILES)
                feeder.start()
                feeder.join()
                running_.wait_idle(120)
    return _figures(
        "as fast as possible" if feed is None else "a second of tuples a second",
        watch.seen,
        took,
        rate,
        feeder.given if feed else [],
    )


def _figures(
    mode: str, seen: list[dict[str, Any]], took: Any, rate: int, given: list[float]
) -> dict[str, Any]:
    full = [train for train in seen if train["rows"] >= rate // 2]
    steady = full[len(full) // 3 :]  # the first trains warm up
    span = steady[-1]["done"] - steady[0]["started"]
    rows = sum(t["rows"] for t in steady)
    lengths = [t["done"] - t["started"] for t in steady]
    total = sum(t["rows"] for t in seen)
    cpu = (steady[-1]["cpu"] - steady[0]["cpu"]) / sum(t["rows"] for t in steady[1:]) * 1e6
    row = {
        "mode": mode, "tuples": total, "tuples_per_s": rows / span, "train_p50_s": quantile(lengths, 0.5),
        "train_p99_s": quantile(lengths, 0.99), "cpu_s_per_M": cpu, "with_warm_up": took.cpu / total * 1e6,
        "state_kb_per_train": sum(t["state_bytes"] for t in steady) / len(steady) / 1000,
    }  # fmt: skip
    if given:
        behind = [_done_at(seen, (i + 1) * rate) - at for i, at in enumerate(given)][len(given) // 3 :]
        row |= {"latency_p50_s": quantile(behind, 0.5), "latency_p99_s": quantile(behind, 0.99)}
    return row


def _done_at(seen: list[dict[str, Any]], rows: int) -> float:
    """When so many tuples were through."""
    passed = 0
    for train in seen:
        passed += train["rows"]
        if passed >= rows:
            return float(train["done"])
    return float("inf")


# -- kill -9


def child(source: Path, place: Path, rate: int) -> None:
    spark = session()
    run(spark, source, place, rate)
    spark.stop()


def in_child(source: Path, place: Path, rate: int, kill_after: int | None = None) -> float:
    """Run in a process group of its own; with `kill_after` it is killed when so many trains are committed."""
    begun = time.monotonic()
    command = [sys.executable, __file__, "--child", str(source), str(place), str(rate)]
    process = subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while process.poll() is None:
        if (
            kill_after is not None
            and len(list(place.glob("checkpoint/queries/*/commits/*.json"))) >= kill_after
        ):
            time.sleep(0.13)  # somewhere within the next train
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return time.monotonic() - begun
        time.sleep(0.02)
    if process.returncode:
        raise SystemExit(f"the child failed with exit code {process.returncode}")
    return time.monotonic() - begun


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


def _rows(place: Path) -> Any:
    files = sorted((place / "out").glob("part-*.parquet"))
    table = pa.concat_tables([pq.ParquetFile(f).read() for f in files])
    return table.sort_by([("time", "ascending"), ("vid", "ascending"), ("n", "ascending")]).combine_chunks()


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        child(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
        return 0
    parser = options(__doc__)
    parser.add_argument("--rate", type=int, default=GOAL, help="tuples a second of event time")
    parser.add_argument("--seconds", type=int)
    parser.add_argument("--no-kill", action="store_true")
    parser.add_argument("--live", action="store_true", help="speed 1 also with --quick")
    chosen = parser.parse_args()
    seconds = chosen.seconds or (10 if chosen.quick else 60)
    figures: list[dict[str, Any]] = []
    died: dict[str, Any] = {}
    with scratch() as root:
        prepare(root / "in", seconds, chosen.rate, chosen.seed)
        spark = session()
        figures.append(run(spark, root / "in", root / "fast", chosen.rate))
        shutil.rmtree(root / "fast")
        if chosen.live or not chosen.quick:
            again = sorted((root / "in").glob("*.parquet"))
            figures.append(run(spark, root / "live-in", root / "live", chosen.rate, feed=again))
            shutil.rmtree(root / "live")
        spark.stop()
        if not chosen.no_kill:
            rate = min(chosen.rate, 100_000)
            prepare(root / "kill-in", 8, rate, chosen.seed + 1)
            died = kills(root, root / "kill-in", rate, [4] if chosen.quick else [2, 3, 5])
    shown = [{**dict.fromkeys(figures[-1]), **row} for row in figures]
    show(f"Latch over {KEYS:,} keys (goal: {GOAL:,} tuples/s in trains of a second)", shown)
    if died:
        show("kill -9 of the process group", [died])
    write_result(
        "latch",
        chosen,
        {"rate": chosen.rate, "seconds": seconds, "keys": KEYS},
        {"speed": figures, "kill": died},
    )
    return 0 if not died or died["equal"] else 1


if __name__ == "__main__":
    sys.exit(main())
