"""Memory of a long run at 50,000 tuples a second: it must not grow, because state is bounded by windows and retention.

A tumble, a slide, a latch over 20,000 keys and a connection point that keeps one minute; one file a second, written by
a process of its own that is not counted. Sampled: driver, JVM (resident, and its heap after a collection), workers.
The slope is that of a straight line through the samples after the warm-up.
"""

from __future__ import annotations

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
from common import memory_mb, options, scratch, session, show, write_result
from overhead_jobs import START, running

KEYS = 20_000


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
    """The child: a file every second until it is ended; what was read long ago is removed."""
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


def sample(spark: Any, running_: Any, feeder: int, begun: float) -> dict[str, float]:
    """Memory now, the JVM's heap after a collection, and how far the run has come.

    What Python holds of the JVM's objects lies in cycles, so Python's collection comes first; by itself it comes now and then, and the heap
    is a sawtooth of some 100 MB.
    """
    gc.collect()
    spark._jvm.System.gc()
    # what each pool held when that collection was through: reading the heap later would count what trains have made since
    pools = spark._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    after = [p.getCollectionUsage() for p in pools if p.getType().toString() == "Heap memory"]
    heap = sum(usage.getUsed() for usage in after if usage is not None)
    found = memory_mb(exclude=feeder)
    status = {s.name: s.rows for s in running_.status().subnetworks}
    return {
        "second": time.time() - begun, **found, "heap": heap / 1e6,
        "tuples": max(status.values(), default=0),
    }  # fmt: skip


def slope(samples: list[dict[str, float]], name: str) -> tuple[float, float]:
    """MB a minute, and the standard error of it."""
    x = np.array([s["second"] for s in samples]) / 60
    y = np.array([s[name] for s in samples])
    (rate, _), cov = np.polyfit(x, y, 1, cov=True)
    return float(rate), float(np.sqrt(cov[0, 0]))


def main() -> int:
    if sys.argv[1:2] == ["--feed"]:
        feed(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
        return 0
    parser = options(__doc__)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--rate", type=int, default=50_000)
    parser.add_argument("--every", type=float, help="seconds between samples")
    chosen = parser.parse_args()
    minutes = chosen.minutes or (1.0 if chosen.quick else 10.0)
    every = chosen.every or (4.0 if chosen.quick else 10.0)
    spark = session(**{"spark.driver.memory": "1g"})
    samples: list[dict[str, float]] = []
    with scratch() as root:
        (root / "in").mkdir()
        command = [sys.executable, __file__, "--feed", str(root / "in"), str(chosen.rate), str(chosen.seed)]
        feeder = subprocess.Popen(command)
        try:
            with ps.Runtime(network(root / "in", root / "out"), spark, root / "checkpoint") as running_:
                begun = time.time()
                while time.time() - begun < minutes * 60:
                    time.sleep(every)
                    running_.check()
                    samples.append(sample(spark, running_, feeder.pid, begun))
        finally:
            feeder.terminate()
            feeder.wait()
    steady = samples[len(samples) * 2 // 5 :]
    rows = []
    for name in ("driver", "jvm", "heap", "workers"):
        rate, error = slope(steady, name)
        rows.append({
            "part": {"jvm": "JVM resident", "heap": "JVM heap after gc"}.get(name, name), "first_MB": steady[0][name], "last_MB": steady[-1][name],
            "most_MB": max(s[name] for s in steady), "slope_MB_per_min": rate, "plus_minus": error,
        })  # fmt: skip
    done = samples[-1]["tuples"] / samples[-1]["second"]
    show(f"Memory over {minutes:g} minutes, {chosen.rate:,} tuples/s offered, {done:,.0f}/s taken", rows)
    config = {"minutes": minutes, "rate": chosen.rate, "every": every, "keys": KEYS}
    write_result("memory", chosen, config, {"slopes": rows, "taken_per_s": done, "samples": samples})
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
