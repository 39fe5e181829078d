"""Checksums of the answers to each copy, in one pass over the lines.

Idea: shifted back, two copies with the same answers have the same checksum. So only one of them has to be
compared with the oracle row by row. The checksum of a type is the sum of a hash of each answer, in 128 bits:
it does not depend on the order, and duplicates count. Emit stays out of it, because copies are answered at
different moments; what is early or late is counted by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from penstock.linear_road.rows.arrays import Bytes, Checksums, Int32s, Int64s
from penstock.linear_road.rows.copies import Copies
from penstock.linear_road.validate.answer_files import LAYOUT, WIDE
from penstock.linear_road.validate.comparison import TYPES

NAMED = {0: "vid", 1: "vid", 2: "qid", 3: "qid", 4: "qid"}
"""The field of each answer type that tells the copy."""

STRAY, UNREADABLE = -1, -2
"""What a line belongs to that is an answer to no copy, or no answer at all."""

_EMIT, _NARROW, _BROAD = 0, 1, 2  # what a field is
_MOST = 1000 << 31  # thousandths: what does not fit 32 bits
_WIDTH = max(map(len, LAYOUT.values()))
_FIELDS = np.array([len(LAYOUT[kind]) for kind in sorted(LAYOUT)], np.int64)
_PLACES = np.array([LAYOUT[kind].index(NAMED[kind]) for kind in sorted(LAYOUT)], np.int64)
_TIMES = np.array([LAYOUT[kind].index("time") for kind in sorted(LAYOUT)], np.int64)
_EMITS = np.array([LAYOUT[kind].index("emit") for kind in sorted(LAYOUT)], np.int64)
_LIMITS = np.array([answer.limit * 1000 for answer in TYPES], np.int64)
_KINDS = np.array(
    [
        [_EMIT if name == "emit" else _BROAD if name in WIDE else _NARROW for name in LAYOUT[kind]]
        + [_NARROW] * (_WIDTH - len(LAYOUT[kind]))
        for kind in sorted(LAYOUT)
    ],
    np.int8,
)
_GOLDEN, _FIRST, _SECOND = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)
_RIGHT = (np.uint64(30), np.uint64(27), np.uint64(31))


@dataclass(frozen=True)
class Digest:
    """Of one copy: counts and checksums by answer type, and how many answers came before their time."""

    counts: tuple[int, ...]
    sums: tuple[int, ...]
    early: int


class CopyDigests:
    """Digests of `copies` copies, from lines as `read_thousandths` gives them.

    `scored`: the seconds whose late answers are counted.
    """

    def __init__(self, shift: Copies, copies: int, scored: tuple[int, int] = (0, 0)) -> None:
        kinds = len(LAYOUT)
        self._scored = scored
        self._spans = np.array(
            [shift.vid if NAMED[kind] == "vid" else shift.qid for kind in sorted(LAYOUT)], np.int64
        )
        self._sums = np.zeros((kinds, copies, 2), np.uint64)
        # Answers, those before their time, and those that are late.
        self._counts = np.zeros((kinds, copies, 3), np.int64)
        self.strays = np.zeros(kinds, np.int64)

    def add(self, values: Int64s, counts: Bytes) -> Int32s:
        """Take lines; what each belongs to: the number of a copy, STRAY or UNREADABLE."""
        copies = np.empty(len(counts), np.int32)
        begin, end = (1000 * second for second in self._scored)
        _fold(values, counts, self._spans, begin, end, self._sums, self._counts, self.strays, copies)
        return copies

    def of(self, copy: int) -> Digest:
        """The digest of a copy."""
        sums, counts = self._sums[:, copy], self._counts[:, copy]
        return Digest(tuple(counts[:, 0].tolist()), tuple(sums.ravel().tolist()), int(counts[:, 1].sum()))

    @property
    def copies(self) -> int:
        """How many copies there are."""
        return self._counts.shape[1]

    def late(self, copy: int) -> int:
        """How many scored answers of a copy are late."""
        return int(self._counts[:, copy, 2].sum())


@numba.njit(cache=True, nogil=True, inline="always")
def _mixed(number: np.uint64) -> np.uint64:
    """Spread over all 64 bits (the finisher of splitmix64)."""
    number = (number ^ (number >> _RIGHT[0])) * _FIRST
    number = (number ^ (number >> _RIGHT[1])) * _SECOND
    return number ^ (number >> _RIGHT[2])


@numba.njit(cache=True, nogil=True)
def _type_of(values: Int64s, counts: Bytes, line: int) -> int:
    """The answer type of a line, or -1: its number of fields, all but Emit whole, none too large."""
    for kind in range(len(_FIELDS)):
        if values[0, line] == 1000 * kind and counts[line] == _FIELDS[kind] + 1:
            for place in range(_FIELDS[kind]):
                value, what = values[place + 1, line], _KINDS[kind, place]
                if (what != _EMIT and value % 1000 != 0) or (what == _NARROW and abs(value) >= _MOST):
                    return -1
            return kind
    return -1


@numba.njit(cache=True, nogil=True)
def _fold(  # noqa: PLR0913, PLR0917 - compiled: arrays in, arrays out
    values: Int64s,
    counts: Bytes,
    spans: Int64s,
    begin: int,
    end: int,
    sums: Checksums,
    totals: Int64s,
    strays: Int64s,
    copies: Int32s,
) -> None:
    for line in range(len(counts)):
        # A line without any number was not even begun, so its fields hold anything.
        kind = _type_of(values, counts, line) if counts[line] > 0 else -1
        if kind < 0:
            copies[line] = UNREADABLE
            continue
        span, named = spans[kind], values[_PLACES[kind] + 1, line] // 1000
        # Every number of the original is below the span, so a division tells the copy. A single copy is not
        # shifted and has no span.
        copy = named // span if span else 0
        if copy < 0 or copy >= totals.shape[1]:
            strays[kind] += 1
            copies[line] = STRAY
            continue
        copies[line] = copy
        number = np.uint64(kind)
        for place in range(_FIELDS[kind]):
            if _KINDS[kind, place] != _EMIT:
                value = values[place + 1, line] // 1000
                if place == _PLACES[kind]:
                    value -= copy * span
                number = _mixed((number + _GOLDEN) ^ np.uint64(value))
        sums[kind, copy, 0] += number
        sums[kind, copy, 1] += _mixed(number + _GOLDEN)
        time, emit = values[_TIMES[kind] + 1, line], values[_EMITS[kind] + 1, line]
        totals[kind, copy, 0] += 1
        totals[kind, copy, 1] += emit < time
        totals[kind, copy, 2] += begin <= time < end and emit - time > _LIMITS[kind]
