"""What samples of trains have told about the values of an output, and about the tuples that led to them.

While values are dropped, nobody sees them. So what was seen of them before is remembered, and weighed by how
many the valve says that it sheds; the others are seen as they come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.control.semantic.bins import Cut
from penstock.engine.arrow.value_samples import finite, pairs
from penstock.model.json_types import JsonMapping, JsonObject
from penstock.rewrite.value_ways import ValueWay

MOST = 10_000
"""Points that are remembered of an output."""
ENOUGH = 120
"""Points from which on something is decided by them."""
_KEPT = 1_000  # points that the catalog keeps


@dataclass(frozen=True)
class Point:
    """A tuple at the place, by its numeric columns, and the value of its answer; None if it gave none.

    Where answers cannot be told apart by tuples (behind a window) there are answers without columns, and
    tuples without answers.
    """

    columns: Mapping[str, float | None]
    value: float | None = None


@dataclass(frozen=True)
class Weighed:
    """A point that stands for this many."""

    point: Point
    weight: float


@dataclass(frozen=True)
class Pool:
    """The points of one output. `answers`: by value alone; `tuples`: those at the place, with their answers.

    `kept_answers`, `kept_tuples`: seen while `cut` was in force, which shed this part of what was offered.
    """

    answers: tuple[Point, ...] = ()
    tuples: tuple[Point, ...] = ()
    cut: Cut | None = None
    kept_answers: tuple[Point, ...] = ()
    kept_tuples: tuple[Point, ...] = ()
    offered: int = 0
    shed: int = 0

    def after_train(
        self, way: ValueWay, samples: Mapping[str, JsonMapping], cut: Cut | None, flow: tuple[int, int]
    ) -> Pool:
        """With the samples of a train in which this cut held. `flow`: offered and shed at its place."""
        answers, tuples = _points(way, samples)
        if cut is None:
            return Pool(_last(self.answers, answers), _last(self.tuples, tuples))
        if cut != self.cut:
            fresh = replace(self, cut=cut, kept_answers=(), kept_tuples=(), offered=0, shed=0)
            return fresh.after_train(way, samples, cut, flow)
        return replace(
            self,
            kept_answers=_last(self.kept_answers, answers),
            kept_tuples=_last(self.kept_tuples, tuples),
            offered=self.offered + flow[0],
            shed=self.shed + flow[1],
        )

    def weighed_answers(self) -> list[Weighed]:
        """All answers as if nothing were dropped by value."""
        chosen = () if self.cut is None else self.cut.values
        return self._weighed(self.answers, self.kept_answers, lambda p: any(i.holds(p.value) for i in chosen))

    def weighed_tuples(self) -> list[Weighed]:
        """All tuples at the place, as if nothing were dropped by value."""
        chosen = () if self.cut is None else self.cut.chosen
        return self._weighed(
            self.tuples, self.kept_tuples, lambda p: any(i.holds(p.columns.get(i.column)) for i in chosen)
        )

    def _weighed(
        self, before: Sequence[Point], kept: Sequence[Point], dropped: Callable[[Point], bool]
    ) -> list[Weighed]:
        cut = self.cut
        hidden = [] if cut is None else [point for point in before if dropped(point)]
        if cut is None or len(kept) < ENOUGH or not self.offered or not hidden:
            return [Weighed(point, 1.0) for point in before]
        seen = [point for point in kept if not dropped(point)]
        # The valve tells how many were shed. Of what it spares, as many are taken to be spared as planned.
        inside = min(1.0, self.shed / self.offered / max(1e-9, 1 - _spared(cut, before)))
        return [
            *(Weighed(point, inside / len(hidden)) for point in hidden),
            *(Weighed(point, (1 - inside) / len(seen)) for point in seen),
        ]

    def plain(self) -> JsonObject:
        """For the catalog: what was seen while nothing was dropped."""
        return {
            "answers": [point.value for point in self.answers[-_KEPT:]],
            "tuples": [[dict(point.columns), point.value] for point in self.tuples[-_KEPT:]],
        }

    @classmethod
    def of(cls, plain: JsonMapping) -> Pool:
        """From the catalog."""
        answers = tuple(Point({}, value) for value in plain["answers"] if finite(value) is not None)
        return cls(answers, tuple(Point(_finite(columns), finite(v)) for columns, v in plain["tuples"]))


def _finite(columns: Mapping[str, float | None]) -> dict[str, float | None]:
    """Without what no interval holds: earlier versions kept infinite values, too."""
    return {name: finite(value) for name, value in columns.items()}


def _spared(cut: Cut, before: Sequence[Point]) -> float:
    """The part of what the cut has chosen that it lets pass."""
    if cut.partly is None:
        return 0.0
    chosen = [p.columns.get(cut.column) for p in before]
    partly = sum(cut.partly.holds(value) for value in chosen)
    whole = sum(interval.holds(value) for value in chosen for interval in cut.dropped)
    return cut.part * partly / max(1, partly + whole)


def _last(known: Sequence[Point], more: Iterable[Point]) -> tuple[Point, ...]:
    return (*known, *more)[-MOST:]


def _points(way: ValueWay, samples: Mapping[str, JsonMapping]) -> tuple[list[Point], list[Point]]:
    """The answers and the tuples of a train's samples."""
    before, after = samples.get(way.tail), samples.get(way.end)
    values = [] if after is None else after["columns"][way.qos.column]
    answers = [Point({}, value) for value in values if value is not None]
    if before is None:
        return answers, []
    rows = [
        {name: values[number] for name, values in before["columns"].items()}
        for number in range(len(before["seq"]))
    ]
    if not way.rowwise or after is None:
        return answers, [Point(row) for row in rows]
    return answers, [Point(rows[number], value) for number, value in pairs(before, after, way.qos.column)]
