"""Which groups of a feed valves leave out, and when: the catalog has an event for each change.

A train's ticket says which files it left out (`LeftOut.groups`). A group is out from the first such train on,
until a file of it is let in: a second without a file says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.connectors.contract import Slice
from penstock.engine.contract.ticket import Ticket
from penstock.engine.contract.valve import LeftOut
from penstock.store.catalog.record_types import Event

EVENT = "left out"

Groups = frozenset[int]


@dataclass(frozen=True)
class Absence:
    """A group that was left out from `begin` on, until `end` (not with it), in us; None: it still is."""

    group: int
    begin: int
    end: int | None = None


def changes(ticket: Ticket, before: Mapping[str, Groups]) -> dict[str, tuple[int, Groups]]:
    """By source: from which time on which groups are out, if those are others than before this train."""
    changed = {}
    for source in {*ticket.shed, *(name for name, groups in before.items() if groups)}:
        left = ticket.shed.get(source, LeftOut())
        slices = [piece for piece in ticket.slices.get(source, ()) if isinstance(piece, Slice)]
        begin, known = _first(slices, left), before.get(source, frozenset())
        out = (known | set(left.groups)) - {piece.key_group() for piece in slices}
        if begin is not None and out != known:
            changed[source] = begin, out
    return changed


def _first(slices: Sequence[Slice], left: LeftOut) -> int | None:
    """The earliest time in a train."""
    told = [known.newest for piece in slices if (known := piece.unread()) is not None]
    return min((at for at in (*told, left.oldest) if at is not None), default=None)


def detail(begin: int, groups: Groups) -> dict[str, object]:
    """What an event tells."""
    return {"from": begin, "groups": sorted(groups)}


def absences(events: Iterable[Event]) -> list[Absence]:
    """When each group was out, from the events of one source, oldest first.

    >>> told = [(5, [1, 2]), (8, [2])]
    >>> absences(Event(EVENT, "rows", 0.0, detail(begin, frozenset(groups))) for begin, groups in told)
    [Absence(group=1, begin=5, end=8), Absence(group=2, begin=5, end=None)]
    """
    since: dict[int, int] = {}
    over: list[Absence] = []
    for event in events:
        begin, out = int(event.detail["from"]), set(event.detail["groups"])
        over += [Absence(group, since.pop(group), begin) for group in set(since) - out]
        since |= dict.fromkeys(out - set(since), begin)
    over += [Absence(group, begin) for group, begin in since.items()]
    return sorted(over, key=lambda each: (each.group, each.begin))
