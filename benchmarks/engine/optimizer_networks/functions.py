"""User functions of the networks: vectorised, and costly enough to matter."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_ROUNDS = 40


def looks_odd(batch: pa.Table) -> pa.Array:
    """A costly predicate over `price`: true for nine rows of ten."""
    return pa.array(_mixed(batch.column("price")) % 10 != 0)


def score(batch: pa.Table) -> dict[str, pa.Array]:
    """A costly map over `amount`: `score BIGINT`."""
    return {"score": pa.array(_mixed(batch.column("amount")) % 1_000)}


def _mixed(column: pa.ChunkedArray) -> np.ndarray:
    """Stirred thoroughly; whole numbers that depend on nothing but the row."""
    values = np.asarray(column.fill_null(0), dtype=np.int64).astype(np.uint64)
    for _ in range(_ROUNDS):
        values ^= values >> np.uint64(31)
        values *= np.uint64(0x9E3779B97F4A7C15)
    return (values >> np.uint64(33)).astype(np.int64)
