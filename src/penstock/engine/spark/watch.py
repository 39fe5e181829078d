"""Count tuples while a train runs, and collect its dead letters on the way.

Spark's `observe` computes aggregates beside the main path. A list of the few tuples that failed is such an
aggregate too, so dead letters need no second pass over the data.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from penstock.connectors.tables import RAW_LIMIT
from penstock.engine.arrow.logic import DEAD_SCHEMA

_PATIENCE = 1.0  # seconds to wait for counts after a job
LETTERS = "letters"
OFFERED, SHED, REMOVED = "#offered", "#shed", "#removed"
TOLD = (OFFERED, SHED, REMOVED)
"""Reasons of letters that are none: what a task tells about a slice, as a number of tuples."""
VALVE = "#valve"  # behind the name of an arrow or input: the counts of its valves


class LetterSql(NamedTuple):
    """SQL for a letter: the tuple's raw text, its offset, and how many tuples it stands for."""

    raw: str
    offset: str
    tuples: str = "1L"


@dataclass
class _Observed:
    observation: Observation
    frame: DataFrame
    columns: list[Any]
    boxes: Sequence[str]  # the boxes that the numbers before reasons stand for


@dataclass
class Watch:
    """Counts and letters of one train, by watched node."""

    _on: dict[str, _Observed] = field(default_factory=dict)
    _known: dict[str, dict[str, Any]] = field(default_factory=dict)
    _fetched: dict[str, dict[str, Any]] = field(default_factory=dict)
    _letters: list[pa.Table] = field(default_factory=list)

    def on(self, frame: DataFrame, name: str, boxes: Sequence[str] = (), **metrics: str) -> DataFrame:
        """Count tuples as they pass; metrics are SQL aggregates."""
        columns = [F.expr(text).alias(key) for key, text in metrics.items()]
        observed = self._on[name] = _Observed(Observation(), frame, columns, boxes)
        return frame.observe(observed.observation, *columns)

    def guard(
        self,
        frame: DataFrame,
        name: str,
        why: str,
        letter: LetterSql,
        boxes: Sequence[str],
        more: Sequence[str] = (),
        **metrics: str,
    ) -> DataFrame:
        """Keep only valid tuples; the others become letters.

        `why` is SQL: NULL, or the number of a box in `boxes`, a colon and the reason. `letter`: SQL of the
        letter's fields. `more`: columns to be added on the way. `{why}` in a metric stands for the reason's
        column. A letter whose reason is one of TOLD is none: it says what a task did with how many tuples.
        """
        column = f"_why{len(self._on)}"
        marked = frame.selectExpr("*", *more, f"{why} AS {column}")
        fields = {**letter._asdict(), "raw": f"left({letter.raw}, {RAW_LIMIT + 40})", "why": column}
        struct = "named_struct(" + ", ".join(f"'{name}', {sql}" for name, sql in fields.items()) + ")"
        metrics = {key: text.replace("{why}", column) for key, text in metrics.items()}
        metrics[LETTERS] = f"collect_list(CASE WHEN {column} IS NOT NULL THEN {struct} END)"
        return self.on(marked, name, boxes, **metrics).where(f"{column} IS NULL")

    def know(self, name: str, **counts: Any) -> None:
        """Record counts that need not be measured."""
        self._known.setdefault(name, {}).update(counts)

    def tell(self, letters: pa.Table) -> None:
        """Add dead letters that are already known."""
        self._letters.append(letters)

    def counts(self, name: str) -> dict[str, Any]:
        """The counts; {} where nothing was watched."""
        if name in self._on and name not in self._fetched:
            self._fetched[name] = self._fetch(self._on[name])
        return {**self._fetched.get(name, {}), **self._known.get(name, {})}

    def counts_by_now(self, name: str) -> dict[str, Any] | None:
        """The counts, if Spark has told them by now; they are not worth waiting for."""
        observed = self._on.get(name)
        if observed is None or observed.observation._jo is None:
            return None
        done = observed.observation._jo.future().isCompleted()
        return dict(observed.observation.get) if done else None

    def offered(self, name: str) -> int:
        """How many tuples the tasks of a source got, by their own count."""
        return self._told(name, OFFERED)

    def shed(self, name: str) -> int:
        """How many tuples the valves at a source shed, in tasks or in Spark."""
        return self._told(name, SHED) + int(self.counts(f"{name}{VALVE}").get("shed", 0))

    def removed(self, name: str) -> Counter[str]:
        """How many tuples of a source each filter removed that ran where they were read."""
        by_box: Counter[str] = Counter()
        for row in self.counts(name).get(LETTERS, ()):
            if _reason(row) == REMOVED:
                by_box[row["raw"]] += row["tuples"]
        return by_box

    def _told(self, name: str, what: str) -> int:
        letters = self.counts(name).get(LETTERS, ())
        return sum(row["tuples"] for row in letters if _reason(row) == what)

    def dead(self) -> pa.Table:
        """All letters of the train."""
        letters = [
            (row, observed.boxes)
            for name, observed in self._on.items()
            for row in self.counts(name).get(LETTERS, ())
            if _reason(row) not in TOLD
        ]
        columns = [
            [row["raw"] for row, _ in letters],
            [_reason(row) for row, _ in letters],
            [row["offset"] for row, _ in letters],
            [boxes[int(row["why"].partition(":")[0])] for row, boxes in letters],
            [row["tuples"] for row, _ in letters],
        ]
        picked_up = pa.table(
            [pa.array(c, f.type) for c, f in zip(columns, DEAD_SCHEMA, strict=True)], schema=DEAD_SCHEMA
        )
        return pa.concat_tables([*self._letters, picked_up])

    def _fetch(self, observed: _Observed) -> dict[str, Any]:
        # The counts come with an event soon after the job. If Spark has proved that no tuple can get through,
        # it omits the counting too, and no event comes. Then count separately.
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            if observed.observation._jo is not None and observed.observation._jo.future().isCompleted():
                counts = dict(observed.observation.get)
                return counts if not _repeated(counts.get(LETTERS, ())) else self._counted_apart(observed)
            time.sleep(0.001)
        return self._counted_apart(observed)

    @staticmethod
    def _counted_apart(observed: _Observed) -> dict[str, Any]:
        row: dict[str, Any] = observed.frame.agg(*observed.columns).collect()[0].asDict()
        return row


def tuples_by_box(dead: pa.Table) -> Counter[str]:
    """How many tuples each box refused: a letter may stand for many."""
    tuples: Counter[str] = Counter()
    for box, number in zip(dead.column("box").to_pylist(), dead.column("tuples").to_pylist(), strict=True):
        tuples[box] += number
    return tuples


def _reason(letter: Any) -> str:
    reason: str = letter["why"].partition(":")[2]
    return reason


def _repeated(letters: Sequence[Any]) -> bool:
    """Whether a task ran and counted twice (its machine was lost): then only a separate count is right."""
    return any(n > 1 for n in Counter(tuple(letter) for letter in letters).values())
