"""Spark's xxhash64 of many whole numbers at once: it decides which tuples a Drop box lets through (A15)."""

from __future__ import annotations

import numpy as np

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)


def drop_hash(seed: int, seq: np.ndarray) -> np.ndarray:
    """Spark's `xxhash64(cast(seed as bigint), _seq)` as unsigned.

    Spark hashes several values in turn; each hash is the seed of the next.

    >>> drop_hash(0, np.array([1])).tolist()
    [8281773146650252936]
    """
    first = hash_long(np.array([seed], np.int64), np.array([42], np.uint64))
    return hash_long(seq, first)


def hash_long(values: np.ndarray, seed: np.ndarray) -> np.ndarray:
    """XXH64 of the eight bytes of each value (wrapping around is meant)."""
    with np.errstate(over="ignore"):
        mixed = seed + _P5 + np.uint64(8)
        mixed = mixed ^ (_rotate(values.astype(np.int64).view(np.uint64) * _P2, 31) * _P1)
        return _finished(_rotate(mixed, 27) * _P1 + _P4)


def hash_int(values: np.ndarray, seed: np.ndarray) -> np.ndarray:
    """XXH64 of the four bytes of each value."""
    with np.errstate(over="ignore"):
        words = values.astype(np.int32).view(np.uint32).astype(np.uint64)
        mixed = (seed + _P5 + np.uint64(4)) ^ (words * _P1)
        return _finished(_rotate(mixed, 23) * _P2 + _P3)


def _finished(mixed: np.ndarray) -> np.ndarray:
    mixed = (mixed ^ (mixed >> np.uint64(33))) * _P2
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _P3
    return np.asarray(mixed ^ (mixed >> np.uint64(32)))


def _rotate(values: np.ndarray, bits: int) -> np.ndarray:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))
