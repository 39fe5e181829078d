"""Valves of the reference engine: one tuple at a time, from the plain form that stands in a ticket.

The meaning is that of `engine/contract/valve.py`, written a second time: nothing is shared with the engines
that this one judges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.engine.local.boxes.stateless import drop_hash
from penstock.engine.local.expressions.evaluate import ExpressionFailure, compile_row
from penstock.engine.local.key_hash import key_hash
from penstock.engine.local.rows import Row
from penstock.model.boxes import Trait, Windowed
from penstock.model.durations import Time
from penstock.model.json_types import JsonMapping
from penstock.model.types import SEQ, STAMP, Schema
from penstock.model.writing.network import Network

PlainValve = JsonMapping
_MILLION = 1_000_000


class Valve:
    """One valve. `schema`: the columns of its arrow."""

    def __init__(self, plain: PlainValve, schema: Schema) -> None:
        self.plain = plain
        self.grain, self.lot, self.bar = plain["grain"], plain["lot"], round(plain["share"] * _MILLION)
        self.bits = {"tuples": 0, "blocks": 10, "slices": plain["slice_bits"]}.get(self.grain)
        self.predicate = compile_row(plain["predicate"], schema) if self.grain == "values" else None
        self.partly = compile_row(plain["partly"], schema) if plain.get("partly") else None

    def block(self, seq: int) -> int:
        """What is shed at once with the tuple at this place: a block, or the tuple alone."""
        return seq >> (self.bits or 0)

    def lets_in(self, seq: int, row: Row | None) -> bool:
        """Whether what came at this place stays; None: it is no tuple, so only its place is known."""
        if self.bits is not None:
            return self._below(drop_hash(self.lot, seq >> self.bits), self.bar)
        return row is None or self._lets_row_in(row)

    def _lets_row_in(self, row: Row) -> bool:
        if self.grain == "windows":
            return self._by_windows(row[STAMP])
        if self.grain == "keys":
            keys = self.plain["keys"]
            return not keys or self._below(key_hash(self.lot, [row[key] for key in keys]), self.bar)
        try:
            assert self.predicate is not None
            # NULL stays: the valve sheds only what the predicate refuses.
            stays = self.predicate(row) is not False
        except ExpressionFailure:
            return True
        return stays or self._spared(row)

    def _spared(self, row: Row) -> bool:
        """Of what the predicate refuses, a part may stay."""
        try:
            chosen = self.partly is not None and self.partly(row) is True
        except ExpressionFailure:
            return False
        return chosen and self._below(drop_hash(self.lot, row[SEQ]), round(self.plain["part"] * _MILLION))

    @staticmethod
    def _below(hashed: int, bar: int) -> bool:
        return hashed % _MILLION < bar

    def _by_windows(self, stamp: int | None) -> bool:
        if stamp is None:
            return True
        every = self.plain["every"]
        first = (stamp - self.plain["size"]) // every + 1
        return any(self.keeps_window(k) for k in range(first, stamp // every + 1))

    def keeps_window(self, k: int) -> bool:
        """Whether no share that held while window k was open has chosen it."""
        begin = k * self.plain["every"]
        end = begin + self.plain["size"]
        # A window chosen at a smaller share stays chosen, so the least share while it was open counts.
        steps = self.plain["steps"] or [{"share": self.plain["share"], "since": -(2**63), "until": begin}]
        shares = [step["share"] for step in steps if end > step["since"] and begin <= step["until"]]
        return self._below(drop_hash(self.lot, k), round(min(shares, default=1.0) * _MILLION))

    def has_windows_of(self, node: Windowed) -> bool:
        return (node.size, node.step) == (Time(self.plain["size"]), Time(self.plain["every"]))


class Valves:
    """The valves of one train."""

    def __init__(self, network: Network, valves: Sequence[PlainValve] = ()) -> None:
        self.network = network
        self._at: dict[str, list[Valve]] = {}
        for plain in valves:
            tail = plain["at"].partition("->")[0]
            valve = Valve(plain, network.types[tail].schema)
            self._at.setdefault(plain["at"], []).append(valve)

    def at(self, source: str) -> Sequence[Valve]:
        """Those at a source."""
        return self._at.get(source, ())

    def passes(self, tail: str, head: str, row: Row) -> bool:
        """Whether a tuple passes the valves of an arrow, and of a point that is read."""
        point = self.at(tail) if Trait.KEPT in self.network.nodes[tail].traits else ()
        return all(valve.lets_in(row[SEQ], row) for valve in (*point, *self._at.get(f"{tail}->{head}", ())))

    def telling(self, box: str) -> Callable[[tuple[int, int]], bool]:
        """Whether a window of a box is to be told at its close: not if a valve above has chosen it."""
        node = self.network.nodes[box]
        assert isinstance(node, Windowed)
        above = [v for v in self._above(box) if v.grain == "windows" and v.has_windows_of(node)]
        return lambda window: all(v.keeps_window(window[0] // v.plain["every"]) for v in above)

    def _above(self, box: str) -> list[Valve]:
        """The valves between a box and the boxes with memory, or sources, above it."""
        if not self._at:
            return []
        between: list[Valve] = []
        for tail in self.network.nodes[box].inputs:
            between += [*self._at.get(f"{tail}->{box}", ()), *self.at(tail)]
            # A box with memory gives tuples of its own: windows chosen above it are not those of this box.
            if Trait.STATEFUL not in self.network.nodes[tail].traits:
                between += self._above(tail)
        return between
