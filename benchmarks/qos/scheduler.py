"""A strict sub-network beside a bulk one that could fill all cores: does the scheduler really decide?

The strict one gets a small file four times a second and is to answer within two seconds. The bulk one has
far more input than can be done, all of it there from the start, and costs 20 CPU-microseconds a tuple. Both
run alone, then together under each scheme, nothing is shed. Driver and watcher are processes of their own:
the delay of a strict answer is from the stamp of its file to the stamp of its output file, the throughput of
the bulk one is what the watcher saw. The first seconds are not counted.

Figure: p50, p99 and largest delay of the strict output, tuples a second of the bulk output, and the longest
        bulk train, for each scheme and for each of the two alone.
Time:   about 8 minutes; --quick about 4.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import penstock as ps
from benchmarks.common.command_line import options
from benchmarks.common.results import Record, recording
from benchmarks.common.spark import scratch, session
from benchmarks.common.tables import quantile, show
from benchmarks.qos.answers import amounts_by_file
from benchmarks.qos.traffic import steady, worst_lag, write_files
from benchmarks.qos.trial import Observed, run_trial
from benchmarks.qos.workload import SCHEMA, Burn
from penstock.model.control_settings import SCHEMES, Scheme
from penstock.store.catalog.catalog import Catalog

STRICT_RATE, BULK_TUPLES = 2_000.0, 4_000_000
BURN_US = 20.0
STRICT = ps.QoS(delay=[(0, 1.0), (2, 1.0), (4, 0.0)], weight=4)
BULK = ps.QoS(delay=[(0, 1.0), (600, 1.0), (1200, 0.0)])


def network(into: Path, out: Path, backlog: Path, parts: Sequence[str]) -> ps.Network:
    """Two sub-networks that share nothing but the machine, or one of them."""
    net = ps.Network("scheduled")
    if "strict" in parts:
        asked = net.source("asked", ps.csv(str(into), schema=SCHEMA, settle="0 seconds"), timestamp="time")
        answers = asked.filter("spd >= 0", name="answered").select("time", "id")
        net.output("strict", answers, to=ps.parquet(str(out / "strict")), qos=STRICT)
    if "bulk" in parts:
        old = net.source("old", ps.csv(str(backlog), schema=SCHEMA, settle="0 seconds"), timestamp="time")
        worked = old.apply(Burn(BURN_US), reads="spd", produces="score DOUBLE", name="burn")
        net.output("bulk", worked.select("time", "id"), to=ps.parquet(str(out / "bulk")), qos=BULK)
    return net


@dataclass(frozen=True)
class Case:
    """What runs, and how it is scheduled; no scheme: as without control."""

    name: str
    parts: tuple[str, ...]
    scheme: Scheme | None = None

    def control(self) -> Any:
        if self.scheme is None:
            return None
        return ps.Control(priority=self.scheme, shed=False)


CASES = (
    Case("strict alone", ("strict",)),
    Case("bulk alone", ("bulk",)),
    Case("no control", ("strict", "bulk")),
    *(Case(scheme, ("strict", "bulk"), scheme) for scheme in SCHEMES),
)


def strict_delays(observed: Observed, since: float) -> list[float]:
    """The delay of each strict answer to a file that came after `since` seconds."""
    delays: list[float] = []
    for output, name, at in observed.seen:
        if output == "strict":
            for file, count in amounts_by_file(observed.out / output / name).items():
                if observed.arrivals[file] >= observed.arrivals[0] + since:
                    delays += [at - observed.arrivals[file]] * round(count)
    return delays


def bulk_rate(observed: Observed) -> float:
    """Tuples a second that came out, from the start to the last file: trains may be few and long."""
    files = [(at, name) for output, name, at in observed.seen if output == "bulk"]
    rows = sum(pq.ParquetFile(observed.out / "bulk" / name).metadata.num_rows for _, name in files)
    last = max((at for at, _ in files), default=observed.arrivals[0])
    return rows / (last - observed.arrivals[0]) if files else 0.0


def longest_train(observed: Observed, subnetwork: str = "bulk") -> float:
    """Seconds of the longest bulk train, as the runtime noted them."""
    catalog = Catalog(observed.folder / "checkpoint" / "catalog.db")
    try:
        durations = [train.duration for train in catalog.trains(subnetwork, last=10_000)]
    finally:
        catalog.close()
    return max(durations[1:] or durations, default=float("nan"))  # the first one warms up


def measure(case: Case, observed: Observed, since: float) -> dict[str, Any]:
    delays = strict_delays(observed, since) if "strict" in case.parts else []
    came = [at for at in observed.arrivals if at >= observed.arrivals[0] + since]
    return {
        "case": case.name,
        "strict_p50_s": quantile(delays, 0.5),
        "strict_p99_s": quantile(delays, 0.99),
        "strict_max_s": max(delays, default=float("nan")),
        "strict_answered": len(delays) / (len(came) * STRICT_RATE * 0.25) if delays else None,
        "bulk_per_s": bulk_rate(observed) if "bulk" in case.parts else None,
        "bulk_longest_train_s": longest_train(observed) if "bulk" in case.parts else None,
        "driver_lag_s": worst_lag(observed.arrivals),
        "load": observed.load,
    }


def ratios(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each scheme against both alone, and against FIFO and round robin."""
    by = {row["case"]: row for row in rows}
    worse = [by[name]["strict_p99_s"] for name in ("fifo", "round-robin") if name in by]
    return [
        {
            "case": name,
            "p99_over_alone_s": by[name]["strict_p99_s"] - by["strict alone"]["strict_p99_s"],
            "p99_of_the_better_other": by[name]["strict_p99_s"] / min(worse) if worse else None,
            "bulk_of_alone": by[name]["bulk_per_s"] / by["bulk alone"]["bulk_per_s"],
        }
        for name in SCHEMES
        if name in by and "strict alone" in by and "bulk alone" in by
    ]


def run(chosen: argparse.Namespace, root: Path, record: Record) -> None:
    spark, folders = session(), _folders(root)
    prepared = write_files(steady("asked", chosen.seconds, STRICT_RATE), root / "strict", chosen.seed)
    files = BULK_TUPLES / 100_000
    backlog = write_files(steady("old", files * 0.25, 100_000 / 0.25), root / "backlog", chosen.seed + 1)
    order = [case for case in CASES if chosen.only is None or case.name in chosen.only]
    random.Random(chosen.seed).shuffle(order)
    warm = Case("warm-up", ("strict", "bulk"))
    for case in (warm, *order):
        make = partial(network, backlog=backlog, parts=case.parts)
        observed = run_trial(spark, next(folders), prepared, make, case.control(), patience=5.0)
        if case is not warm:
            record.figures["cases"].append(measure(case, observed, chosen.since))
            print(record.figures["cases"][-1], flush=True)
    spark.stop()


def _folders(root: Path) -> Iterator[Path]:
    return (root / f"{number:02d}" for number in itertools.count())


def parse() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--only", nargs="+", choices=[case.name for case in CASES])
    chosen = parser.parse_args()
    chosen.seconds, chosen.since = (25.0, 8.0) if chosen.quick else (45.0, 10.0)
    return chosen


def main() -> int:
    chosen = parse()
    config = {"strict_rate": STRICT_RATE, "bulk_tuples": BULK_TUPLES, "burn_us": BURN_US}
    with recording("qos-scheduler", chosen, seconds=chosen.seconds, **config) as record, scratch() as root:
        record.figures = {"cases": []}
        run(chosen, root, record)
        record.figures["cases"].sort(key=lambda row: [case.name for case in CASES].index(row["case"]))
        record.figures["ratios"] = ratios(record.figures["cases"])
        show("A strict sub-network beside a bulk one", record.figures["cases"])
        if record.figures["ratios"]:
            show("Against each alone, and against FIFO and round robin", record.figures["ratios"])
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
