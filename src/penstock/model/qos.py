"""QoS graphs (Aurora, Sect. 4.1, Fig. 4): utility over delay, over the share delivered, over output values.

Utilities are normalised to 0..1 (A58). The delay graph is flat up to its threshold, then falls (A55). The
loss graph must be concave: each further drop costs at least as much as the one before (A60), so the shedder
can follow its gradient. Without a point at 0 it goes down to (0, 0): who gets nothing has no use of it. A
graph may say otherwise: what gets nothing may still be worth something.

A delay graph need not be concave. It is read as drawn: where it becomes flatter, a late answer loses less by
waiting than one that is less late, so the scheduler serves the other one first. `given_up_from` says from
which delay on this is so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real

from penstock.model.errors import ExpressionError, directly, on_line, shown

Point = tuple[float, float]
_EXAMPLE = "[(0, 1.0), (5, 1.0), (30, 0.0)]: good up to 5 s, worthless at 30 s"


@dataclass(frozen=True)
class QoS:
    """How useful an output is, as graphs of (x, utility).

    `delay` is over seconds, `loss` over the percentage of tuples delivered, `value` over the values of
    `column`. `approximate`: under overload, answers may be computed from a part of their tuples (A08).

    >>> QoS(delay=[(0, 1.0), (5, 1.0), (30, 0.0)]).threshold
    5.0
    """

    delay: tuple[Point, ...]
    loss: tuple[Point, ...] = ()
    value: tuple[Point, ...] = ()
    column: str = ""
    weight: float = 1.0
    approximate: bool = False

    def __init__(
        self,
        delay: Iterable[object],
        loss: Iterable[object] = (),
        value: Iterable[object] = (),
        column: str = "",
        weight: float = 1.0,
        approximate: bool = False,
    ) -> None:
        try:
            self._take(delay, loss, value, column, weight)
            self._take_approximate(approximate)
        except ExpressionError as error:
            # On the user's own line we know where it is. Inside a box or a YAML text, the reader adds that.
            raise on_line(error, directly()) from None

    def _take(
        self,
        delay: Iterable[object],
        loss: Iterable[object],
        value: Iterable[object],
        column: str,
        weight: float,
    ) -> None:
        for name, graph in (("delay", delay), ("loss", loss), ("value", value)):
            object.__setattr__(self, name, _points(name, graph))
        if not isinstance(column, str):
            raise ExpressionError("the column is not a name", found=shown(column), expected="a text")
        object.__setattr__(self, "column", column)
        object.__setattr__(self, "weight", _number("the weight", weight))
        _check_delay(self.delay)
        if self.loss:
            _check_loss(self.loss)
        if self.value and not column:
            raise ExpressionError(
                "a value graph needs the column it is about", hint="QoS(..., value=[...], column='speed')"
            )
        if weight <= 0:
            raise ExpressionError(f"the weight is {weight}", expected="a weight above 0")

    def _take_approximate(self, approximate: bool) -> None:
        if not isinstance(approximate, bool):
            raise ExpressionError(
                "approximate: wrong kind of value", found=shown(approximate), expected="True or False"
            )
        object.__setattr__(self, "approximate", approximate)

    @property
    def threshold(self) -> float:
        """The end of the good zone: the largest delay at full utility."""
        return max(x for x, y in self.delay if y == self.delay[0][1])

    @property
    def given_up_from(self) -> float | None:
        """The delay from which on waiting costs less than before; None if the delay graph is concave (A60).

        >>> QoS(delay=[(0, 1.0), (5, 1.0), (10, 0.2), (60, 0.0)]).given_up_from
        10.0
        >>> QoS(delay=[(0, 1.0), (5, 1.0), (30, 0.0)]).given_up_from is None
        True
        """
        for (x, earlier), (_, later) in pairwise(_slopes(self.delay)):
            if later > earlier + 1e-12:
                return x
        end, utility = self.delay[-1]
        return end if 0 < utility < 1 else None

    def at_delay(self, seconds: float) -> float:
        """The utility of an answer that took this long."""
        return _interpolate(self.delay, seconds)

    def delay_slope(self, seconds: float) -> float:
        """The utility that one more second of delay costs.

        >>> QoS(delay=[(0, 1.0), (5, 1.0), (30, 0.0)]).delay_slope(5)
        0.04
        """
        return -next((slope for x, slope in _slopes(self.delay) if seconds < x), 0.0)

    @property
    def may_be_shed(self) -> bool:
        """Whether tuples may be dropped at all: only if a loss graph says what that costs."""
        return bool(self.loss)

    def at_share(self, share: float) -> float:
        """The utility when so much of what is due is delivered, 0..1. Without a loss graph: all or nothing.

        >>> qos = QoS(delay=[(0, 1), (5, 1), (30, 0)], loss=[(0, 0), (50, 0.9), (100, 1)])
        >>> qos.at_share(1.0), qos.at_share(0.5), qos.at_share(0.25)
        (1.0, 0.9, 0.45)
        """
        if not self.loss:
            return 1.0 if share >= 1.0 else 0.0
        return _interpolate(_from_nothing(self.loss), 100 * share)

    def loss_slope(self, share: float) -> float:
        """The utility that the next bit of share costs if it is dropped, for each unit of share.

        >>> qos = QoS(delay=[(0, 1), (5, 1), (30, 0)], loss=[(0, 0), (50, 0.9), (100, 1)])
        >>> round(qos.loss_slope(1.0), 9), round(qos.loss_slope(0.5), 9)
        (0.2, 1.8)
        """
        if not self.loss:
            return math.inf
        slopes = _slopes(_from_nothing(self.loss))
        return 100 * next((slope for x, slope in slopes if 100 * share <= x + 1e-9), slopes[-1][1])

    def at_value(self, value: float) -> float:
        """The utility of a tuple with this value of `column`; 1 without a value graph.

        >>> QoS(delay=[(0, 1), (5, 1), (30, 0)], value=[(0, 0.1), (100, 1)], column="spd").at_value(50)
        0.55
        """
        return _interpolate(self.value, value) if self.value else 1.0


def _points(name: str, graph: Iterable[object]) -> tuple[Point, ...]:
    points = tuple(_point(name, point) for point in _listed(name, graph))
    for x, y in points:
        if not 0 <= y <= 1:
            raise ExpressionError(
                f"the {name} graph is not normalised",
                found=f"utility {y:g} at {x:g}",
                expected="utilities between 0 and 1",
            )
    if any(b[0] <= a[0] for a, b in pairwise(points)):
        raise ExpressionError(
            f"the {name} graph runs backwards", found=_text(points), expected="points in rising order of x"
        )
    return points


def _listed(name: str, graph: Iterable[object]) -> Iterable[object]:
    if isinstance(graph, str) or not isinstance(graph, Iterable):
        raise ExpressionError(
            f"the {name} graph is not a list of points",
            found=shown(graph),
            expected="[(x, utility), ...]",
            hint=_EXAMPLE,
        )
    return graph


def _point(name: str, point: object) -> Point:
    if not isinstance(point, tuple | list) or len(point) != 2:
        raise ExpressionError(
            f"the {name} graph has a point that is not a pair",
            found=shown(point),
            expected="(x, utility)",
            hint=_EXAMPLE,
        )
    x, y = (_number(f"the {name} graph", each) for each in point)
    return x, y


def _number(what: str, given: object) -> float:
    """NaN would pass every comparison of the checks, so only finite numbers are numbers."""
    if not isinstance(given, Real) or isinstance(given, bool) or not math.isfinite(given):
        raise ExpressionError(f"{what}: not a number", found=shown(given), expected="a finite number")
    return float(given)


def _check_delay(points: tuple[Point, ...]) -> None:
    if len(points) < 2:
        raise ExpressionError(
            "a delay graph needs at least two points",
            found=_text(points),
            hint=_EXAMPLE,
        )
    if points[0][0] < 0:
        raise ExpressionError("a delay cannot be negative", found=_text(points))
    if any(b[1] > a[1] for a, b in pairwise(points)):
        raise ExpressionError(
            "the delay graph rises",
            found=_text(points),
            expected="utility that stays or falls as the delay grows",
        )
    if points[0][1] != 1.0:
        raise ExpressionError(
            "the delay graph does not start at utility 1",
            found=_text(points),
            expected="1.0 at the smallest delay",
        )


def _check_loss(points: tuple[Point, ...]) -> None:
    if any(not 0 <= x <= 100 for x, _ in points) or points[-1][0] != 100:
        raise ExpressionError(
            "the loss graph is over percent delivered",
            found=_text(points),
            expected="x from 0 to 100, the last one 100",
        )
    if points[-1][1] != 1.0:
        raise ExpressionError(
            "the loss graph does not end at utility 1", found=_text(points), expected="1.0 at 100 % delivered"
        )
    # Concave: slopes never grow from left to right, up to rounding.
    slopes = [slope for _, slope in _slopes(_from_nothing(points))]
    if any(slope < 0 for slope in slopes):
        raise ExpressionError(
            "the loss graph falls",
            found=_text(points),
            expected="utility that grows with the share delivered",
        )
    if any(later > earlier + 1e-12 for earlier, later in pairwise(slopes)):
        raise ExpressionError(
            "the loss graph is not concave",
            found=_text(points),
            expected="each further drop costs at least as much utility as the one before",
            hint="make it flat near 100 % and steeper towards 0 %; with no point there it ends at 0",
        )


def _from_nothing(points: tuple[Point, ...]) -> tuple[Point, ...]:
    """The loss graph down to 0 % delivered, which is worth nothing unless the graph says otherwise."""
    return points if points[0][0] == 0 else ((0.0, 0.0), *points)


def _slopes(points: tuple[Point, ...]) -> list[Point]:
    """The slope of each piece, by the x at which the piece ends."""
    return [(b[0], (b[1] - a[1]) / (b[0] - a[0])) for a, b in pairwise(points)]


def _interpolate(points: tuple[Point, ...], x: float) -> float:
    if x <= points[0][0]:
        return points[0][1]
    for (x0, y0), (x1, y1) in pairwise(points):
        if x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return points[-1][1]


def _text(points: Iterable[Point]) -> str:
    return "[" + ", ".join(f"({x:g}, {y:g})" for x, y in points) + "]"
