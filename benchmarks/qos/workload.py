"""The network that is overloaded: one source, four outputs of different strictness, weight and cost.

All branches share the source, its decoding and a map. `alarms` are strict, `means` are windows of ten
seconds, `scores` cost most of the CPU and have a value graph, `archive` lies in a second sub-network behind a
connection point. Which branch has which weight and which cost can be permuted (`Assignment`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import penstock as ps

SCHEMA = "time TIMESTAMP, id BIGINT, seg INT, spd INT"
START = datetime(2026, 1, 1, tzinfo=UTC)
SOURCE, POINT = "cars", "kept"
SEGMENTS, SPEEDS = 50, 100
WINDOW = 10.0
"""Seconds of event time of a window of `means`."""
OUTPUTS = ("alarms", "means", "scores", "archive")
COSTLY = "burn"
BURN_US = 16.0
"""CPU-microseconds a tuple of the branch that costs: with them, two thirds of the CPU are its own."""
VALUED = "scores"
"""The output with a value graph: a fast car is worth ten times one that stands."""
VALUE_GRAPH = ((0.0, 0.1), (SPEEDS - 1.0, 1.0))


@dataclass(frozen=True)
class Assignment:
    """Which weights the branches have, and which branch costs; `burn_us` 0: answers only, at no cost.

    `grain`: what `means` says to be shed by ("windows", "keys"); empty: it says nothing. `all_or_nothing`:
    `alarms` have no loss graph, so one lost alarm makes its second worthless. `doubled`: the seconds of event
    time, begin and end, in which a tuple of the costly branch costs twice as much. Nobody is told.
    """

    name: str = "base"
    weights: tuple[float, float, float, float] = (4.0, 1.0, 2.0, 1.0)
    costly: str = "scores"
    burn_us: float = BURN_US
    grain: str = ""
    all_or_nothing: bool = False
    doubled: tuple[float, float] | None = None

    def weight(self, output: str) -> float:
        return self.weights[OUTPUTS.index(output)]


PERMUTATIONS = (
    Assignment(),
    Assignment("weights: scores", (2.0, 1.0, 4.0, 1.0)),
    Assignment("weights: means", (1.0, 4.0, 2.0, 1.0)),
    Assignment("costs: means", costly="means"),
    Assignment("costs: alarms", costly="alarms"),
    Assignment("alarms all or nothing", all_or_nothing=True),
)


@dataclass(frozen=True)
class Burn:
    """Uses so much CPU for each tuple, and changes nothing.

    The thread's own CPU clock is asked: on a busy machine a box must not become cheaper by waiting.
    """

    micros: float
    doubled: tuple[float, float] | None = None

    def __call__(self, table: pa.Table) -> pa.Table:
        self._use((table.num_rows + self._doubled(table)) * self.micros * 1e-6)
        return pa.table({"score": table["spd"].cast(pa.float64())})

    def _doubled(self, table: pa.Table) -> int:
        if self.doubled is None:
            return 0
        kind = table.schema.field("time").type
        begin, end = (pa.scalar(START + timedelta(seconds=each), kind) for each in self.doubled)
        inside = pc.and_(pc.greater_equal(table["time"], begin), pc.less(table["time"], end))
        return pc.sum(inside).as_py() or 0

    def _use(self, seconds: float) -> None:
        until, x = time.thread_time() + seconds, 1.0
        while time.thread_time() < until:
            for _ in range(50):
                x = (x * x + 1.0) % 97.0


def worth_of(speeds: np.ndarray) -> np.ndarray:
    """What scores of cars with these speeds are worth."""
    (least, low), (most, high) = VALUE_GRAPH
    return np.asarray(np.interp(speeds, [least, most], [low, high]))


def worth_kept(share: float) -> float:
    """The part of all worth that remains if only the best of the tuples stay, this share of them.

    >>> [round(worth_kept(share), 3) for share in (0.0, 0.5, 1.0)]
    [0.0, 0.707, 1.0]
    """
    best = np.sort(worth_of(np.arange(SPEEDS)))[::-1]  # speeds are equally frequent
    return float(np.interp(share * SPEEDS, np.arange(SPEEDS + 1), [0.0, *best.cumsum()]) / best.sum())


def graphs(assignment: Assignment) -> dict[str, ps.QoS]:
    """The QoS of the outputs. The strictest loss graph is a straight line: each tuple counts the same."""
    return {
        "alarms": ps.QoS(
            delay=[(0, 1.0), (2, 1.0), (6, 0.0)],
            loss=[] if assignment.all_or_nothing else [(0, 0), (100, 1)],
            weight=assignment.weight("alarms"),
        ),
        "means": ps.QoS(
            delay=[(0, 1.0), (8, 1.0), (20, 0.0)],
            loss=[(0, 0), (50, 0.9), (100, 1)],
            weight=assignment.weight("means"),
        ),
        "scores": ps.QoS(
            delay=[(0, 1.0), (4, 1.0), (12, 0.0)],
            loss=[(0, 0), (30, 0.7), (100, 1)],
            value=VALUE_GRAPH,
            column="spd",
            weight=assignment.weight("scores"),
        ),
        "archive": ps.QoS(
            delay=[(0, 1.0), (15, 1.0), (40, 0.0)],
            loss=[(0, 0), (50, 0.8), (100, 1)],
            weight=assignment.weight("archive"),
        ),
    }


def network(source: Path, out: Path, assignment: Assignment) -> ps.Network:
    """The network over a folder of CSV; each output writes Parquet into a folder of its name."""
    net, qos = ps.Network("overload"), graphs(assignment)
    cars = net.source(SOURCE, ps.csv(str(source), schema=SCHEMA, settle="0 seconds"), timestamp="time")
    moving = cars.map(kmh="spd * 1.609", name="metric")
    alarms = _costly(moving, "alarms", assignment).filter("spd > 97", name="fast")
    net.output("alarms", alarms.select("time", "id", "seg"), to=_files(out, "alarms"), qos=qos["alarms"])
    means = _costly(moving, "means", assignment).group_by("seg", name="by_segment")
    tens = means.tumble("10 seconds", since="min(time)", n="count(*)", speed="avg(kmh)", name="tens")
    if assignment.grain:
        tens.shed(assignment.grain)
    net.output("means", tens, to=_files(out, "means"), qos=qos["means"])
    scores = _costly(moving, "scores", assignment).select("time", "id", "seg", "spd", name="scored")
    net.output("scores", scores, to=_files(out, "scores"), qos=qos["scores"])
    slow = moving.filter("spd < 5", name="slow").connection_point(POINT, keep="10 minutes", shed=True)
    archive = slow.map(late="seg + 1", name="archived").select("time", "id", "seg")
    net.output("archive", archive, to=_files(out, "archive"), qos=qos["archive"])
    return net


def _costly(stream: ps.Stream, branch: str, assignment: Assignment) -> ps.Stream:
    if branch != assignment.costly:
        return stream
    burn = Burn(assignment.burn_us, assignment.doubled)
    return stream.apply(burn, reads=["time", "spd"], produces="score DOUBLE", name=COSTLY)


def _files(out: Path, name: str) -> ps.SinkFormat:
    return ps.parquet(str(out / name))
