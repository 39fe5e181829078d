"""Latch (Aurora, Sect. 2.1; A12): like Tumble, but it never forgets what it knows about a group."""

from __future__ import annotations

from penstock.engine.local.boxes.windows import (
    Open,
    Shaper,
    WindowKey,
    WindowTuple,
    length,
    take_closed,
    widened,
    windows_of,
)
from penstock.engine.local.functions import call, rows_of, same_length, table_of, wrong
from penstock.engine.local.order import Gate, ReorderBuffer
from penstock.engine.local.rows import Answer, Key, Row, group
from penstock.model.boxes import Latch
from penstock.model.checks.horizons import MIN
from penstock.model.checks.window_types import latch_schema
from penstock.model.expressions.values import micros
from penstock.model.types import SEQ, STAMP, Column, Schema, StreamType


class TimeLatch:
    """Aggregates over all tuples so far, given at the end of each window that has any."""

    def __init__(self, node: Latch, inputs: list[StreamType], output: StreamType) -> None:
        self.shaper = Shaper(node, inputs, output)
        self.gate, self.size = Gate(len(inputs)), length(node.size)
        self.open: dict[WindowKey, Open] = {}
        self.history: dict[Key, list[WindowTuple]] = {}

    def process(self, inputs: list[list[Row]], horizons: tuple[int, ...], *, final: bool) -> Answer:
        in_time, late = self.gate.admit(inputs)
        answer = Answer(dead=late)
        for index, rows in enumerate(in_time):
            for held in self.shaper.admit(index, rows, answer):
                (window,) = windows_of(held.row[STAMP], self.size, self.size)
                key = group(held.row, self.shaper.inputs[index].keys)
                self.open.setdefault((window, key), Open(window)).held.append(held)
        least = min(self.gate.act(horizons))
        for opened in take_closed(self.open, least, final=final):
            # Windows close in order of their ends, so the history grows in canonical order.
            covered = self.history.setdefault(group(opened.held[0].row, self.shaper.keys), [])
            covered += opened.held
            self.shaper.emit(opened.held, answer, opened.window, covered)
        return answer


class CountLatch:
    """Aggregates over all tuples so far, given after every so many tuples of a group."""

    def __init__(self, node: Latch, inputs: list[StreamType], output: StreamType) -> None:
        self.shaper = Shaper(node, inputs, output)
        self.gate, self.buffer = Gate(len(inputs)), ReorderBuffer(inputs)
        self.size = length(node.size)
        self.current: dict[Key, list[WindowTuple]] = {}
        self.history: dict[Key, list[WindowTuple]] = {}

    def process(self, inputs: list[list[Row]], horizons: tuple[int, ...], *, final: bool) -> Answer:
        in_time, late = self.gate.admit(inputs)
        answer = Answer(dead=late)
        self.buffer.add(in_time)
        reached = self.gate.act(horizons)
        for index, row in self.buffer.release(reached, final=final):
            for held in self.shaper.admit(index, [row], answer):
                self._add(group(row, self.shaper.inputs[index].keys), held, answer)
        if final:
            for key in list(self.current):
                self._emit(key, answer, min(reached))
        return answer

    def _add(self, key: Key, held: WindowTuple, answer: Answer) -> None:
        current = self.current.setdefault(key, [])
        current.append(held)
        if len(current) == self.size:
            self._emit(key, answer)

    def _emit(self, key: Key, answer: Answer, end: int = MIN) -> None:
        current = self.current.pop(key)
        covered = self.history.setdefault(key, [])
        covered += current
        self.shaper.emit(current, answer, None, covered, end)


class FunctionLatch:
    """A user's function with state: it gets the released tuples in order and the state rows of their keys."""

    def __init__(self, node: Latch, inputs: list[StreamType], output: StreamType) -> None:
        self.node, self.inputs, self.output = node, inputs, output
        self.gate, self.buffer = Gate(len(inputs)), ReorderBuffer(inputs)
        self.schema, self.keys = latch_schema(node, inputs), inputs[0].keys
        key_columns = (Column(key, self.schema.type_of(key)) for key in self.keys)
        self.state_schema = Schema((*key_columns, *node.state.columns))
        self.state: dict[Key, Row] = {}

    def process(self, inputs: list[list[Row]], horizons: tuple[int, ...], *, final: bool) -> Answer:
        in_time, late = self.gate.admit(inputs)
        answer = Answer(dead=late)
        self.buffer.add(in_time)
        ready = [
            widened(row, index, self.inputs)
            for index, row in self.buffer.release(self.gate.act(horizons), final=final)
        ]
        if ready:
            self._call(ready, answer)
        return answer

    def _call(self, ready: list[Row], answer: Answer) -> None:
        # Each key once, in the order of its first tuple: a set would have no order.
        groups = dict.fromkeys(group(row, self.keys) for row in ready)
        known = [self.state[key] for key in groups if key in self.state]
        assert self.node.function is not None
        batch, state = table_of(ready, self.schema), table_of(known, self.state_schema)
        new, changed = self._pair(call(self.node, self.node.function, batch, state))
        for row in rows_of(self.node, changed, self.state_schema):
            self.state[group(row, self.keys)] = row
        self._give(ready, rows_of(self.node, new, self.node.produces), answer)

    def _pair(self, answer: object) -> tuple[object, object]:
        if isinstance(answer, tuple) and len(answer) == 2:
            return answer
        raise wrong(self.node, type(answer).__name__, "a pair: (batch, changed state rows)")

    def _give(self, ready: list[Row], rows: list[Row], answer: Answer) -> None:
        stamp = self.output.timestamp
        if stamp is None or stamp not in self.node.produces:
            same_length(self.node, rows, len(ready))
            answer.out += [
                {**new, STAMP: row[STAMP], SEQ: row[SEQ]} for row, new in zip(ready, rows, strict=True)
            ]
            return
        nulls = sum(new[stamp] is None for new in rows)
        if nulls:
            raise wrong(self.node, f"{nulls} nulls in '{stamp}'", "a timestamp in each row")
        # Only the function knows which tuple a row comes from, so no `_seq` can be carried over.
        answer.out += [{**new, STAMP: micros(new[stamp]), SEQ: 0} for new in rows]
