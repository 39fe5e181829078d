"""ColumnLatch (Aurora, Sect. 2.1; A12): the user's own object keeps the state of a partition as columns.

The engine does what all ordered boxes need: it hands over tuples in order of time, and holds each back until
nothing older can come. The object does the rest. Its state is a set of named parts, each written once and
never changed. A train therefore changes the state by adding and dropping parts, and no train waits for a
snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from penstock.engine.arrow.columns.columns import concat, integers
from penstock.engine.arrow.functions import call, table_from, wrong
from penstock.engine.arrow.logic import DEAD_SCHEMA, MIN, Answer, late_letters
from penstock.engine.arrow.order import canonical
from penstock.model.boxes import ColumnLatch
from penstock.model.types import SEQ, STAMP, StreamType, arrow_schema
from penstock.model.user_functions import Function

FOREVER = 2**63 - 1
PUT, GONE = "put/", "gone"
_OWN, _WAITING, _ACTED = "own/", "waiting/", "acted"
Tables = dict[str, pa.Table]


class ColumnLatchLogic:
    """One ColumnLatch in one partition."""

    parted = True  # its state is named parts, see engine/spark/parts.py

    def __init__(self, node: ColumnLatch, inputs: list[StreamType], output: StreamType) -> None:
        self.node, self.output = node, output
        self.schemas = [arrow_schema(stream.schema) for stream in inputs]
        self.visible = [list(stream.schema.names) for stream in inputs]
        self.numbered = [stream.numbered for stream in inputs]
        self.acted = MIN
        self.restore({})

    def process(self, inputs: list[pa.Table], horizons: tuple[int, ...], *, final: bool) -> Answer:
        """Hand over what is in order, and take what the object answers."""
        before, self.acted = self.acted, max(self.acted, min(horizons))
        until = FOREVER if final else self.acted
        dead: list[pa.Table] = []
        ready = [self._ready(i, table, before, until, dead) for i, table in enumerate(inputs)]
        # No horizon is known yet: the object cannot be told how far time is.
        if until == MIN:
            return Answer(arrow_schema(self.output.schema).empty_table(), DEAD_SCHEMA.empty_table())
        answer = call(self.node, self._function("process"), ready, until, final)
        return Answer(self._stamped(answer), concat(dead, DEAD_SCHEMA))

    def figures(self) -> dict[str, int]:
        """What the object counted since the last call; empty if it does not count."""
        if not hasattr(self.logic, "figures"):
            return {}
        return {name: int(value) for name, value in call(self.node, self._function("figures")).items()}

    def _function(self, name: str) -> Function:
        return Function(getattr(self.logic, name), f"{self.node.logic.name}.{name}")

    def _ready(self, i: int, table: pa.Table, before: int, until: int, dead: list[pa.Table]) -> pa.Table:
        waiting = self.waiting.get(i)
        if waiting is None:
            stamps = integers(table, STAMP)
            if not len(stamps) or (
                before <= stamps[0] and stamps[-1] < until and self._in_order(i, table, stamps)
            ):
                # The usual case: in order, and all of it may go at once.
                return table.select(self.visible[i])
        return self._released(i, table, before, until, dead)

    def _in_order(self, i: int, table: pa.Table, stamps: np.ndarray) -> bool:
        """Whether the rows stand in order of time, and of arrival where their times are equal."""
        if not (stamps[1:] >= stamps[:-1]).all():
            return False
        if not self.numbered[i]:
            return True
        numbers = integers(table, SEQ)
        rises = numbers[1:] > numbers[:-1]
        # Nearly always numbers rise throughout. A tuple of another source may have the same: canonical order.
        return bool(rises.all() or (rises | (stamps[1:] > stamps[:-1])).all())

    def _released(self, i: int, table: pa.Table, before: int, until: int, dead: list[pa.Table]) -> pa.Table:
        late = integers(table, STAMP) < before
        if late.any():
            dead.append(late_letters(table.filter(pa.array(late)), before, self.node.name))
            table = table.filter(pa.array(~late))
        waiting = self.waiting.pop(i, None)
        rows = canonical(concat([table] if waiting is None else [waiting, table], self.schemas[i]))
        # Sorted by time, so one search splits what may go from what waits.
        count = int(np.searchsorted(integers(rows, STAMP), until)) if rows.num_rows else 0
        if count < rows.num_rows:
            self.waiting[i] = rows.slice(count)
        # The next delta writes this buffer, or drops it if it is empty now.
        self._moved.add(i)
        return rows.slice(0, count).select(self.visible[i])

    def _stamped(self, answer: object) -> pa.Table:
        table = table_from(self.node, answer, self.node.produces).combine_chunks()
        stamp = table.column(str(self.output.timestamp))
        if stamp.null_count:
            raise wrong(
                self.node, f"{stamp.null_count} rows without '{self.output.timestamp}'", "a time in each row"
            )
        zeros = pa.array(np.zeros(table.num_rows, np.int64))
        return table.append_column(STAMP, stamp.cast(pa.int64())).append_column(SEQ, zeros)

    # -- state: parts

    def delta(self) -> Tables:
        """`put/NAME`: parts added since the last delta; `gone`: the names of dropped ones."""
        changes: Tables = {PUT + _ACTED: pa.table({"acted": pa.array([self.acted], pa.int64())})}
        gone: list[str] = []
        for name, part in call(self.node, self._function("changes")).items():
            if part is None:
                gone.append(_OWN + name)
            else:
                changes[PUT + _OWN + name] = pa.table(part) if isinstance(part, dict) else part
        for i in self._moved:
            if i in self.waiting:
                changes[f"{PUT}{_WAITING}{i}"] = self.waiting[i]
            elif f"{_WAITING}{i}" in self.held:
                gone.append(f"{_WAITING}{i}")
        self._moved.clear()
        if gone:
            changes[GONE] = pa.table({"name": pa.array(gone, pa.string())})
        self._take(changes)
        return changes

    def _take(self, delta: Mapping[str, pa.Table]) -> None:
        gone = delta[GONE].column("name").to_pylist() if GONE in delta else ()
        self.held.drop(gone)
        self.held.put(
            {name.removeprefix(PUT): table for name, table in delta.items() if name.startswith(PUT)}
        )

    def apply(self, delta: Mapping[str, pa.Table]) -> None:
        """Bring version b - 1 to b."""
        self._take(delta)
        self.restore(self.held)

    def snapshot(self) -> Tables:
        """All parts."""
        return dict(self.held)

    def restore(self, snapshot: Mapping[str, pa.Table]) -> None:
        """Forget everything and take over the parts; each is read when it is first looked at."""
        self.held = StateParts(snapshot)
        self.acted = snapshot[_ACTED].column(0)[0].as_py() if _ACTED in snapshot else MIN
        self.waiting = {
            i: snapshot[f"{_WAITING}{i}"] for i in range(len(self.schemas)) if f"{_WAITING}{i}" in snapshot
        }
        self._moved: set[int] = set()
        self.logic = call(self.node, self.node.logic)
        if any(name.startswith(_OWN) for name in snapshot):
            call(self.node, self._function("restore"), Own(snapshot))


class StateParts(Mapping[str, pa.Table]):
    """All parts of a state: the restored ones, read only when asked for, and the changes since."""

    def __init__(self, base: Mapping[str, pa.Table]) -> None:
        self._base, self._new = base, dict[str, pa.Table]()
        self._names = dict.fromkeys(base)

    def put(self, parts: Mapping[str, pa.Table]) -> None:
        """Add parts, or replace those of the same name."""
        self._new.update(parts)
        self._names.update(dict.fromkeys(parts))

    def drop(self, names: Iterable[str]) -> None:
        """Drop parts."""
        for name in names:
            self._names.pop(name, None)
            self._new.pop(name, None)

    def __getitem__(self, name: str) -> pa.Table:
        if name not in self._names:
            raise KeyError(name)
        return self._new[name] if name in self._new else self._base[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names


class Own(Mapping[str, pa.Table]):
    """The parts of the user's object among all parts."""

    def __init__(self, parts: Mapping[str, pa.Table]) -> None:
        self._parts = parts

    def __getitem__(self, name: str) -> pa.Table:
        return self._parts[_OWN + name]

    def __iter__(self) -> Iterator[str]:
        return (name.removeprefix(_OWN) for name in self._parts if name.startswith(_OWN))

    def __len__(self) -> int:
        return sum(1 for _ in self)
