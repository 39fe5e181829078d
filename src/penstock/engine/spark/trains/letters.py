"""The dead letters of a train, each with its source, and with its file and line where these are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.contract import Location, RefusedInput, Slice
from penstock.connectors.tables import RAW_LIMIT
from penstock.engine.arrow.logic import DEAD_SCHEMA
from penstock.engine.contract.ticket import Ticket
from penstock.model.boxes import Drop, Filter, GroupBy, Map, Source
from penstock.model.writing.network import Network

_MARK = 40  # characters that may tell how much of a line was left out
_PASS_ON = (Filter, Map, Drop, GroupBy)  # boxes whose tuples keep the `_seq` of their source


class LetterOrigins:
    """Where the tuples of each box of a sub-network come from."""

    def __init__(self, net: Network) -> None:
        self._sources = {name: _only(sources) for name, sources in sources_of(net).items()}
        self._direct = _direct_sources(net)

    def letters(self, ticket: Ticket, dead: Iterable[pa.Table]) -> pa.Table:
        """All letters of a train: those of its boxes, and what the ticket itself leaves out."""
        tables = [DEAD_SCHEMA.empty_table(), *(_bounded(table.cast(DEAD_SCHEMA)) for table in dead)]
        letters = self._located(ticket, pa.concat_tables(tables))
        pieces = [
            {"tuples": 1, **piece, "box": source, "source": source}
            for source, refused in refused_pieces(ticket).items()
            for piece in refused
        ]
        return pa.concat_tables([letters, pa.Table.from_pylist(pieces, schema=letters.schema)])

    def _located(self, ticket: Ticket, dead: pa.Table) -> pa.Table:
        boxes = dead.column("box").to_pylist()
        slices = {name: [s for s in parts if isinstance(s, Slice)] for name, parts in ticket.slices.items()}
        finders = {box: _Finder(slices.get(self._direct.get(box, ""), ())) for box in set(boxes)}
        locations = [
            finders[box].location(seq)
            for box, seq in zip(boxes, dead.column("offset").to_pylist(), strict=True)
        ]
        columns = {
            "source": pa.array([self._sources.get(box, "") for box in boxes], pa.string()),
            "file": pa.array([at.file or None if at else None for at in locations], pa.string()),
            "line": pa.array([at.line if at else None for at in locations], pa.int64()),
        }
        for name, column in columns.items():
            dead = dead.append_column(name, column)
        return dead


def _bounded(dead: pa.Table) -> pa.Table:
    """Letters whose raw texts are no longer than those that connectors give."""
    return dead.set_column(0, "raw", pc.utf8_slice_codeunits(dead.column("raw"), 0, RAW_LIMIT + _MARK))


def refused_pieces(ticket: Ticket) -> Mapping[str, Sequence[RefusedInput]]:
    """The files and pieces of files that the train does not read, by source."""
    sources = {*ticket.refused, *ticket.left_out}
    return {name: [*ticket.refused.get(name, ()), *ticket.left_out.get(name, ())] for name in sorted(sources)}


class _Finder:
    """Finds the slice that a tuple came from: most often it is that of the letter before."""

    def __init__(self, slices: Sequence[Slice]) -> None:
        self._slices, self._last = slices, slices[:1]

    def location(self, seq: int | None) -> Location | None:
        if seq is None:
            return None
        for piece in (*self._last, *self._slices):
            location = piece.location(seq)
            if location is not None:
                self._last = [piece]
                return location
        return None


def sources_of(net: Network) -> dict[str, frozenset[str]]:
    """The inputs that each node's tuples come from, in one pass: nodes stand after their inputs."""
    sources: dict[str, frozenset[str]] = {}
    for name, node in net.nodes.items():
        sources[name] = frozenset().union(*(sources[up] for up in node.inputs)) or frozenset((name,))
    return sources


def _only(sources: frozenset[str]) -> str:
    """The source, if there is only one: tuples do not record where they came from."""
    return next(iter(sources)) if len(sources) == 1 else ""


def _direct_sources(net: Network) -> dict[str, str]:
    """The source whose `_seq` the tuples of each box still carry, or none."""
    direct: dict[str, str] = {}
    for name, node in net.nodes.items():
        if isinstance(node, Source):
            direct[name] = name
        elif isinstance(node, _PASS_ON) and getattr(node, "function", None) is None:
            direct[name] = direct.get(node.inputs[0], "")
    return direct
