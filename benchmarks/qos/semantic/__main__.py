"""Semantic against random shedding (Q5): value utility lost at equal CPU, over the skew of the values.

CSV, a split, a costly function behind one branch, whose output has a value graph: the larger its value, the
more a tuple is worth. Values 1 to 100 are Zipf with several exponents; 0 is uniform. From the samples of a
first file the valve in front of the function is chosen, as control does it, once backward (the value is a
linear expression of a column) and once forward (only the function knows it). Then a second file runs, with
the valve by value and with valves by hash at several shares. Trains run in one process without Spark: the
tickets, tasks and files of production. All contenders take turns. CPU is that of all boxes with the valves in
front of them, as trains tell it, the median of the rounds; reading and decoding are the same for all.

Random shedding at equal CPU: the share at which the line through its measured CPU meets that of the valve by
value. Its loss is measured at the shares that ran, and lies between them.

Figure: value utility lost, by skew and share kept: by value, at random at equal CPU, and the ratio.
Time:   about three minutes; --quick some seconds.
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import penstock as ps
from benchmarks.common.command_line import options
from benchmarks.common.results import recording
from benchmarks.common.spark import scratch
from benchmarks.common.tables import show
from penstock.control.loop.structure import Structure
from penstock.control.loop.values import ValueBook
from penstock.control.loop.valves import Places
from penstock.engine.contract.train_done import TrainDone
from penstock.engine.contract.valve import Valve, lot_of
from penstock.rewrite.subnetworks import split
from penstock.testing.dry_run import DryRun

SKEWS = (0.0, 0.6, 1.2, 1.6, 2.0)
SHARES = (0.75, 0.5, 0.25)
LARGEST = 100
AT = "cars->score"
GRAPHS = ps.QoS(
    delay=[(0, 1), (5, 1), (30, 0)], loss=[(0, 0), (100, 1)], value=[(0, 0), (LARGEST, 1)], column="worth"
)


def costly(table: pa.Table) -> dict[str, object]:
    """Some CPU for each tuple, and a score that is the value with a little noise."""
    values = table.column("v").to_numpy().astype(float)
    noise = values
    for _ in range(1500):
        noise = np.sin(noise + 1.0)
    return {"score": values + noise}


def network(folder: Path, way: str) -> ps.Network:
    net = ps.Network("semantic")
    source = ps.csv(str(folder / "in"), schema="time TIMESTAMP, k INT, v INT")
    cars = net.source("cars", source, timestamp="time")
    rare = cars.filter("v < 0", name="rare")
    net.output("alarms", rare, to=ps.csv(str(folder / "alarms")), qos=ps.QoS(delay=GRAPHS.delay))
    scored = cars.apply(costly, reads=["v"], produces="score DOUBLE", name="score")
    worth = scored.map(worth="1.0 * v" if way == "backward" else "score", name="rated")
    net.output("rated_cars", worth, to=ps.parquet(str(folder / "out")), qos=GRAPHS)
    return net


def values(skew: float, rows: int, seed: int) -> np.ndarray:
    """Values 1 to 100: the k-th as often as k to the power of -skew."""
    often = np.arange(1, LARGEST + 1) ** -skew
    return np.random.default_rng(seed).choice(np.arange(1, LARGEST + 1), rows, p=often / often.sum())


def written(folder: Path, drawn: np.ndarray) -> None:
    (folder / "in").mkdir(parents=True)
    lines = [
        f"2026-01-01 {i // 36000 % 24:02d}:{i // 600 % 60:02d}:{i // 10 % 60:02d},{i % 97},{v}\n"
        for i, v in enumerate(drawn.tolist())
    ]
    (folder / "in" / "cars.csv").write_text("".join(lines))


@dataclass(frozen=True)
class Ran:
    """One run: CPU-seconds of boxes, tuples that left, and what they are worth."""

    cpu: float
    tuples: int
    value: float


def ran(
    folder: Path,
    net: ps.Network,
    valves: tuple[Valve, ...],
    book: ValueBook | None = None,
    length: int = 20_000,
) -> Ran:
    """All of the input under these valves; `book` learns from its samples."""
    (sub,) = split(net)
    costs: list[float] = []

    def heard(done: TrainDone) -> None:
        assert all(account.balanced for account in done.commit.accounts.values())
        costs.extend(cost.cpu for cost in done.commit.costs.values())
        if book is not None:
            book.note(sub, done)

    run = DryRun(net, folder / "checkpoint", length=length, listen=heard)
    run.query.steering.valves = valves
    run.run_all()
    out = pq.read_table(folder / "out", columns=["worth"]).column("worth").to_numpy()
    return Ran(sum(costs), len(out), float(np.interp(out, (0.0, float(LARGEST)), (0.0, 1.0)).sum()))


def learned(folder: Path, way: str, skew: float, rows: int, seed: int) -> ValueBook:
    """What control would know from this file."""
    written(folder, values(skew, rows, seed))
    net, book = network(folder, way), ValueBook()
    ran(folder, net, (), book, length=2_000)
    structure = Structure(split(net))
    cuts = book.look(structure.subs, Places.of(net, structure), 0.0, busy=True)
    assert set(cuts) <= {"rated_cars"}
    return book


def compared(
    folder: Path, way: str, skew: float, rows: int, rounds: int, seed: int
) -> list[dict[str, object]]:
    """Both ways of shedding on the same input."""
    book = learned(folder / "first", way, skew, rows // 2, seed)
    cuts = {share: book.cut("rated_cars", share) for share in SHARES}
    drawn = values(skew, rows, seed + 1)
    contenders: dict[tuple[str, float], tuple[Valve, ...]] = {
        ("random", share): (Valve(AT, share, "tuples", lot_of("cars")),) for share in SHARES
    }
    contenders |= {("value", s): (cut.valve(),) for s, cut in cuts.items() if cut is not None}
    contenders[("none", 1.0)] = ()
    runs: dict[tuple[str, float], list[Ran]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, valves in contenders.items():
            here = folder / f"{number} {name[0]} {name[1]}"
            written(here, drawn)
            once = ran(here, network(here, way), valves)
            runs[name] += [once] if number else []  # the first round warms up
    return [judged(way, skew, share, runs) for share in SHARES if ("value", share) in runs]


def judged(
    way: str, skew: float, share: float, runs: dict[tuple[str, float], list[Ran]]
) -> dict[str, object]:
    """Value utility lost by value, and at random with the same CPU."""
    cpu = {name: statistics.median(run.cpu for run in each) for name, each in runs.items()}
    whole = runs[("none", 1.0)][0]
    random = [("none", 1.0) if s == 1.0 else ("random", s) for s in (*sorted(SHARES), 1.0)]
    slope, start = np.polyfit([cpu[name] for name in random], [runs[name][0].tuples for name in random], 1)
    mine = runs[("value", share)][0]
    tuples = slope * cpu[("value", share)] + start
    lost = [1 - runs[name][0].value / whole.value for name in random]
    at_random = float(np.interp(tuples, [runs[name][0].tuples for name in random], lost))
    by_value = 1 - mine.value / whole.value
    return {
        "way": way,
        "skew": skew,
        "share": share,
        "kept": mine.tuples / whole.tuples,
        "cpu_s": cpu[("value", share)],
        "random_cpu_s": cpu[("random", share)],
        "unshed_cpu_s": cpu[("none", 1.0)],
        "random_kept_at_equal_cpu": tuples / whole.tuples,
        "lost_by_value": by_value,
        "lost_at_random": at_random,
        "ratio": by_value / at_random,
    }


def main() -> int:
    chosen = options(__doc__).parse_args()
    rows, rounds, skews = (16_000, 1, (1.2,)) if chosen.quick else (40_000, 3, SKEWS)
    with recording("qos-semantic", chosen, rows=rows, rounds=rounds, shares=SHARES) as record:
        with scratch() as folder:
            record.figures = [
                row
                for way, skew in [*(("backward", skew) for skew in skews), ("forward", 1.2)]
                for row in compared(folder / f"{way} {skew}", way, skew, rows, rounds, chosen.seed)
            ]
        bad = [row for row in record.figures if row["skew"] == 1.2 and float(row["ratio"]) > 0.5]
        for row in bad:
            record.found_wrong(f"value utility lost above half of random: {row}")
        show("value utility lost at equal CPU", record.figures)
    return record.exit_code


if __name__ == "__main__":
    sys.exit(main())
