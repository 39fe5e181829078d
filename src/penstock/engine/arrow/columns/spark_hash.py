"""To which partition Spark's hash partitioning sends a tuple, computed on columns.

A train may run as DataFrames or as a job of our own, and the next one the other way. The state of a key lies
in one partition, so both ways must send its tuples to the same one. Spark hashes several values in turn; each
hash is the seed of the next, and a null leaves it as it is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import xxhash

from penstock.engine.arrow.columns.columns import to_numpy
from penstock.engine.arrow.columns.hashing import hash_int, hash_long

_SEED = 42
_C1, _C2, _ADDED = np.uint32(0xCC9E2D51), np.uint32(0x1B873593), np.uint32(0xE6546B64)
_F1, _F2 = np.uint32(0x85EBCA6B), np.uint32(0xC2B2AE35)
_MASK = 0xFFFFFFFF
Hash = Callable[[np.ndarray, np.ndarray], np.ndarray]


def partitions_by_hash(table: pa.Table, keys: Sequence[str], parts: int) -> np.ndarray:
    """The partitions that Spark's `repartition(parts, *keys)` gives.

    >>> partitions_by_hash(pa.table({"k": ["a", "b", None]}), ["k"], 5).tolist()
    [0, 1, 2]
    """
    hashes = np.full(table.num_rows, _SEED, np.uint32)
    for key in keys:
        hashes = _hashed(table.column(key), hashes, (murmur_int, murmur_long, _murmur_bytes))
    return hashes.view(np.int32) % np.int32(parts)


def partitions_of_common(table: pa.Table, keys: Sequence[str], parts: int) -> np.ndarray:
    """The partitions of keys that several inputs share: numbers of any width are hashed as doubles.

    In Spark: `repartition(parts, xxhash64(*keys))`, with each numeric key cast to DOUBLE.
    """
    hashes = np.full(table.num_rows, _SEED, np.uint64)
    for key in keys:
        column = table.column(key)
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            column = column.cast(pa.float64(), safe=False)
        hashes = _hashed(column, hashes, (hash_int, hash_long, _xx_bytes))
    seeds = np.full(table.num_rows, _SEED, np.uint32)
    return murmur_long(hashes.view(np.int64), seeds).view(np.int32) % np.int32(parts)


def _hashed(column: pa.ChunkedArray, seeds: np.ndarray, by: tuple[Hash, Hash, Hash]) -> np.ndarray:
    values, valid = to_numpy(column)
    hash_4, hash_8, hash_bytes = by
    if values.dtype == object:
        mixed = hash_bytes(values, seeds)
    elif values.dtype.kind == "f":
        mixed = (hash_8 if values.dtype.itemsize == 8 else hash_4)(_bits(values), seeds)
    else:
        mixed = (hash_8 if values.dtype.itemsize == 8 else hash_4)(values, seeds)
    return mixed if valid is None else np.where(valid, mixed, seeds)


def _bits(values: np.ndarray) -> np.ndarray:
    """The bits of floating numbers: -0.0 is 0.0, and there is one NaN."""
    plain = values + values.dtype.type(0.0)
    plain[np.isnan(plain)] = np.nan
    return np.asarray(plain.view(np.int64 if plain.dtype.itemsize == 8 else np.int32))


# -- Murmur3, 32 bits, as Spark has it


def murmur_int(values: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """Spark's `hash` of 32-bit numbers."""
    return _finished(_mixed(seeds, values.astype(np.int32).view(np.uint32)), 4)


def murmur_long(values: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """Spark's `hash` of 64-bit numbers."""
    wide = values.astype(np.int64).view(np.uint64)
    low, high = (wide & np.uint64(_MASK)).astype(np.uint32), (wide >> np.uint64(32)).astype(np.uint32)
    return _finished(_mixed(_mixed(seeds, low), high), 8)


def _mixed(hashes: np.ndarray, words: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return _rotated(hashes ^ (_rotated(words * _C1, 15) * _C2), 13) * np.uint32(5) + _ADDED


def _finished(hashes: np.ndarray, length: int) -> np.ndarray:
    with np.errstate(over="ignore"):
        h = hashes ^ np.uint32(length)
        h = (h ^ (h >> np.uint32(16))) * _F1
        h = (h ^ (h >> np.uint32(13))) * _F2
        return h ^ (h >> np.uint32(16))


def _rotated(words: np.ndarray, bits: int) -> np.ndarray:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))


def _murmur_bytes(values: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    pairs = zip(values, seeds.tolist(), strict=True)
    return np.array([_murmur_text(value, seed) for value, seed in pairs], np.uint32)


@lru_cache(maxsize=1 << 16)
def _murmur_text(value: str | bytes | None, seed: int) -> int:
    """Spark's hash of bytes: whole words first, then what remains, byte by byte as signed numbers."""
    data = _as_bytes(value)
    whole = len(data) - len(data) % 4
    words = [
        *struct.unpack(f"<{whole // 4}I", data[:whole]),
        *struct.unpack(f"{len(data) - whole}b", data[whole:]),
    ]
    h = seed
    for word in words:
        k = _turned((word & _MASK) * int(_C1) & _MASK, 15) * int(_C2) & _MASK
        h = (_turned(h ^ k, 13) * 5 + int(_ADDED)) & _MASK
    return int(_finished(np.array([h], np.uint32), len(data))[0])


def _turned(word: int, bits: int) -> int:
    return ((word << bits) | (word >> (32 - bits))) & _MASK


# -- xxhash64 of bytes


def _xx_bytes(values: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    pairs = zip(values, seeds.tolist(), strict=True)
    return np.array([xxhash.xxh64_intdigest(_as_bytes(value), seed) for value, seed in pairs], np.uint64)


def _as_bytes(value: str | bytes | None) -> bytes:
    return b"" if value is None else value.encode() if isinstance(value, str) else value
