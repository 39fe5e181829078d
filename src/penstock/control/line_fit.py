"""A line through the costs of trains that a few odd trains do not bend (Theil and Sen).

A train that met a garbage collection or a cold cache may cost ten times the usual. Least squares would follow
it, a median does not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.model.costs import Line

TRAINS = 64
"""A line is fitted to so many recent trains: 2,016 pairs at most."""
_SPREAD = 1.25  # the longest train must be so many times the shortest, or no slope can be told


def fit_line(tuples: Sequence[float], seconds: Sequence[float]) -> Line | None:
    """The line through the last trains with tuples; None if there was none.

    If all trains have about the same length, what is fixed cannot be told from what each tuple costs. Then
    all of it counts as the cost of tuples.

    >>> fit_line([100, 200, 300, 400], [0.3, 0.4, 9.0, 0.6])
    Line(fixed=0.2, per_tuple=0.001)
    >>> fit_line([100, 100], [0.3, 0.5])
    Line(fixed=0.0, per_tuple=0.004)
    """
    pairs = [(n, s) for n, s in zip(tuples, seconds, strict=True) if n > 0][-TRAINS:]
    if not pairs:
        return None
    n, y = (np.array(column, dtype=np.float64) for column in zip(*pairs, strict=True))
    if n.max() < _SPREAD * n.min():
        return Line(0.0, _rounded(float(np.median(y / n))))
    slope = max(0.0, _median_slope(n, y))
    fixed = float(np.median(y - slope * n))
    if fixed < 0:
        return Line(0.0, _rounded(float(np.median(y / n))))
    return Line(_rounded(fixed), _rounded(slope))


def _median_slope(n: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """The median of the slopes of all pairs, each weighted by how far apart its trains are in length."""
    first, second = np.triu_indices(len(n), k=1)
    apart, higher = n[second] - n[first], y[second] - y[first]
    differ = apart != 0
    slopes, weights = higher[differ] / apart[differ], np.abs(apart[differ])
    order = np.argsort(slopes)
    summed = np.cumsum(weights[order])
    return float(slopes[order][np.searchsorted(summed, summed[-1] / 2)])


def _rounded(seconds: float) -> float:
    """Nine digits are more than any clock gives, and 0.2 then reads as 0.2."""
    return float(f"{seconds:.9g}")
