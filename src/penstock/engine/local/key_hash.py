"""A hash of keys that is the same in every process; Python's own hash of a text is not."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import date, datetime

import xxhash

from penstock.engine.local.rows import Value, frozen
from penstock.model.expressions.values import micros

_EPOCH = date(1970, 1, 1)


def key_hash(lot: int, values: Sequence[Value]) -> int:
    """Spark's `xxhash64(lot, keys ...)`, unsigned: each hash is the seed of the next; no nulls."""
    hashed = xxhash.xxh64_intdigest(struct.pack("<q", lot), seed=42)
    for value in values:
        if value is not None:
            hashed = xxhash.xxh64_intdigest(_bytes(value), seed=hashed)
    return hashed


def _bytes(value: Value) -> bytes:
    if isinstance(value, str | bytes):
        return value.encode() if isinstance(value, str) else value
    if isinstance(value, float):
        return struct.pack("<d", float("nan") if frozen(value) == "NaN" else frozen(value))
    if isinstance(value, datetime):
        return struct.pack("<q", micros(value))
    # Every whole number as BIGINT, as the other engines hash it: a key does not depend on its type.
    return struct.pack("<q", (value - _EPOCH).days if isinstance(value, date) else int(value))
