"""Memory of a long run at 50,000 tuples a second. It must not grow: windows and retention bound the state.

The network has a tumble, a slide, a latch over 20,000 keys and a connection point that keeps one minute. A
process of its own, which is not counted, writes a file a second. Sampled are the driver, the JVM (resident,
and its heap after a collection) and the workers. The slope is that of a straight line through the samples
after the warm-up.

Figure: megabytes, and megabytes a minute with their standard error, for each part; classes that the JVM still
        loads a minute, and what compiling costs.
Time:   about 11 minutes; --quick about 2.
"""

from __future__ import annotations

import argparse
import gc
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
from benchmarks.common.process_tree import memory_mb, worker_count
from benchmarks.common.results import recording
from benchmarks.common.spark import scratch, session
from benchmarks.common.tables import show
from benchmarks.engine.jobs import START, running

KEYS = 20_000
PARTS = {
    "driver": "driver",
    "jvm": "JVM resident",
    "heap": "JVM heap after gc",
    "workers": "workers",
    # Spark forks another worker when more tasks run at once than before, and keeps it.
    "a_worker": "workers, each",
}


def network(source: Path, out: Path) -> ps.Network:
    net = ps.Network("long")
    reports = net.source(
        "reports", ps.parquet(str(source), schema="time TIMESTAMP, vid INT, spd INT"), timestamp="time"
    )
    kept = reports.filter("spd > 0").connection_point("kept", keep="1 minute", key="vid")
    by_vehicle = kept.group_by("vid")
    net.output(
        "tumble",
        by_vehicle.tumble("5 seconds", n="count(*)", top="max(spd)"),
        to=ps.parquet(str(out / "tumble")),
    )
    net.output(
        "slide",
        kept.slide("10 seconds", every="2 seconds", n="count(*)", mean="avg(spd)"),
        to=ps.parquet(str(out / "slide")),
    )
    state = by_vehicle.latch(
        function=running, state="n BIGINT, top INT", produces="time TIMESTAMP, vid INT, n BIGINT, top INT"
    )
    net.output("latch", state.filter("n % 1000 = 0"), to=ps.parquet(str(out / "latch")))
    return net


def feed(folder: Path, rate: int, seed: int) -> None:
    """The child: write a file every second until ended, and remove files that were read long ago."""
    dice = np.random.default_rng(seed)
    begun, second = time.time(), 0
    while True:
        times = START + second * 1_000_000 + np.arange(rate) * 1_000_000 // rate
        columns = {
            "vid": pa.array(dice.integers(0, KEYS, rate), pa.int32()),
            "spd": pa.array(dice.integers(0, 100, rate), pa.int32()),
        }
        aside = folder / f".{second:06d}.parquet"
        pq.write_table(pa.table({"time": pa.array(times, pa.timestamp("us", "UTC")), **columns}), aside)
        aside.rename(folder / f"{second:06d}.parquet")
        (folder / f"{second - 600:06d}.parquet").unlink(missing_ok=True)
        second += 1
        time.sleep(max(0.0, begun + second - time.time()))


def sample(spark: Any, runtime: Any, feeder: int, begun: float) -> dict[str, float]:
    """Memory now, the JVM's heap after a collection, and how far the run has come.

    Python's references to JVM objects lie in cycles, so Python collects first. Left to itself it collects now
    and then, and the heap is a sawtooth of some 100 MB.
    """
    gc.collect()
    spark._jvm.System.gc()
    # What each pool held right after the collection. The heap itself would hold what trains made since.
    beans = spark._jvm.java.lang.management.ManagementFactory
    pools = beans.getMemoryPoolMXBeans()
    after = [p.getCollectionUsage() for p in pools if p.getType().toString() == "Heap memory"]
    heap = sum(usage.getUsed() for usage in after if usage is not None)
    memory = memory_mb(exclude=feeder)
    tuples = max((sub.rows for sub in runtime.status().subnetworks), default=0)
    return {
        "second": time.time() - begun,
        **memory,
        "a_worker": memory["workers"] / max(1, worker_count(exclude=feeder)),
        "heap": heap / 1e6,
        "classes": beans.getClassLoadingMXBean().getTotalLoadedClassCount(),
        "compiled_s": beans.getCompilationMXBean().getTotalCompilationTime() / 1e3,
        "tuples": tuples,
    }


def slope(samples: list[dict[str, float]], name: str) -> tuple[float, float]:
    """MB a minute, and the standard error of it."""
    x = np.array([s["second"] for s in samples]) / 60
    y = np.array([s[name] for s in samples])
    (rate, _), cov = np.polyfit(x, y, 1, cov=True)
    return float(rate), float(np.sqrt(cov[0, 0]))


def slopes(steady: list[dict[str, float]]) -> list[dict[str, Any]]:
    """For each part of the process tree: first, last and most megabytes, and how fast they grow."""
    rows = []
    for name, shown in PARTS.items():
        rate, error = slope(steady, name)
        values = [sample[name] for sample in steady]
        row = {"part": shown, "first_MB": values[0], "last_MB": values[-1], "most_MB": max(values)}
        rows.append({**row, "slope_MB_per_min": rate, "plus_minus": error})
    return rows


def compiling(steady: list[dict[str, float]]) -> dict[str, float]:
    """What the JVM still loads and compiles: classes, and processor seconds for each million tuples."""
    first, last = steady[0], steady[-1]
    minutes, tuples = (last["second"] - first["second"]) / 60, last["tuples"] - first["tuples"]
    return {
        "classes_per_min": (last["classes"] - first["classes"]) / minutes,
        "cpu_s_per_million": (last["compiled_s"] - first["compiled_s"]) / tuples * 1e6,
    }


def run(spark: Any, root: Path, chosen: argparse.Namespace) -> list[dict[str, float]]:
    """Samples of the whole run."""
    (root / "in").mkdir()
    words = ["--feed", str(root / "in"), str(chosen.rate), str(chosen.seed)]
    feeder = subprocess.Popen([sys.executable, "-m", "benchmarks.engine.memory", *words])
    samples: list[dict[str, float]] = []
    try:
        with ps.Runtime(network(root / "in", root / "out"), spark, root / "checkpoint") as runtime:
            begun = time.time()
            while time.time() - begun < chosen.minutes * 60:
                time.sleep(chosen.every)
                runtime.check()
                samples.append(sample(spark, runtime, feeder.pid, begun))
    finally:
        feeder.terminate()
        feeder.wait()
    return samples


def parse() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--minutes", type=float, help="length of the run")
    parser.add_argument("--rate", type=int, default=50_000, help="tuples a second")
    parser.add_argument("--every", type=float, help="seconds between samples")
    chosen = parser.parse_args()
    chosen.minutes = chosen.minutes or (1.0 if chosen.quick else 10.0)
    chosen.every = chosen.every or (4.0 if chosen.quick else 10.0)
    return chosen


def main() -> int:
    if sys.argv[1:2] == ["--feed"]:
        feed(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
        return 0
    chosen = parse()
    config = {"minutes": chosen.minutes, "rate": chosen.rate, "every_s": chosen.every, "keys": KEYS}
    with recording("engine-memory", chosen, **config) as record, scratch() as root:
        spark = session({"spark.driver.memory": "1g"})
        samples = run(spark, root, chosen)
        warm = len(samples) * 2 // 5
        rows, taken = slopes(samples[warm:]), samples[-1]["tuples"] / samples[-1]["second"]
        record.warm_up = {"samples": samples[:warm]}
        told = {"slopes": rows, "taken_per_s": taken, "compiling": compiling(samples[warm:])}
        record.figures = {**told, "samples": samples[warm:]}
        title = (
            f"Memory over {chosen.minutes:g} minutes, {chosen.rate:,} tuples/s offered, {taken:,.0f}/s taken"
        )
        show(title, rows, str(told["compiling"]))
        spark.stop()
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
