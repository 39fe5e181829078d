"""Response times from answer files: one compiled pass over the bytes.

Idea: a response time is Emit - Time, and the type at the start of the line tells where these two fields are.
They are counted in milliseconds by type, and by second of the run for the plots, so memory does not grow with
the answers. Output rows and limits: Arasu et al., "Linear Road", VLDB 2004, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

import numpy as np
from numba import njit

from penstock.linear_road.rows.arrays import Bytes, Int32s, Int64s

NAMES: tuple[str, ...] = (
    "toll notice",
    "accident alert",
    "balance",
    "daily expenditure",
    "travel time",
)
LIMITS: tuple[int, ...] = (5, 5, 5, 10, 30)
"""Seconds within which an answer of each type must leave."""

SECONDS = 10_800
"""Seconds of a run."""

_MOST_MS = 60_000
_BIN_MS = 50
# One bin more for what takes longer, as in `by_type`: compiled code must find a place for everything.
_BINS = _MOST_MS // _BIN_MS + 2
_CHUNK = 16 << 20
_COMMA, _NEWLINE, _POINT, _ZERO, _NINE = 44, 10, 46, 48, 57


class ResponseFigures(TypedDict):
    """The response times of one answer type, in seconds; None if nothing was scored."""

    name: str
    answers: int
    scored: int
    p50: float | None
    p95: float | None
    p99: float | None
    max: float | None
    late: int


class WarmUpLatency(TypedDict):
    """What the seconds before the scored ones showed: checked, but not timed.

    `slowest_s`: the slowest answer of any type, to a twentieth of a second; None if there was no answer.
    `late`: answers later than 5 s, the strictest limit.
    """

    answers: int
    slowest_s: float | None
    late: int


@dataclass
class ResponseTimes:
    r"""Counts so far: answers, response times by type (from `scored_from` on), and by second.

    >>> responses = ResponseTimes()
    >>> responses.add(b"0,107,60,61.250,-1,0\n2,60,60.500,60,4,900\n")
    >>> responses.figures()["0"]["p50"], responses.figures()["2"]["max"]
    (1.25, 0.5)
    """

    scored_from: int = 0
    by_type: Int64s = field(default_factory=lambda: np.zeros((5, _MOST_MS + 2), np.int64))
    longest: Int64s = field(default_factory=lambda: np.full(5, -1, np.int64))
    all_answers: Int64s = field(default_factory=lambda: np.zeros(5, np.int64))
    tolls: Int32s = field(default_factory=lambda: np.zeros(SECONDS, np.int32))
    """Toll notices triggered in each second."""
    waits: Int32s = field(default_factory=lambda: np.zeros((SECONDS, _BINS), np.int32))
    """Response times of all types by second of their trigger, in coarse bins."""

    def add(self, text: bytes) -> None:
        """Count the lines of a block that ends with a line end."""
        block = np.frombuffer(text, np.uint8)
        of_type = (self.by_type, self.longest, self.all_answers)
        _count(block, self.scored_from, of_type, (self.tolls, self.waits))

    def add_file(self, file: Path) -> None:
        """Count a whole file, block by block."""
        rest = b""
        with file.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                block = rest + chunk
                end = block.rfind(b"\n") + 1
                self.add(block[:end])
                rest = block[end:]
        if rest:
            self.add(rest + b"\n")

    def figures(self) -> dict[str, ResponseFigures]:
        """By type, in seconds: how many were scored, p50, p95, p99, max, and how many came late."""
        return {str(kind): self._figures(kind) for kind in range(5)}

    def _figures(self, kind: int) -> ResponseFigures:
        counts = self.by_type[kind]
        scored = int(counts.sum())
        below = np.cumsum(counts)

        def percentile(share: float) -> float | None:
            return int(np.searchsorted(below, np.ceil(share * scored))) / 1000 if scored else None

        return {
            "name": NAMES[kind],
            "answers": int(self.all_answers[kind]),
            "scored": scored,
            "p50": percentile(0.5),
            "p95": percentile(0.95),
            "p99": percentile(0.99),
            # The counts end at one minute. The longest response time is kept exactly.
            "max": int(self.longest[kind]) / 1000 if scored else None,
            # Exactly at the limit is in time.
            "late": int(counts[LIMITS[kind] * 1000 + 1 :].sum()),
        }

    def by_second(self, share: float, begin: int, end: int) -> list[float | None]:
        """The response time below which this share of a second's answers stayed.

        None without answers.
        """
        below = np.cumsum(self.waits[begin:end], axis=1)
        total = below[:, -1]
        bins = (below < np.ceil(share * total)[:, None]).sum(axis=1)
        # The middle of a bin stands for what is in it.
        return [
            round((int(b) + 0.5) * _BIN_MS / 1000, 3) if n else None for b, n in zip(bins, total, strict=True)
        ]

    def before_scored(self, begin: int) -> WarmUpLatency:
        """What the seconds from `begin` to the scored ones showed."""
        bins = self.waits[begin : self.scored_from].sum(axis=0, dtype=np.int64)
        used = np.flatnonzero(bins)
        return {
            "answers": int(bins.sum()),
            "slowest_s": round(int(used[-1] + 1) * _BIN_MS / 1000, 3) if len(used) else None,
            "late": int(bins[min(LIMITS) * 1000 // _BIN_MS :].sum()),
        }


@njit(cache=True, nogil=True)
def _count(
    text: Bytes,
    scored_from: int,
    of_type: tuple[Int64s, Int64s, Int64s],
    of_second: tuple[Int32s, Int32s],
) -> None:
    """`of_type`: response times, the longest, and all answers; `of_second`: toll notices and waits."""
    by_type, longest, answers = of_type
    tolls, waits = of_second
    i, size = 0, len(text)
    while i < size:
        kind = text[i] - _ZERO
        # The Time of a toll notice comes after the VID, that of all others directly after the type.
        skip = 2 if kind == 0 else 1
        while skip > 0 and text[i] != _NEWLINE:
            if text[i] == _COMMA:
                skip -= 1
            i += 1
        time, i = _thousandths(text, i)
        emit, i = _thousandths(text, i + 1)
        while text[i] != _NEWLINE:
            i += 1
        i += 1
        if 0 <= kind <= 4:
            second, wait = time // 1000, emit - time
            answers[kind] += 1
            # Nothing is trusted: an index outside an array would write into other memory.
            if 0 <= second < len(tolls):
                waits[second, min(max(wait // _BIN_MS, 0), _BINS - 1)] += 1
                if kind == 0:
                    tolls[second] += 1
            if second >= scored_from:
                by_type[kind, min(max(wait, 0), _MOST_MS + 1)] += 1
                longest[kind] = max(longest[kind], wait)


@njit(cache=True, nogil=True)
def _thousandths(text: Bytes, i: int) -> tuple[int, int]:
    """A number with at most three decimals, in thousandths, and where it ends."""
    number, decimals = 0, -1
    while text[i] not in (_COMMA, _NEWLINE):
        c = text[i]
        if c == _POINT:
            decimals = 0
        elif _ZERO <= c <= _NINE and decimals < 3:
            number = number * 10 + int(c - _ZERO)
            if decimals >= 0:
                decimals += 1
        i += 1
    for _ in range(3 - max(decimals, 0)):
        number *= 10
    return number, i
