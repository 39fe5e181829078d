"""Samples of the tuples behind a node, for semantic shedding (A90): a few of each train, by their `_seq`.

The tuples with the smallest hashes of `_seq` are taken, at each node alike. So samples of several tasks make
one of all of them, a train that runs again gives the same, and a tuple sampled in front of some boxes is
found again behind them, unless a box has dropped it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.arrow.columns.columns import integers
from penstock.engine.arrow.columns.hashing import drop_hash
from penstock.engine.contract.valve import PARTS
from penstock.model.types import SEQ

MOST = 256
"""Tuples in the sample of a node in one train."""
LOT = 0
"""Of the hash; valves have others, so what they shed says nothing about what is sampled."""

PlainSample = dict[str, Any]
"""`rows`: tuples in all. `seq`: places of those in the sample. `columns`: their values, by name."""


def sampled(table: pa.Table, columns: Sequence[str], most: int = MOST) -> PlainSample:
    """The sample of a table.

    >>> table = pa.table({"v": [1, None, 3], "_seq": [7, 8, 9]})
    >>> sampled(table, ["v"])["columns"]["v"]
    [1.0, None, 3.0]
    """
    chosen = table
    if table.num_rows > most:
        least = np.argpartition(_hashes(integers(table, SEQ)), most)[:most]
        chosen = table.take(pa.array(np.sort(least)))
    return {
        "rows": table.num_rows,
        "seq": chosen.column(SEQ).to_pylist(),
        "columns": {name: _floats(chosen.column(name)) for name in columns},
    }


def _floats(column: pa.ChunkedArray) -> list[float | None]:
    values: list[float | None] = pc.cast(column, pa.float64()).to_pylist()
    return [finite(value) for value in values]


def finite(value: float | None) -> float | None:
    """A value that an interval can hold; None for one that is missing, infinite or no number.

    >>> finite(2.5), finite(float("inf")), finite(float("nan"))
    (2.5, None, None)
    """
    return None if value is None or not isfinite(value) else float(value)


def _hashes(places: np.ndarray) -> np.ndarray:
    return drop_hash(LOT, places) % np.uint64(PARTS)


def together(samples: Sequence[Mapping[str, Any]], most: int = MOST) -> PlainSample:
    """One sample of what several tasks have sampled.

    >>> one = {"rows": 5, "seq": [1], "columns": {"v": [2.0]}}
    >>> together([one, {"rows": 3, "seq": [4], "columns": {"v": [9.0]}}])["rows"]
    8
    """
    places = np.array([seq for each in samples for seq in each["seq"]], np.int64)
    names = list(samples[0]["columns"]) if samples else []
    columns = {name: [v for each in samples for v in each["columns"][name]] for name in names}
    order = np.argsort(_hashes(places), kind="stable")[:most].tolist()
    return {
        "rows": sum(each["rows"] for each in samples),
        "seq": places[order].tolist(),
        "columns": {name: [values[i] for i in order] for name, values in columns.items()},
    }


def reach(sample: Mapping[str, Any]) -> int:
    """All tuples with a smaller hash are in the sample: what is not in it has not come."""
    if sample["rows"] <= len(sample["seq"]):
        return PARTS
    return int(_hashes(np.array(sample["seq"], np.int64)).max(initial=np.uint64(0)))


def pairs(before: Mapping[str, Any], after: Mapping[str, Any], column: str) -> list[tuple[int, float | None]]:
    """What became of each tuple sampled in front: (its number in the sample, its value behind), or None.

    Tuples of which nothing can be told are left out.
    """
    known = dict(zip(after["seq"], after["columns"][column], strict=True))
    far = reach(after)
    hashes = _hashes(np.array(before["seq"], np.int64)).tolist()
    return [
        (number, known.get(seq))
        for number, (seq, hashed) in enumerate(zip(before["seq"], hashes, strict=True))
        if seq in known or hashed < far
    ]
