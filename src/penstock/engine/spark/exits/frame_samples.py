"""Samples of the tuples of native boxes, for semantic shedding: collected beside the main path like counts.

What runs in tasks samples there (`engine/arrow/value_samples.py`); these are the same tuples, by the same
hash.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from penstock.engine.arrow.value_samples import LOT, MOST, PlainSample, finite, together
from penstock.engine.contract.valve import PARTS
from penstock.engine.spark.entry.by_reference import by_reference
from penstock.engine.spark.entry.valve_sql import hashed_below
from penstock.engine.spark.watch import Watch
from penstock.model.types import SEQ

_SAMPLE = "#values"  # behind the name of a node
_MORE = 2  # so many times the sample is collected, because a hash is not that even


def watch_values(watch: Watch, frame: DataFrame, node: str, columns: Sequence[str], rows: int) -> DataFrame:
    """Collect the sample of a node's tuples as they pass. `rows`: about as many come, or fewer."""
    bar = min(PARTS, -(-_MORE * MOST * PARTS // max(1, rows)))
    fields = ", ".join(f"'{name}', CAST(`{name}` AS DOUBLE)" for name in columns)
    struct = f"named_struct('seq', {SEQ}{', ' if fields else ''}{fields})"
    chosen = f"collect_list(CASE WHEN {hashed_below(LOT, SEQ, by_reference(bar, SEQ))} THEN {struct} END)"
    return watch.on(frame, f"{node}{_SAMPLE}", rows="count(1)", sample=chosen)


def watched_values(watch: Watch, node: str, columns: Sequence[str]) -> PlainSample | None:
    """The sample of a node; None if Spark has not told it: it is not worth a job of its own."""
    seen = watch.counts_by_now(f"{node}{_SAMPLE}")
    if seen is None:
        return None
    rows = {row["seq"]: row for row in seen["sample"]}  # a task that ran twice has told it twice
    values = {name: [finite(row[name]) for row in rows.values()] for name in columns}
    return together([{"rows": int(seen["rows"]), "seq": list(rows), "columns": values}])
