"""10,000 standing queries through Spark, while data flows.

One network leads Parquet files to a connection point, and one service answers queries on it. A history is
read first, at full speed. Then files arrive at a fixed rate, while queries are registered and invoked; the
first seconds of that are warm-up. At the end a new query is asked over the whole history. Answers are not
checked here; the tests do that.

Figure: tuples a second, seconds until a tuple is visible, milliseconds of a registration, of an invocation
        and of a new query over old data, and processor microseconds a tuple.
Time:   about 6 minutes; --quick about 1.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

import penstock as ps
from benchmarks.common.command_line import given, options
from benchmarks.common.process_tree import Spent, memory_mb, spent
from benchmarks.common.results import Record, recording
from benchmarks.common.running_network import Feeder
from benchmarks.common.spark import scratch, session
from benchmarks.common.tables import quantile, show
from penstock.cli.standing.serve import NICE, SWITCH_INTERVAL
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.standing import Limits, StandingQueries

SCHEMA = "time TIMESTAMP, a INT, b INT, c INT, v INT"
DOMAIN = 1_000_000
START = 1_767_225_600_000_000


def parse() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--rate", type=int, default=100_000, help="tuples a second")
    parser.add_argument("--seconds", type=int, default=60, help="how long files arrive")
    parser.add_argument("--history", type=int, default=10_000_000, help="tuples retained before")
    parser.add_argument("--warm", type=int, default=60, help="seconds at the same rate before the clock runs")
    parser.add_argument(
        "--interval", type=float, default=0.0, help="seconds between the departures of trains"
    )
    parser.add_argument("--nice", type=int, default=NICE, help="how much lower the priority of Spark is")
    parser.add_argument("--period", type=float, default=0.5, help="seconds between files")
    parser.add_argument("--mode", default=None, help="P, C or NoMat for all queries")
    chosen = parser.parse_args()
    if chosen.quick:
        small = {"queries": 1_000, "rate": 20_000, "seconds": 10, "history": 200_000, "warm": 3}
        vars(chosen).update(small)
    return chosen


def main() -> int:
    chosen = parse()
    sys.setswitchinterval(SWITCH_INTERVAL)
    with recording("standing-load", chosen, **given(chosen)) as record, scratch() as folder:
        record.figures = {}
        measure(chosen, folder, record)
        report(record.figures)
    return record.exit_code


def measure(chosen: argparse.Namespace, folder: Path, record: Record) -> None:
    rng = np.random.default_rng(chosen.seed)
    history, live = prepare(chosen, folder, rng)
    net = ps.Network("standing")
    source = net.source("cars", ps.parquet(str(folder / "in"), schema=SCHEMA), timestamp="time")
    source.connection_point("reports", keep="1 hour")
    policy = AsSoonAsPossible(interval=chosen.interval)
    with ps.Runtime(net, session(nice=chosen.nice), folder / "ckpt", policy=policy) as runtime:
        service = StandingQueries(runtime, limits=Limits(queries=1_000_000), memory=6 << 30)
        service.feed("reports")
        figures = record.figures
        figures["history_s"] = read_history(service, history, folder, chosen.history)
        handles, figures["register_bulk_ms_each"] = register(service, queries(chosen, rng), chosen.mode)
        warm = int(chosen.warm / chosen.period)
        record.warm_up = flow(chosen, service, handles, live[:warm], folder, rng)
        figures |= flow(chosen, service, handles, live[warm:], folder, rng)
        figures |= old_data(service, rng)
        figures |= {"memory_mb": memory_mb(), "stored_bytes": service.engine.stored()}
        service.stop()


def read_history(service: StandingQueries, history: list[Path], folder: Path, tuples: int) -> float:
    """Seconds until the whole history is visible."""
    begun = time.perf_counter()
    for path in history:
        path.rename(folder / "in" / path.name)
    _until(service, tuples)
    return time.perf_counter() - begun


def register(service: StandingQueries, texts: list[str], mode: str | None) -> tuple[list[Any], float]:
    """Handles of all queries, and milliseconds for each."""
    begun, handles = time.perf_counter(), []
    for at in range(0, len(texts), 1000):
        handles += service.register_all(texts[at : at + 1000], client="bench", mode=mode)
    took = time.perf_counter() - begun
    print(f"registered {len(handles)} in {took:.1f} s", flush=True)
    return handles, took / len(texts) * 1e3


# -- data and queries


def prepare(chosen: argparse.Namespace, folder: Path, rng: Any) -> tuple[list[Path], list[Path]]:
    aside = folder / "aside"
    aside.mkdir()
    (folder / "in").mkdir()
    first, step = 0, max(1, chosen.history // 20)
    history, live = [], []
    while first < chosen.history:
        history.append(_file(aside, first, min(step, chosen.history - first), chosen.rate, rng))
        first += step
    first = chosen.history
    size = int(chosen.rate * chosen.period)
    for _ in range(int((chosen.warm + chosen.seconds) / chosen.period)):
        live.append(_file(aside, first, size, chosen.rate, rng))
        first += size
    return history, live


def _file(folder: Path, first: int, count: int, rate: int, rng: Any) -> Path:
    at = START + (np.arange(first, first + count) * 1_000_000) // rate
    columns = {name: rng.integers(0, DOMAIN, count).astype(np.int32) for name in ("a", "b", "c", "v")}
    table = pa.table({"time": pa.array(at).cast(pa.timestamp("us", "UTC")), **columns})
    path = folder / f"{first:012d}.parquet"
    pq.write_table(table, path, row_group_size=1 << 20)
    return path


def queries(chosen: argparse.Namespace, rng: Any) -> list[str]:
    """Two range factors each: 0.1 % of the tuples in the median, 1 % at most; windows of a million tuples."""
    seconds = max(1, 1_000_000 // chosen.rate)
    share = np.clip(np.exp(rng.normal(np.log(0.001), 0.8, chosen.queries)), 1e-5, 0.01)
    split = rng.uniform(0.35, 0.65, chosen.queries)
    return [
        _query(float(s), float(u), rng, f"BEGIN now - {seconds} seconds END now")
        for s, u in zip(share, split, strict=True)
    ]


def _query(share: float, split: float, rng: Any, window: str) -> str:
    one, other = sorted(rng.choice(["a", "b", "c"], 2, replace=False))
    first, second = _range(one, share**split, rng), _range(other, share ** (1 - split), rng)
    return f"SELECT time, v FROM reports WHERE {first} AND {second} {window}"


def _range(column: str, share: float, rng: Any) -> str:
    width = max(1, int(DOMAIN * share))
    low = int(rng.integers(0, DOMAIN - width + 1))
    return f"{column} BETWEEN {low} AND {low + width - 1}"


# -- while data flows


def flow(
    chosen: argparse.Namespace,
    service: StandingQueries,
    handles: list[Any],
    live: list[Path],
    folder: Path,
    rng: Any,
) -> dict[str, Any]:
    """Files arrive at their rate, while a client asks and a thread notes what is visible."""
    seen: list[tuple[float, int]] = []
    done = threading.Event()
    asking = _Client(service, handles, rng, chosen)
    feeder = Feeder(live, folder / "in", chosen.period)
    before, size = service.engine.view.prefixes["reports"].count, int(chosen.rate * chosen.period)
    threading.Thread(target=_watch, args=(service, seen, done), daemon=True).start()
    machine = _machine_seconds()
    with spent() as took:
        feeder.start()
        asking.start()
        feeder.join()
        _until(service, before + size * len(live))
        done.set()
    asking.done.set()
    asking.join()
    others = _machine_seconds() - machine - took.cpu
    lags = _lags(feeder.given, seen, before, size)
    return {
        **_cost(size * len(live), took, others),
        **asking.figures(),
        "lag_s": _figures(lags),
        "lags": lags,
    }


def _cost(tuples: int, took: Spent, others: float) -> dict[str, float]:
    return {
        "tuples": tuples,
        "tuples_per_second": tuples / took.wall,
        "wall_s": took.wall,
        "cpu_s": took.cpu,
        "cpu_us_per_tuple": took.cpu / tuples * 1e6,
        "cpu_s_of_others": others,
    }


def _machine_seconds() -> float:
    """Busy processor seconds of the whole machine, to see what others took."""
    used = psutil.cpu_times()
    return float(used.user + used.nice + used.system + used.irq + used.softirq)


def _watch(service: StandingQueries, seen: list[tuple[float, int]], done: threading.Event) -> None:
    version = service.engine.version
    while not done.is_set():
        if service.engine.wait(version, 0.5):
            version = service.engine.version
            seen.append((time.time(), service.engine.view.prefixes["reports"].count))


class _Client(threading.Thread):
    """Invokes random queries, some hundred a second, and registers a new one now and then."""

    def __init__(
        self, service: StandingQueries, handles: list[Any], rng: Any, chosen: argparse.Namespace
    ) -> None:
        super().__init__(daemon=True)
        self.service, self.handles, self.rng, self.chosen = service, handles, rng, chosen
        self.done = threading.Event()
        self.registered: list[float] = []
        self.invoked: list[float] = []
        self.small: list[float] = []
        self.rows: list[int] = []

    def figures(self) -> dict[str, Any]:
        return {
            "registration_ms": _figures(self.registered),
            "invocation_ms": _figures(self.invoked),
            "invocation_up_to_1000_rows_ms": _figures(self.small),
            "rows_p50": quantile(self.rows, 0.5),
        }

    def run(self) -> None:
        dice, fresh = random.Random(self.chosen.seed), []
        while not self.done.is_set():
            for _ in range(20):
                handle = dice.choice(self.handles)
                begun = time.perf_counter()
                rows = handle.invoke().num_rows
                took = (time.perf_counter() - begun) * 1e3
                self.invoked.append(took)
                self.rows.append(rows)
                if rows <= 1000:
                    self.small.append(took)
                time.sleep(0.01)
            text = _query(0.001, 0.5, self.rng, "BEGIN now - 10 seconds END now")
            begun = time.perf_counter()
            fresh.append(self.service.register(text, client="new"))
            self.registered.append((time.perf_counter() - begun) * 1e3)
            if len(fresh) > 20:
                fresh.pop(0).unregister()


def _lags(given: list[float], seen: list[tuple[float, int]], before: int, size: int) -> list[float]:
    """For each file: from its arrival until all its tuples were visible."""
    lags, at = [], 0
    for number, when in enumerate(given):
        while seen[at][1] < before + (number + 1) * size:
            at += 1
        lags.append(seen[at][0] - when)
    return lags


def old_data(service: StandingQueries, rng: Any) -> dict[str, Any]:
    """A new query over everything retained, from its text to its answer."""
    took, rows = [], 0
    for _ in range(10):
        text = _query(0.0001, 0.5, rng, "")
        begun = time.perf_counter()
        handle = service.register(text)
        rows = handle.invoke().num_rows
        took.append((time.perf_counter() - begun) * 1e3)
        handle.unregister()
    count = service.engine.view.prefixes["reports"].count
    return {
        "new_query_over": count,
        "new_query_rows": rows,
        "new_query_ms": _figures(took),
        "new_query_each_ms": took,
    }


def _figures(values: list[float]) -> dict[str, float]:
    return {
        "count": len(values),
        "p50": quantile(values, 0.5),
        "p99": quantile(values, 0.99),
        "max": max(values, default=0.0),
    }


def _until(service: StandingQueries, count: int, timeout: float = 300.0) -> None:
    until = time.monotonic() + timeout
    while service.engine.view.prefixes["reports"].count < count:
        service.runtime.check()
        if time.monotonic() > until:
            raise TimeoutError(f"{service.engine.view.prefixes['reports'].count} of {count} tuples visible")
        time.sleep(0.02)


def report(figures: dict[str, Any]) -> None:
    small = figures["invocation_up_to_1000_rows_ms"]
    new = f"new query over {figures['new_query_over']:,} tuples, max ms"
    rows = [
        ("sustained, tuples/s", figures["tuples_per_second"], "100,000"),
        ("visible after arrival, p99 s", figures["lag_s"]["p99"], "2"),
        ("registration while data flows, p99 ms", figures["registration_ms"]["p99"], "50"),
        ("invocation up to 1,000 rows, p99 ms", small["p99"], "5"),
        (new, figures["new_query_ms"]["max"], "1000"),
        ("CPU s of others meanwhile", figures["cpu_s_of_others"], ""),
        ("CPU us per tuple, all processes", figures["cpu_us_per_tuple"], ""),
    ]
    show("standing queries", [{"what": w, "figure": f, "goal": g} for w, f, g in rows])


if __name__ == "__main__":
    sys.exit(main())
