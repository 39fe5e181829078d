"""Horizons of a sub-network on Spark: laid out once as plain steps, then run for every ticket.

`model/checks/horizons.py` holds the definition. This is a second way to the same numbers, so that comparing
the engines can find a fault in either. Every box is one step: it takes the least horizon of its inputs, goes
back by a length of time, and rounds down to a multiple of another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Never, cast

from penstock.engine.contract.ticket import UNKNOWN
from penstock.model.boxes import Join, Latch, Node, Resample, Windowed
from penstock.model.durations import Time


@dataclass(frozen=True)
class Step:
    """One box: `back` microseconds, then down to a multiple of `grid`; `lost`: no promise after it."""

    node: str
    inputs: tuple[str, ...]
    back: int = 0
    grid: int = 1
    lost: bool = False

    def promise(self, fronts: Iterable[int]) -> int:
        """The horizon after the box."""
        least = min(fronts)
        if self.lost or least == UNKNOWN:
            return UNKNOWN
        moved = least - self.back
        return max(UNKNOWN, moved - moved % self.grid)


Arrows = tuple[int, ...]
"""The horizons in front of a box, one for each of its inputs."""
NOTHING_LIFTED: Mapping[str, Arrows] = {}


@dataclass(frozen=True)
class Reached:
    """How far a train is: `behind` each node, and `before` each box.

    `lifted`: what lies before boxes that go on without an idle input, beyond what that input has promised.
    A horizon never goes back, even when the input wakes up, so the next train begins with it.
    """

    behind: dict[str, int]
    before: dict[str, Arrows]
    lifted: dict[str, Arrows]


@dataclass(frozen=True)
class HorizonPlan:
    """The steps of a sub-network, in order of the arrows."""

    steps: tuple[Step, ...]

    @classmethod
    def of(cls, nodes: Iterable[Node]) -> HorizonPlan:
        """Lay out the steps; nodes come in topological order."""
        return cls(tuple(Step(node.name, node.inputs, *_length(node)) for node in nodes))

    def reached(
        self,
        given: Mapping[str, int],
        idle: Iterable[str] = (),
        lifted: Mapping[str, Arrows] = NOTHING_LIFTED,
    ) -> Reached:
        """All horizons, from the promises of the inputs. `lifted`: as the last train has left it.

        Nobody waits for an `idle` input where it meets others. By itself it is no further than it says.

        >>> plan = HorizonPlan((Step("cars", ()), Step("minutes", ("cars",), grid=60)))
        >>> plan.reached({"cars": 130}).behind
        {'cars': 130, 'minutes': 120}
        """
        asleep, now = set(idle), Reached({}, {}, {})
        for step in self.steps:
            if not step.inputs:
                now.behind[step.node] = given.get(step.node, UNKNOWN)
                continue
            promised = arrows = tuple(now.behind[name] for name in step.inputs)
            if len(arrows) > 1 and (asleep or step.node in lifted):
                awake = [name not in asleep for name in step.inputs]
                arrows = _not_back(_without_idle(promised, awake), lifted.get(step.node, promised))
            if arrows != promised:
                now.lifted[step.node] = arrows
            if asleep.issuperset(step.inputs):
                asleep.add(step.node)
            now.before[step.node] = arrows
            now.behind[step.node] = step.promise(arrows)
        return now


def _without_idle(promised: Arrows, awake: Sequence[bool]) -> Arrows:
    """Idle inputs are as far as the least of the others; if all are idle, nothing more is known."""
    least = min((horizon for horizon, live in zip(promised, awake, strict=True) if live), default=UNKNOWN)
    return tuple(h if live else max(h, least) for h, live in zip(promised, awake, strict=True))


def _not_back(now: Arrows, before: Arrows) -> Arrows:
    # Another form of the network may have given the box other inputs.
    return tuple(map(max, now, before)) if len(now) == len(before) else now


Length = tuple[int, int, bool]  # back, grid, lost
_STAYS: Length = (0, 1, False)


def _length(node: Node) -> Length:
    length = cast("Callable[[Node], Length] | None", _LENGTHS.get(node.kind))
    return _STAYS if length is None else length(node)


def _windows(node: Windowed | Latch) -> Length:
    """Time windows hold tuples back until they close; count windows may close on a tuple of any age."""
    if not isinstance(node.size, Time):
        return (0, 1, node.stamp == "earliest")
    aligned = node.stamp == "earliest" and node.kind != "slide"
    return (0, node.size.us, False) if aligned else (node.size.us, 1, False)


def _latch(node: Latch) -> Length:
    return _windows(node) if node.function is None else _STAYS


def _resample(node: Resample) -> Length:
    return (node.limit, 1, False)


def _join(node: Join) -> Length:
    return (max(node.within), 1, False)


# By kind of box. A kind that is not listed passes horizons on unchanged.
_LENGTHS: dict[str, Callable[[Never], Length]] = {
    "tumble": _windows,
    "slide": _windows,
    "latch": _latch,
    "resample": _resample,
    "join": _join,
}
