"""To which partition packed trains send a tuple: a hash of its keys, the same in every process."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa

from penstock.engine.arrow.columns.columns import key_values
from penstock.engine.arrow.columns.hashing import hash_long
from penstock.model.boxes import Keys


def targets(table: pa.Table, keys: Keys, parts: int, *, doubles: bool = False) -> np.ndarray | None:
    """The partition of each tuple, the same for equal keys of any width; None: all go to the first.

    `doubles`: also for whole numbers and fractions that are equal.
    """
    if not keys or parts == 1:
        return None
    hashes = np.full(table.num_rows, 42, np.uint64)
    for key in keys:
        column = table.column(key)
        if doubles and pa.types.is_integer(column.type):
            column = column.cast(pa.float64(), safe=False)
        values, valid = key_values(column)
        if values.dtype == object:
            values = np.array([hash_of(value) for value in values], np.int64)
        mixed = hash_long(values, hashes)
        hashes = mixed if valid is None else np.where(valid, mixed, hashes)
    return hashes % np.uint64(parts)


@lru_cache(maxsize=1 << 16)
def hash_of(value: str | bytes | None) -> int:
    """Hash a text or bytes to a number that is the same in every process."""
    import xxhash

    data = b"" if value is None else value.encode() if isinstance(value, str) else value
    return xxhash.xxh3_64_intdigest(data) - (1 << 63)
