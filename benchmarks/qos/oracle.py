"""The oracle: the most utility that shares alone could give at a capacity. A bound, no system.

A linear program over measured costs and true rates, without any delay: each output o keeps a share x of its
tuples, each node works for the largest share below it, and all nodes together may use the capacity at which
x1 was found. Loss graphs are concave, so their pieces are variables of their own. Of an output with a value
graph the best tuples stay, and the pieces are of what they are worth. The simplex is written out here: a
package for some dozen variables would be one more dependency.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from penstock.control.roadmap import LoadNode
from penstock.model.qos import QoS

_TINY = 1e-9
_CURVE_PIECES = 100

WorthKept = Callable[[float], float]
"""The part of all worth that remains, by the share of tuples that stay."""


@dataclass(frozen=True)
class Bound:
    """The best shares, and the utility they give, 0..1."""

    utility: float
    shares: Mapping[str, float]


def best_shares(
    nodes: Sequence[LoadNode],
    qos: Mapping[str, QoS],
    capacity: float,
    curves: Mapping[str, WorthKept] | None = None,
) -> Bound:
    """The linear program. `nodes`: CPU-seconds a second at the offered rates; an output without a loss graph
    keeps all or nothing, and is taken as a straight line: that only raises the bound. `curves`: of outputs
    whose tuples can go by value.
    """
    known = curves or {}
    pieces = [(name, *piece) for name in sorted(qos) for piece in _pieces(qos[name], known.get(name))]
    count, size = len(pieces), len(pieces) + len(nodes)
    gain = np.zeros(size)
    rows, limits = [], []
    for index, (name, width, slope) in enumerate(pieces):
        gain[index] = qos[name].weight * slope
        rows.append(_row(size, {index: 1.0}))
        limits.append(width)
    for position, node in enumerate(nodes):
        for name in sorted(node.outputs & set(qos)):
            parts = {index: 1.0 for index, piece in enumerate(pieces) if piece[0] == name}
            rows.append(_row(size, {**parts, count + position: -1.0}))
            limits.append(0.0)
    rows.append(_row(size, {count + position: node.load for position, node in enumerate(nodes)}))
    limits.append(capacity)
    best = maximise(gain, np.array(rows), np.array(limits))
    shares = {
        name: float(sum(best[index] for index, piece in enumerate(pieces) if piece[0] == name))
        for name in sorted(qos)
    }
    return Bound(float(gain @ best) / sum(each.weight for each in qos.values()), shares)


def _row(size: int, entries: Mapping[int, float]) -> np.ndarray:
    row = np.zeros(size)
    for index, value in entries.items():
        row[index] = value
    return row


def _pieces(qos: QoS, curve: WorthKept | None) -> list[tuple[float, float]]:
    """(width, slope) of the straight pieces of utility over the share kept, 0..1."""
    if qos.loss and curve is not None:
        shares = [number / _CURVE_PIECES for number in range(_CURVE_PIECES + 1)]
        graph = [(share, qos.at_share(curve(share))) for share in shares]
    else:
        drawn = qos.loss or ((0.0, 0.0), (100.0, 1.0))
        graph = [(x / 100, y) for x, y in (drawn if drawn[0][0] == 0 else ((0.0, 0.0), *drawn))]
    return [(b[0] - a[0], (b[1] - a[1]) / (b[0] - a[0])) for a, b in pairwise(graph)]


def maximise(gain: np.ndarray, rows: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """The x >= 0 with rows @ x <= limits that has the largest gain @ x; limits must not be negative.

    The simplex with Bland's rule, which cannot run in circles.

    >>> maximise(np.array([3.0, 2.0]), np.array([[1.0, 1.0], [1.0, 0.0]]), np.array([4.0, 3.0]))
    array([3., 1.])
    """
    constraints, size = rows.shape
    table = np.hstack([rows.astype(float), np.eye(constraints), limits.reshape(-1, 1).astype(float)])
    costs = np.concatenate([-gain.astype(float), np.zeros(constraints + 1)])
    basis = list(range(size, size + constraints))
    while (entering := next((j for j in range(len(costs) - 1) if costs[j] < -_TINY), None)) is not None:
        column = table[:, entering]
        usable = [i for i in range(constraints) if column[i] > _TINY]
        if not usable:
            raise ValueError("the program has no bound")
        ratios = {i: table[i, -1] / column[i] for i in usable}
        least = min(ratios.values())
        leaving = min((i for i in usable if ratios[i] <= least + _TINY), key=lambda i: basis[i])
        table[leaving] /= table[leaving, entering]
        for i in range(constraints):
            if i != leaving:
                table[i] -= table[i, entering] * table[leaving]
        costs -= costs[entering] * table[leaving]
        basis[leaving] = entering
    solution = np.zeros(size + constraints)
    solution[basis] = table[:, -1]
    return solution[:size]
