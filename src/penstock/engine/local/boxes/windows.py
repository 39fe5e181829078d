"""Tumble and Slide (Aurora, Sect. 2.1; A09-A11): apply a function to a window, then advance.

A time window is closed when no input can still bring a tuple before its end; a count window when its last
tuple has been released in canonical order. All tuples of open windows are kept as they are: obvious, not
thrifty.

The end of input closes count windows that are not full yet. Those with the latest stamp get the time of that
end, which is how far the box's inputs are: boxes behind have been promised that nothing older comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from penstock.engine.local.expressions.aggregates import Aggregator, Measures, Window
from penstock.engine.local.expressions.evaluate import ExpressionFailure
from penstock.engine.local.functions import call, rows_of, table_of
from penstock.engine.local.order import Gate, ReorderBuffer, tie_columns
from penstock.engine.local.rows import Answer, Key, Row, SortKey, canonical, group, value_order
from penstock.model.boxes import Latch, Windowed
from penstock.model.checks.horizons import MIN
from penstock.model.checks.window_types import latch_schema
from penstock.model.durations import Count, Time
from penstock.model.expressions.values import moment
from penstock.model.types import SEQ, STAMP, StreamType

WindowKey = tuple[Window, Key]  # a window of one group


@dataclass
class WindowTuple:
    """A tuple in a window, its key in canonical order, and the values of the aggregates' arguments."""

    order: SortKey
    row: Row
    measures: Measures


class Shaper:
    """Makes the output rows of a windowed box: keys, timestamp, then aggregates or the function's."""

    def __init__(self, node: Windowed | Latch, inputs: list[StreamType], output: StreamType) -> None:
        self.node, self.inputs, self.output = node, inputs, output
        self.ties = tie_columns(inputs)
        self.keys = inputs[0].keys
        schema = latch_schema(node, inputs) if isinstance(node, Latch) else inputs[0].schema
        self.aggregator = Aggregator(node.aggregates, schema, self.keys)

    def admit(self, index: int, rows: Iterable[Row], answer: Answer) -> list[WindowTuple]:
        """Tuples of one input ready for windows; one whose expressions fail becomes a dead letter, once."""
        held = []
        for row in rows:
            try:
                measures = self.aggregator.measure(widened(row, index, self.inputs))
            except ExpressionFailure as failure:
                answer.dead.append((row, str(failure)))
            else:
                held.append(WindowTuple(canonical(row, index, self.ties[index]), row, measures))
        return held

    def emit(
        self,
        held: list[WindowTuple],
        answer: Answer,
        window: Window | None,
        covered: list[WindowTuple] | None = None,
        end: int = MIN,
    ) -> None:
        """Add the rows of one closed window (in canonical order).

        `covered`: what aggregates see if that is more; `end`: the time of the end of input that cut it short.
        """
        first = stamping(held, self.node.stamp).row
        # Equal keys may be written differently (0.0 and -0.0): the tuple that gives the time gives them too.
        keys = {key: first[key] for key in self.keys}
        stamp = first[STAMP] if self.node.stamp == "earliest" else max(first[STAMP], end)
        # The least `_seq` of its tuples: other engines can compute it tuple by tuple, in any order.
        hidden = {STAMP: stamp, SEQ: min(each.row[SEQ] for each in held)}
        try:
            new = self._columns(covered or held, keys, window)
        except ExpressionFailure as failure:
            answer.dead.append(({**keys, **self._stamp(stamp), **hidden}, str(failure)))
            return
        for columns in new:
            row = {**columns, **self._stamp(stamp), **keys}
            answer.out.append({**{name: row[name] for name in self.output.schema.names}, **hidden})

    def _columns(self, held: list[WindowTuple], keys: Row, window: Window | None) -> list[Row]:
        if isinstance(self.node, Windowed) and self.node.function is not None:
            table = table_of([each.row for each in held], self.inputs[0].schema)
            return rows_of(self.node, call(self.node, self.node.function, table), self.node.produces)
        return [self.aggregator.results([each.measures for each in held], keys, window)]

    def _stamp(self, stamp: int) -> Row:
        name = self.output.timestamp
        return {} if name is None else {name: moment(stamp)}


def stamping(held: list[WindowTuple], stamp: str) -> WindowTuple:
    """The tuple that gives a window its timestamp: the first, or the first of those with the latest time."""
    if stamp == "earliest":
        return held[0]
    latest = held[-1].row[STAMP]
    return next(each for each in held if each.row[STAMP] == latest)


def widened(row: Row, index: int, inputs: list[StreamType]) -> Row:
    """A tuple as a box of several inputs sees it: the columns of all by name, and the index of its own."""
    if len(inputs) == 1:
        return row
    missing = {name: None for stream in inputs for name in stream.schema.names}
    return {**missing, **row, "input": index}


@dataclass
class Open:
    """An open time window of one group."""

    window: Window
    held: list[WindowTuple] = field(default_factory=list)


class TimeWindows:
    """Windows of time, aligned to 1970 UTC."""

    def __init__(self, node: Windowed, inputs: list[StreamType], output: StreamType) -> None:
        self.shaper = Shaper(node, inputs, output)
        self.gate = Gate(len(inputs))
        self.size = length(node.size)
        self.every = length(node.step)
        self.open: dict[WindowKey, Open] = {}
        self.delivers: Callable[[Window], bool] = lambda _window: True  # false for windows that were shed

    def process(self, inputs: list[list[Row]], horizons: tuple[int, ...], *, final: bool) -> Answer:
        in_time, late = self.gate.admit(inputs)
        answer = Answer(dead=late)
        for index, rows in enumerate(in_time):
            for held in self.shaper.admit(index, rows, answer):
                self._add(index, held)
        # After the tuples are in: the horizon holds for later trains, not for this one.
        least = min(self.gate.act(horizons))
        for opened in take_closed(self.open, least, final=final):
            if self.delivers(opened.window):
                self.shaper.emit(opened.held, answer, opened.window)
        return answer

    def _add(self, index: int, held: WindowTuple) -> None:
        key = group(held.row, self.shaper.inputs[index].keys)
        for window in windows_of(held.row[STAMP], self.size, self.every):
            self.open.setdefault((window, key), Open(window)).held.append(held)


def windows_of(stamp: int, size: int, every: int) -> list[Window]:
    """All windows that hold a time; none if it falls between two.

    >>> windows_of(25, size=20, every=10)
    [(10, 30), (20, 40)]
    """
    # The first window that ends after the stamp. Floor division is right for times before 1970 too.
    first = (stamp - size) // every + 1
    return [(k * every, k * every + size) for k in range(first, stamp // every + 1)]


def take_closed(windows: dict[WindowKey, Open], least: int, *, final: bool) -> list[Open]:
    """Remove and return the windows that nothing can still enter, by end, their tuples in canonical order."""
    closed = [name for name, opened in windows.items() if final or opened.window[1] <= least]
    # By end and key: the order of rows must not depend on the order of arrival.
    closed.sort(key=lambda name: (name[0][1], [value_order(value) for value in name[1]]))
    taken = [windows.pop(name) for name in closed]
    for opened in taken:
        opened.held.sort(key=lambda held: held.order)
    return taken


@dataclass
class Counted:
    """The count windows of one group: tuples still needed, the first number, the next window, the count."""

    held: list[WindowTuple] = field(default_factory=list)
    base: int = 0
    window: int = 0

    def seen(self) -> int:
        return self.base + len(self.held)


class CountWindows:
    """Windows of so many tuples of a group, in canonical order."""

    def __init__(self, node: Windowed, inputs: list[StreamType], output: StreamType) -> None:
        self.shaper = Shaper(node, inputs, output)
        self.gate, self.buffer = Gate(len(inputs)), ReorderBuffer(inputs)
        self.size = length(node.size)
        self.every = length(node.step)
        self.groups: dict[Key, Counted] = {}

    def process(self, inputs: list[list[Row]], horizons: tuple[int, ...], *, final: bool) -> Answer:
        in_time, late = self.gate.admit(inputs)
        answer = Answer(dead=late)
        self.buffer.add(in_time)
        reached = self.gate.act(horizons)
        for index, row in self.buffer.release(reached, final=final):
            for held in self.shaper.admit(index, [row], answer):
                self._add(index, held, answer)
        if final:
            self._finish(answer, min(reached))
        return answer

    def _add(self, index: int, held: WindowTuple, answer: Answer) -> None:
        counted = self.groups.setdefault(group(held.row, self.shaper.inputs[index].keys), Counted())
        counted.held.append(held)
        if counted.seen() == counted.window * self.every + self.size:
            self._emit_next(counted, answer)
        # No later window needs the tuples in front of the next one.
        # If windows leave gaps, the next one may begin behind all tuples that have come.
        done = min(counted.window * self.every - counted.base, len(counted.held))
        if done > 0:
            counted.held, counted.base = counted.held[done:], counted.base + done

    def _emit_next(self, counted: Counted, answer: Answer, end: int = MIN) -> None:
        start = counted.window * self.every - counted.base
        self.shaper.emit(counted.held[start : start + self.size], answer, None, end=end)
        counted.window += 1

    def _finish(self, answer: Answer, end: int) -> None:
        for counted in self.groups.values():
            while counted.window * self.every < counted.seen():
                self._emit_next(counted, answer, end)
        self.groups.clear()


def length(extent: Time | Count | None) -> int:
    """Microseconds or tuples."""
    if extent is None:
        raise ValueError("a window without a size")
    return extent.us if isinstance(extent, Time) else extent.tuples
