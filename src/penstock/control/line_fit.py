"""A line through the costs of trains that a few odd trains do not bend (Theil and Sen).

A train that met a garbage collection or a cold cache may cost ten times the usual. Least squares would follow
it, a median does not.

Trains of different forms (one task, a job of tasks, DataFrames) differ in what they cost without any tuple.
So slopes are told by pairs of trains of one form only. What a tuple costs can also not be more than all that
the longest trains cost, divided by their tuples.

Trains of about the same length do not tell what is fixed and what each tuple costs. What a tuple usually
costs at most is then the better guess: all that is more counts as fixed. To take the cost of short trains for
that of their tuples would mean to shed without any reason, and to make trains so short that nobody finds out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.model.costs import Line

TRAINS = 64
"""A line is fitted to so many recent trains: 2,016 pairs at most."""
_SPREAD = 1.8  # the longest train must be so many times the shortest, or no slope can be told
_ENOUGH, _ENOUGH_OF_FORM = 8, 3  # trains, before what is fixed is believed: the first ones are cold
_TAILS = (48, 32, 24, 16, 12, 8, 6, 4, 3)  # so many of the last trains may all cost something else
_CHANGED, _MUCH = 2.0, 0.05  # times the line; seconds below which a train tells nothing about that
_LONG = 0.5  # of the longest: such trains tell the most that a tuple can cost

_Numbers = NDArray[np.float64]


def fit_line(
    tuples: Sequence[float],
    seconds: Sequence[float],
    groups: Sequence[int] | None = None,
    *,
    usual: float = float("inf"),
) -> Line | None:
    """The line through the last trains with tuples; None if there was none.

    `groups`: the form of each train; the fixed part is that of the form of the longest one. If all trains
    have about the same length, a tuple is taken to cost `usual` seconds, or all of it if that is less.

    >>> fit_line([100, 200, 300, 400], [0.3, 0.4, 9.0, 0.6])
    Line(fixed=0.2, per_tuple=0.001)
    >>> fit_line([100, 100], [0.3, 0.5])
    Line(fixed=0.0, per_tuple=0.004)
    >>> fit_line([100, 100], [0.3, 0.5], usual=0.001)
    Line(fixed=0.3, per_tuple=0.001)
    >>> fit_line([100, 200, 3000, 4000], [0.2, 0.3, 4.0, 5.0], groups=[0, 0, 1, 1])
    Line(fixed=1.0, per_tuple=0.001)
    """
    forms = [0] * len(tuples) if groups is None else groups
    known = [(n, s, form) for n, s, form in zip(tuples, seconds, forms, strict=True) if n > 0][-TRAINS:]
    if not known:
        return None
    n, y, form = (np.array(column, dtype=np.float64) for column in zip(*known, strict=True))
    most = _most_a_tuple(n, y)
    slope = _slope(n, y, form)
    slope = min(max(0.0, usual if slope is None else slope), most)
    mine = form == form[np.argmax(n)]
    fixed = float(np.median(y[mine] - slope * n[mine]))
    if fixed < 0:
        return Line(0.0, _rounded(float(np.median(y[mine] / n[mine]))))
    return Line(_rounded(fixed), _rounded(slope))


def since_change(tuples: Sequence[float], seconds: Sequence[float]) -> int:
    """From which train on all contradict the line through those before them; 0 if there is no such change.

    A median holds on to the old for half of its trains. For minutes that is wrong where a function has become
    another one between two runs.

    >>> tuples = [10_000, 20_000, 50_000, 90_000] * 4
    >>> cheap = [2e-6 * n for n in tuples]
    >>> since_change(tuples + [50_000] * 3, cheap + [1.0] * 3), since_change(tuples, cheap)
    (16, 0)
    """
    if sum(took >= _MUCH for took in seconds) < min(_TAILS):
        return 0  # most boxes: whatever it costs, it is next to nothing
    for tail in _TAILS:
        first = len(tuples) - tail
        before = fit_line(tuples[:first], seconds[:first]) if first >= _ENOUGH else None
        if before is None:
            continue
        each = [(k, seconds[k], before.at(tuples[k])) for k in range(first, len(tuples))]
        told = [(k, took, line) for k, took, line in each if max(took, line) >= _MUCH]
        dearer = all(took > _CHANGED * line for _, took, line in told)
        cheaper = all(_CHANGED * took < line for _, took, line in told)
        if len(told) >= min(_TAILS) and (dearer or cheaper):
            return told[0][0]
    return 0


def tells_fixed(tuples: Sequence[float], groups: Sequence[int]) -> bool:
    """Whether trains tell what one takes without tuples: there are enough, and their lengths differ.

    >>> lengths = [1000, 2000, 5000, 9000] * 2
    >>> tells_fixed(lengths, [0] * 8), tells_fixed(lengths[:4], [0] * 4), tells_fixed([1000] * 8, [0] * 8)
    (True, False, False)
    """
    known = [(n, form) for n, form in zip(tuples, groups, strict=True) if n > 0][-TRAINS:]
    if len(known) < _ENOUGH:
        return False
    n, form = (np.array(column, dtype=np.float64) for column in zip(*known, strict=True))
    return bool(_telling(n, form)) and int((form == form[np.argmax(n)]).sum()) >= _ENOUGH_OF_FORM


def _telling(n: _Numbers, form: _Numbers) -> list[float]:
    """The forms with trains of different lengths: they tell what a tuple costs."""
    return [each for each in set(form) if n[form == each].max() >= _SPREAD * n[form == each].min()]


def _most_a_tuple(n: _Numbers, y: _Numbers) -> float:
    """All that the longest trains cost, divided by their tuples."""
    long = n >= _LONG * n.max()
    return float(np.median(y[long] / n[long]))


def _slope(n: _Numbers, y: _Numbers, form: _Numbers) -> float | None:
    """The median of the slopes of all pairs of one form, each weighted by how far apart they are in length.

    None if no form has trains of different lengths.
    """
    first, second = np.triu_indices(len(n), k=1)
    longer, shorter = np.maximum(n[first], n[second]), np.minimum(n[first], n[second])
    use = (form[first] == form[second]) & np.isin(form[first], _telling(n, form)) & (longer > shorter)
    if not use.any():
        return None
    apart, higher = (n[second] - n[first])[use], (y[second] - y[first])[use]
    slopes, weights = higher / apart, np.abs(apart)
    order = np.argsort(slopes)
    summed = np.cumsum(weights[order])
    return float(slopes[order][np.searchsorted(summed, summed[-1] / 2)])


def _rounded(seconds: float) -> float:
    """Nine digits are more than any clock gives, and 0.2 then reads as 0.2."""
    return float(f"{seconds:.9g}")
