"""Count tuples while a train runs, and collect its dead letters on the way.

Spark's `observe` computes aggregates beside the main path. A list of the few tuples that failed is such an
aggregate too, so dead letters need no second pass over the data.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from penstock.engine.arrow.logic import DEAD_SCHEMA

_PATIENCE = 1.0  # seconds to wait for counts after a job
LETTERS = "letters"


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
        letter: tuple[str, str],
        boxes: Sequence[str],
        more: Sequence[str] = (),
        **metrics: str,
    ) -> DataFrame:
        """Keep only valid tuples; the others become letters.

        `why` is SQL: NULL, or the number of a box in `boxes`, a colon and the reason. `letter`: SQL for the
        tuple's raw text and its offset. `more`: columns to be added on the way. `{why}` in a metric stands
        for the reason's column.
        """
        column = f"_why{len(self._on)}"
        marked = frame.selectExpr("*", *more, f"{why} AS {column}")
        raw, offset = letter
        made = f"named_struct('raw', {raw}, 'why', {column}, 'offset', {offset})"
        metrics = {key: text.replace("{why}", column) for key, text in metrics.items()}
        metrics[LETTERS] = f"collect_list(CASE WHEN {column} IS NOT NULL THEN {made} END)"
        return self.on(marked, name, boxes, **metrics).where(f"{column} IS NULL")

    def know(self, name: str, **counts: Any) -> None:
        """Record a count that need not be measured."""
        self._known[name] = counts

    def tell(self, letters: pa.Table) -> None:
        """Add dead letters that are already known."""
        self._letters.append(letters)

    def counts(self, name: str) -> dict[str, Any]:
        """The counts; {} where nothing was watched."""
        if name in self._on and name not in self._known:
            self._known[name] = self._fetch(self._on[name])
        return self._known.get(name, {})

    def dead(self) -> pa.Table:
        """All letters of the train."""
        letters = [
            (row, observed.boxes)
            for name, observed in self._on.items()
            for row in self.counts(name).get(LETTERS, ())
        ]
        rows = [(row["raw"], row["why"].partition(":"), row["offset"], boxes) for row, boxes in letters]
        columns = [
            [raw for raw, *_ in rows],
            [why[2] for _, why, *_ in rows],
            [offset for _, _, offset, _ in rows],
            [boxes[int(why[0])] for _, why, _, boxes in rows],
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


def _repeated(letters: Sequence[Any]) -> bool:
    """Whether a task ran and counted twice (its machine was lost): then only a separate count is right."""
    return any(n > 1 for n in Counter(tuple(letter) for letter in letters).values())
