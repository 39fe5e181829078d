"""Resample (Aurora, Sect. 2.1; A13): actual tuples, and in between synthetic ones on a regular grid."""

from __future__ import annotations

from penstock.engine.local.order import Gate, ReorderBuffer
from penstock.engine.local.rows import Answer, Key, Row, group
from penstock.model.boxes import Resample
from penstock.model.expressions.values import moment
from penstock.model.types import SEQ, STAMP, StreamType


class ResampleLogic:
    """Remembers the last tuple of each group; a gap longer than the limit stays a gap."""

    def __init__(self, node: Resample, inputs: list[StreamType], output: StreamType) -> None:
        self.node, self.inputs, self.output = node, inputs, output
        self.gate, self.buffer = Gate(len(inputs)), ReorderBuffer(inputs)
        self.last: dict[Key, Row] = {}

    def process(self, inputs: list[list[Row]], horizons: tuple[int, ...], *, final: bool) -> Answer:
        in_time, late = self.gate.admit(inputs)
        answer = Answer(dead=late)
        self.buffer.add(in_time)
        for index, row in self.buffer.release(self.gate.act(horizons), final=final):
            key = group(row, self.inputs[index].keys)
            if key in self.last:
                answer.out += self._between(self.last[key], row)
            answer.out.append(self._shape(row, row, row[STAMP], 0.0, synthetic=False))
            self.last[key] = row
        return answer

    def _between(self, before: Row, behind: Row) -> list[Row]:
        start, end, every = before[STAMP], behind[STAMP], self.node.every
        if end - start > self.node.limit:
            return []
        # Neither end: a point of the grid on which an actual tuple lies needs no synthetic one.
        grid = range((start // every + 1) * every, end, every)
        return [self._shape(before, behind, at, (at - start) / (end - start), synthetic=True) for at in grid]

    def _shape(self, before: Row, behind: Row, at: int, share: float, *, synthetic: bool) -> Row:
        new = {name: _linear(before[name], behind[name], share) for name in self.node.columns}
        # An actual tuple keeps its own timestamp column, which a box before may have set apart from `_ts`.
        stamp: Row = {str(self.output.timestamp): moment(at)} if synthetic else {}
        row = {**before, **new, **stamp, "synthetic": synthetic}
        return {**{name: row[name] for name in self.output.schema.names}, STAMP: at, SEQ: before[SEQ]}


def _linear(before: float | None, behind: float | None, share: float) -> float | None:
    if before is None or behind is None:
        return None
    if share == 0.0:  # an actual tuple: even an infinite value stays itself
        return float(before)
    return float(before) + (float(behind) - float(before)) * share
