"""Order and lateness inside a network: who may pass now, who must wait, who comes too late.

An ordered box takes tuples in canonical order only, whatever the trains: it keeps a tuple until no smaller
one can come.
"""

from __future__ import annotations

from penstock.engine.local.rows import Row, canonical
from penstock.model.checks.horizons import MIN
from penstock.model.types import STAMP, StreamType


class Gate:
    """Refuses tuples behind a horizon the box has acted on: an idle input came back too late."""

    def __init__(self, inputs: int) -> None:
        self.acted = [MIN] * inputs

    def admit(self, inputs: list[list[Row]]) -> tuple[list[list[Row]], list[tuple[Row, str]]]:
        """The tuples in time, and the late ones with the reason."""
        in_time: list[list[Row]] = []
        late: list[tuple[Row, str]] = []
        for rows, acted in zip(inputs, self.acted, strict=True):
            in_time.append([row for row in rows if not _behind(row, acted)])
            late += [(row, _reason(row, acted)) for row in rows if _behind(row, acted)]
        return in_time, late

    def act(self, horizons: tuple[int, ...]) -> tuple[int, ...]:
        """Note the horizons of this train. They never step back, even when an idle input wakes up."""
        self.acted = [max(before, now) for before, now in zip(self.acted, horizons, strict=True)]
        return tuple(self.acted)


def _behind(row: Row, horizon: int) -> bool:
    return row[STAMP] is not None and row[STAMP] < horizon


def _reason(row: Row, horizon: int) -> str:
    return f"late: timestamp {row[STAMP]} us is behind the horizon {horizon} us that the box has acted on"


def tie_columns(types: list[StreamType]) -> list[list[str]]:
    """By input: its columns in the order of the merged stream; they rank tuples of one time and place.

    >>> from penstock.model.types import Schema
    >>> tie_columns([StreamType(Schema.parse(text)) for text in ("a INT, b INT", "c INT, b INT, a INT")])
    [['a', 'b'], ['a', 'b', 'c']]
    """
    merged = dict.fromkeys(name for type_ in types for name in type_.schema.names)
    return [[name for name in merged if name in type_.schema] for type_ in types]


class ReorderBuffer:
    """Tuples that wait for smaller ones."""

    def __init__(self, types: list[StreamType]) -> None:
        self.types = types
        self.ties = tie_columns(types)
        self.waiting: list[tuple[int, Row]] = []

    def add(self, inputs: list[list[Row]]) -> None:
        self.waiting += [(index, row) for index, rows in enumerate(inputs) for row in rows]

    def release(self, horizons: tuple[int, ...], *, final: bool) -> list[tuple[int, Row]]:
        """Those that nothing can precede any more, in canonical order, each with the index of its input."""
        self.waiting.sort(key=lambda held: canonical(held[1], held[0], self.ties[held[0]]))
        ready = [held for held in self.waiting if final or self._settled(held, horizons)]
        self.waiting = [held for held in self.waiting if not (final or self._settled(held, horizons))]
        return ready

    def _settled(self, held: tuple[int, Row], horizons: tuple[int, ...]) -> bool:
        index, stamp = held[0], held[1][STAMP]
        # Of several unstamped streams nobody can say which tuple comes first, so all wait for the end.
        if stamp is None:  # an unstamped stream is ordered by arrival alone
            return len(horizons) == 1
        # In order of arrival, a later tuple with the same time has a larger `_seq`, so this one goes first.
        own = stamp < horizons[index] or (self.types[index].arrival_order and stamp == horizons[index])
        # Another input may still send a tuple at its horizon. It sorts first if that input does.
        others = ((stamp, index) < (horizon, j) for j, horizon in enumerate(horizons) if j != index)
        return own and all(others)
