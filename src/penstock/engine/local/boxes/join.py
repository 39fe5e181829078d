"""Join (Aurora, Sect. 2.1; A18): pairs of tuples near in time, by two lists and two loops."""

from __future__ import annotations

from penstock.engine.local.expressions.evaluate import ExpressionFailure, compile_row
from penstock.engine.local.order import Gate
from penstock.engine.local.rows import Answer, Row, Value, frozen
from penstock.model.boxes import Join
from penstock.model.checks.stream_types import join_names
from penstock.model.types import SEQ, STAMP, StreamType


class JoinLogic:
    """Every new tuple meets all kept tuples of the other side; a pair is given as soon as both are there."""

    def __init__(self, node: Join, inputs: list[StreamType], output: StreamType) -> None:
        self.node, self.output, self.gate = node, output, Gate(2)
        self.renamed = dict(join_names(node, inputs[0].schema, inputs[1].schema))
        self.predicate = compile_row(node.predicate, output.schema) if node.predicate else None
        self.keys = [(a, b, _as_doubles(a, b, inputs)) for a, b in node.on]
        self.left: list[Row] = []
        self.right: list[Row] = []

    def process(self, inputs: list[list[Row]], horizons: tuple[int, ...], *, final: bool) -> Answer:
        (left, right), late = self.gate.admit(inputs)
        answer = Answer(dead=late)
        # New left tuples meet all right ones, old left tuples only the new right ones: each pair is met once.
        self._pair(left, self.right + right, answer)
        self._pair(self.left, right, answer)
        self.left, self.right = self.left + left, self.right + right
        self._expire(self.gate.act(horizons), final=final)
        return answer

    def _pair(self, left: list[Row], right: list[Row], answer: Answer) -> None:
        for one in left:
            for other in right:
                if self._near(one, other) and self._equal(one, other):
                    self._give(one, other, answer)

    def _near(self, left: Row, right: Row) -> bool:
        ahead: int = right[STAMP] - left[STAMP]
        return -self.node.within[1] <= ahead <= self.node.within[0]

    def _equal(self, left: Row, right: Row) -> bool:
        return all(_same(left[a], right[b], doubles=doubles) for a, b, doubles in self.keys)

    def _give(self, left: Row, right: Row, answer: Answer) -> None:
        both = {**left, **{new: right[name] for name, new in self.renamed.items()}}
        pair = {name: both[name] for name in self.output.schema.names}
        pair |= {STAMP: min(left[STAMP], right[STAMP]), SEQ: left[SEQ]}
        try:
            if self.predicate is None or self.predicate(pair):
                answer.out.append(pair)
        except ExpressionFailure as failure:
            answer.dead.append((pair, str(failure)))

    def _expire(self, horizons: tuple[int, ...], *, final: bool) -> None:
        # A left tuple can meet right ones up to `after` later, so it waits for the horizon of the right side.
        # The other way round it is `before` and the left side.
        after, before = self.node.within
        self.left = [] if final else [row for row in self.left if row[STAMP] + after >= horizons[1]]
        self.right = [] if final else [row for row in self.right if row[STAMP] + before >= horizons[0]]


def _as_doubles(a: str, b: str, inputs: list[StreamType]) -> bool:
    """Whether keys are compared as doubles, as Spark does if one of them may be a fraction."""
    types = inputs[0].schema.type_of(a), inputs[1].schema.type_of(b)
    return "FLOAT" in types or "DOUBLE" in types


def _same(a: Value, b: Value, *, doubles: bool) -> bool:
    # Null equals nothing, not even null.
    if a is None or b is None:
        return False
    # Python compares a whole number with a fraction exactly, a double has only 53 bits.
    one, other = (float(a), float(b)) if doubles else (a, b)
    return bool(frozen(one) == frozen(other))
