"""The inner loop of the probe: all conjunctions against all tuples of a train, without Python objects.

The tuples lie sorted by each indexed column, and each span has become a slice of that order. The shortest
slice of a conjunction leads. Its tuples are checked against the other spans by comparing two whole numbers,
whatever the type of the column.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def probe(
    rank: np.ndarray,
    order: np.ndarray,
    first: np.ndarray,
    attribute: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The positions that each conjunction matches, one list after the other, and where each list begins.

    rank, order: attributes x tuples. Spans first[c]..first[c+1] of conjunction c: tuples low..high in the
    order of `attribute`.
    """
    conjunctions, rows = first.size - 1, order.shape[1]
    starts = np.zeros(conjunctions + 1, np.int64)
    out = np.empty(max(4096, 2 * rows), np.uint16)
    used = 0
    for c in range(conjunctions):
        begin, end = first[c], first[c + 1]
        lead, size = begin, rows
        for s in range(begin, end):
            if high[s] - low[s] < size or s == begin:
                lead, size = s, max(high[s] - low[s], 0)
        if size > 0:
            if used + size > out.size:
                wider = np.empty(2 * (used + size), np.uint16)
                wider[:used] = out[:used]
                out = wider
            if begin == end:
                for p in range(rows):
                    out[used + p] = p
                used += rows
            elif end - begin == 2:
                used = _two(rank, order, attribute, low, high, lead, 2 * begin + 1 - lead, out, used)
            else:
                used = _many(rank, order, attribute, low, high, lead, begin, end, out, used)
        starts[c + 1] = used
    return starts, out[:used].copy()


@njit(cache=True, nogil=True)
def _two(
    rank: np.ndarray,
    order: np.ndarray,
    attribute: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    lead: int,
    other: int,
    out: np.ndarray,
    used: int,
) -> int:
    # The usual case has no inner loop. Always write, but count only matches: no branch to mispredict.
    by, where, least, most = order[attribute[lead]], rank[attribute[other]], low[other], high[other]
    for i in range(low[lead], high[lead]):
        p = by[i]
        out[used] = p
        used += (where[p] >= least) & (where[p] < most)
    return used


@njit(cache=True, nogil=True)
def _many(
    rank: np.ndarray,
    order: np.ndarray,
    attribute: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    lead: int,
    begin: int,
    end: int,
    out: np.ndarray,
    used: int,
) -> int:
    by = order[attribute[lead]]
    for i in range(low[lead], high[lead]):
        p = by[i]
        fits = True
        for s in range(begin, end):
            at = rank[attribute[s], p]
            if at < low[s] or at >= high[s]:
                fits = False
                break
        if fits:
            out[used] = p
            used += 1
    return used


@njit(cache=True, nogil=True)
def arrange(starts: np.ndarray, positions: np.ndarray) -> None:
    """Sort each list in ascending order here, where nobody waits, instead of at each invocation."""
    for c in range(starts.size - 1):
        if starts[c + 1] - starts[c] > 1:
            positions[starts[c] : starts[c + 1]].sort()
