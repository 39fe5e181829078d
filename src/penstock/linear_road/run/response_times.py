"""Response times from answer files: one compiled pass over the bytes.

Idea: a response time is Emit - Time, and the type at the start of the line tells where these two fields are.
They are counted in milliseconds by type, and by second of the run for the plots, so memory does not grow with
the answers. Output rows and limits: Arasu et al., "Linear Road", VLDB 2004, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from penstock.linear_road.rows.csv_rows import Array

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
_MOST_MS = 60_000
_BIN_MS = 50
_BINS = _MOST_MS // _BIN_MS + 2
_CHUNK = 16 << 20


@dataclass
class ResponseTimes:
    r"""Counts so far: answers, response times by type (from `scored_from` on), and by second.

    >>> found = ResponseTimes()
    >>> found.add(b"0,107,60,61.250,-1,0\n2,60,60.500,60,4,900\n")
    >>> found.figures()["0"]["p50"], found.figures()["2"]["max"]
    (1.25, 0.5)
    """

    scored_from: int = 0
    by_type: Array = field(default_factory=lambda: np.zeros((5, _MOST_MS + 2), np.int64))
    longest: Array = field(default_factory=lambda: np.full(5, -1, np.int64))
    all_answers: Array = field(default_factory=lambda: np.zeros(5, np.int64))
    tolls: Array = field(default_factory=lambda: np.zeros(SECONDS, np.int32))
    """Toll notices triggered in each second."""
    waits: Array = field(default_factory=lambda: np.zeros((SECONDS, _BINS), np.int32))
    """Response times of all types by second of their trigger, in coarse bins."""

    def add(self, text: bytes) -> None:
        """Count the lines of a block that ends with a line end."""
        block = np.frombuffer(text, np.uint8)
        _count(block, self.scored_from, self.by_type, self.longest, self.all_answers, self.tolls, self.waits)

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

    def figures(self) -> dict[str, dict[str, Any]]:
        """By type, in seconds: how many were scored, p50, p95, p99, max, and how many came late."""
        return {str(kind): self._figures(kind) for kind in range(5)}

    def _figures(self, kind: int) -> dict[str, Any]:
        counts = self.by_type[kind]
        scored = int(counts.sum())
        found: dict[str, Any] = {
            "name": NAMES[kind],
            "answers": int(self.all_answers[kind]),
            "scored": scored,
        }
        if not scored:
            return {**found, "p50": None, "p95": None, "p99": None, "max": None, "late": 0}
        below = np.cumsum(counts)
        for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
            found[name] = int(np.searchsorted(below, np.ceil(share * scored))) / 1000
        found["max"] = int(self.longest[kind]) / 1000
        found["late"] = int(counts[LIMITS[kind] * 1000 + 1 :].sum())
        return found

    def by_second(self, share: float, begin: int, end: int) -> list[float | None]:
        """The response time below which this share of a second's answers stayed.

        None without answers.
        """
        below = np.cumsum(self.waits[begin:end], axis=1)
        total = below[:, -1]
        bins = (below < np.ceil(share * total)[:, None]).sum(axis=1)
        return [
            round((int(b) + 0.5) * _BIN_MS / 1000, 3) if n else None for b, n in zip(bins, total, strict=True)
        ]


@njit(cache=True, nogil=True)
def _count(
    text: Array, scored_from: int, by_type: Array, longest: Array, answers: Array, tolls: Array, waits: Array
) -> None:
    i, size = 0, len(text)
    while i < size:
        kind = text[i] - 48
        skip = 2 if kind == 0 else 1
        while skip > 0 and text[i] != 10:
            if text[i] == 44:
                skip -= 1
            i += 1
        time, i = _thousandths(text, i)
        emit, i = _thousandths(text, i + 1)
        while text[i] != 10:
            i += 1
        i += 1
        if 0 <= kind <= 4:
            second, wait = time // 1000, emit - time
            answers[kind] += 1
            if 0 <= second < len(tolls):
                waits[second, min(max(wait // _BIN_MS, 0), _BINS - 1)] += 1
                if kind == 0:
                    tolls[second] += 1
            if second >= scored_from:
                by_type[kind, min(max(wait, 0), _MOST_MS + 1)] += 1
                longest[kind] = max(longest[kind], wait)


@njit(cache=True, nogil=True)
def _thousandths(text: Array, i: int) -> tuple[int, int]:
    """A number with at most three decimals, in thousandths, and where it ends."""
    number, decimals = 0, -1
    while text[i] not in (44, 10):
        c = text[i]
        if c == 46:
            decimals = 0
        elif 48 <= c <= 57 and decimals < 3:
            number = number * 10 + int(c - 48)
            if decimals >= 0:
                decimals += 1
        i += 1
    for _ in range(3 - max(decimals, 0)):
        number *= 10
    return number, i
