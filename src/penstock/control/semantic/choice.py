"""Which column to drop by, and what its intervals are worth: backward from the output, else forward (A91).

Backward: the output's value is that of a column at the place, so intervals of it are intervals there.
Forward: sampled tuples at the place and their answers show by which column the worthless ones are told best.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from penstock.control.semantic.backward import Placed, backward
from penstock.control.semantic.bins import Bin, Bins, Side
from penstock.control.semantic.intervals import Interval, cut_evenly
from penstock.control.semantic.pool import ENOUGH, Pool, Weighed
from penstock.model.qos import QoS
from penstock.model.writing.network import Network
from penstock.rewrite.value_ways import ValueWay

MOST_BINS = 64
_TINY = 1e-12
_LEAST_GAIN = 0.05  # of the value at half of the tuples: with less, a column says nothing


def chosen_bins(network: Network, way: ValueWay, pool: Pool) -> Bins | None:
    """The intervals to drop by; None if values cannot be told at the place, or are not known yet."""
    placed = placed_at(network, way)
    if placed is None:
        return forward(way, pool.weighed_tuples()) if way.rowwise else None
    if way.rowwise:
        return of_column(way, placed.interval.column, pool.weighed_tuples())
    return of_answers(network, way, pool)


def placed_at(network: Network, way: ValueWay, interval: Interval | None = None) -> Placed | None:
    """An interval of the output's values at the place of its way; None if it cannot be told there."""
    asked = interval or Interval(way.qos.column, 0.0, 1.0)
    return next((each for each in backward(network, way.output, asked) if each.at == way.at), None)


def of_column(way: ValueWay, column: str, points: Sequence[Weighed]) -> Bins | None:
    """The intervals of one column at the place, by the answers of the tuples in them."""
    known = _with(column, points)
    if len(known) < ENOUGH:
        return None
    intervals = _intervals(column, known)
    tuples, value = _held(way, intervals, known)
    return Bins(way.at, _bins(intervals, tuples, value, value / np.maximum(tuples, _TINY)))


def forward(way: ValueWay, points: Sequence[Weighed]) -> Bins | None:
    """The column by which worthless tuples can be told best.

    Among many columns and intervals some look good by chance. So one half of the points puts the intervals in
    order, and the other one says what that is worth.
    """
    columns = sorted({name for each in points for name in each.point.columns})
    candidates = [bins for column in columns if (bins := _halved(way, column, points)) is not None]
    best = max(candidates, key=lambda bins: bins.curve().at(0.5), default=None)
    return None if best is None or best.curve().at(0.5) < 0.5 + _LEAST_GAIN else best


def _halved(way: ValueWay, column: str, points: Sequence[Weighed]) -> Bins | None:
    known = _with(column, points)
    if len(known) < 2 * ENOUGH:
        return None
    intervals = _intervals(column, known)
    tuples, value = _held(way, intervals, known[::2])
    # An interval in which this half has no tuple is taken to be worth as much as others.
    ranks = np.where(tuples > 0, value / np.maximum(tuples, _TINY), value.sum() / max(tuples.sum(), _TINY))
    return Bins(way.at, _bins(intervals, *_held(way, intervals, known[1::2]), ranks))


def _with(column: str, points: Sequence[Weighed]) -> list[Weighed]:
    """The points that have a value there; the others are never dropped."""
    return [each for each in points if each.point.columns.get(column) is not None]


def _intervals(column: str, points: Sequence[Weighed]) -> tuple[Interval, ...]:
    return cut_evenly(column, [each.point.columns[column] or 0.0 for each in points], MOST_BINS)


def _held(
    way: ValueWay, intervals: Sequence[Interval], points: Sequence[Weighed]
) -> tuple[np.ndarray, np.ndarray]:
    """What each interval holds of the tuples and of their utility."""
    xs = _numbers([each.point.columns[intervals[0].column] for each in points])
    return _sums(intervals, xs, _weights(points), _utilities(way.qos, points))


def of_answers(network: Network, way: ValueWay, pool: Pool) -> Bins | None:
    """Intervals of the output's values, each at the place: behind windows and joins.

    How many tuples at the place each of them has is seen there; what its answers are worth, at the output.
    """
    answers, tuples = pool.weighed_answers(), pool.weighed_tuples()
    if len(answers) < ENOUGH or len(tuples) < ENOUGH:
        return None
    values = _numbers([each.point.value for each in answers])
    intervals = cut_evenly(way.qos.column, values.tolist(), MOST_BINS)
    placed = [placed_at(network, way, interval) for interval in intervals]
    sure = [each for each in placed if each is not None]
    if len(sure) < len(intervals) or (sure[0].side is not Side.ANY and not way.qos.approximate):
        return None  # without its smaller values a window keeps its maximum, but not its time
    counts, value = _sums(intervals, values, _weights(answers), _utilities(way.qos, answers))
    there = [each.interval for each in sure]
    known = _with(there[0].column, tuples)
    xs = _numbers([each.point.columns[there[0].column] for each in known])
    weights = _weights(known)
    at_place = np.array([weights[(xs >= i.low) & (xs < i.high)].sum() for i in there])
    ranks = value / np.maximum(at_place, _TINY)
    bins = _bins(there, at_place, value, np.where(counts > 0, ranks, 0.0), intervals)
    return Bins(way.at, bins, any(each.whole for each in sure), sure[0].side)


def _bins(
    intervals: Sequence[Interval],
    tuples: np.ndarray,
    value: np.ndarray,
    ranks: np.ndarray,
    of: Sequence[Interval] | None = None,
) -> tuple[Bin, ...]:
    """As shares of all tuples and of all value. If nothing is worth anything, all are worth the same."""
    all_tuples = tuples.sum() or 1.0
    worthless = value.sum() <= 0
    shares, worth = tuples / all_tuples, (tuples / all_tuples if worthless else value / value.sum())
    stands_for: Iterator[Interval | None] = iter(of) if of is not None else iter([None] * len(intervals))
    return tuple(
        Bin(interval, float(share), float(part), float(rank), each)
        for interval, share, part, rank, each in zip(intervals, shares, worth, ranks, stands_for, strict=True)
    )


def _sums(
    intervals: Sequence[Interval], xs: np.ndarray, weights: np.ndarray, utilities: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The weight and the utility in each of the intervals, which cover all numbers in order."""
    edges = np.array([interval.low for interval in intervals[1:]])
    which = np.searchsorted(edges, xs, side="right")
    size = len(intervals)
    return np.bincount(which, weights, size), np.bincount(which, weights * utilities, size)


def _numbers(values: Sequence[float | None]) -> np.ndarray:
    return np.array(values, np.float64)


def _weights(points: Sequence[Weighed]) -> np.ndarray:
    return _numbers([each.weight for each in points])


def _utilities(qos: QoS, points: Sequence[Weighed]) -> np.ndarray:
    """What the answer of each tuple is worth; a tuple without an answer, nothing."""
    xs, ys = zip(*qos.value, strict=True)
    values = _numbers([each.point.value for each in points])
    return np.where(np.isnan(values), 0.0, np.interp(np.nan_to_num(values), xs, ys))
