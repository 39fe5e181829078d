"""Sums of floating point numbers that do not depend on the order of the terms.

A sum is carried as two doubles, the sum and what rounding lost (Dekker 1971, Knuth 4.2.2: about 106 bits), so
that any cutting of a stream into trains, and any merging of partial sums, rounds to the same double in the
end (certain while the terms span fewer than 106 bits; beyond, two orders may differ by one unit in the last
place). That holds as long as no partial sum, and no square of a variance, leaves the range of a double; the
manual of Tumble says from where on that may be.
"""

from __future__ import annotations

import numpy as np

Pair = tuple[np.ndarray, np.ndarray]


def _finite_rest(total: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """An infinite sum has lost nothing that could be said."""
    return np.where(np.isfinite(total), rest, 0.0)


def add(a: Pair, b: Pair) -> Pair:
    """The sum of two pairs.

    >>> high, rest = add((np.array([1e16]), np.array([0.0])), (np.array([1.0]), np.array([0.0])))
    >>> high[0], rest[0]
    (np.float64(1e+16), np.float64(1.0))
    """
    with np.errstate(all="ignore"):
        total = a[0] + b[0]
        # Knuth's two-sum: `rest` is what rounding took from `total`, whichever term is larger.
        shift = total - a[0]
        rest = _finite_rest(total, (a[0] - (total - shift)) + (b[0] - shift) + (a[1] + b[1]))
        # Add up again, so that `high` is the double nearest to the whole pair.
        high = total + rest
        return high, _finite_rest(high, rest - (high - total))


def product(a: np.ndarray, b: np.ndarray) -> Pair:
    """The exact product of two doubles (near the ends of their range: the rounded one)."""
    with np.errstate(all="ignore"):
        high = a * b
        # Dekker's product: halves multiply without rounding, so they show what `high` has lost.
        (a1, a2), (b1, b2) = _halves(a), _halves(b)
        rest = ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2
        return high, np.where(np.isfinite(rest), _finite_rest(high, rest), 0.0)


def _halves(a: np.ndarray) -> Pair:
    big = 134217729.0 * a  # 2**27 + 1: each half has 26 bits, so their products are exact
    high = big - (big - a)
    return high, a - high


def segment_sums(pair: Pair, starts: np.ndarray) -> Pair:
    """The sum of each run of rows; a run goes from one start to the next. Pairwise, so the work is linear."""
    high, rest = pair
    sizes = np.diff(starts, append=len(high))
    while len(high) > len(sizes):
        first = np.cumsum(sizes) - sizes
        rank = np.arange(len(high)) - np.repeat(first, sizes)
        # One pass adds neighbours (0 and 1, 2 and 3, ...). A last row without neighbour waits for the next.
        left = np.flatnonzero(rank % 2 == 0)
        paired = (rank[left] + 1) < np.repeat(sizes, sizes)[left]
        sum_high, sum_rest = high[left], rest[left]
        two = left[paired]
        sum_high[paired], sum_rest[paired] = add((high[two], rest[two]), (high[two + 1], rest[two + 1]))
        high, rest, sizes = sum_high, sum_rest, (sizes + 1) // 2
    return high, rest


def variance(total: Pair, squares: Pair, count: np.ndarray) -> np.ndarray:
    """The sample variance from sum, sum of squares and count (2 at least)."""
    with np.errstate(all="ignore"):
        # squares - total * total / count, in pairs: plain doubles would lose the digits of a small variance.
        high, rest = product(total[0], total[0])
        rest = rest + 2.0 * total[0] * total[1]
        share = high / count
        back, lost = product(share, count)
        # `back + lost` is what the rounded quotient stands for; the difference is the rest of the division.
        share_rest = ((high - back) - lost + rest) / count
        left = add(squares, (-share, -_finite_rest(share, share_rest)))
        # Rounding must not make it negative; NaN stays NaN.
        result: np.ndarray = np.maximum(left[0] + left[1], 0.0) / (count - 1)
        return result
