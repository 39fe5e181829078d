"""Fluent boxes that bring streams together: group_by, union, join (Aurora, Sect. 2.1, A17, A18)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.model.boxes import GroupBy, Join, Union
from penstock.model.draft import Draft, Duration
from penstock.model.errors import NetworkError, caller
from penstock.model.stateless import StatelessBoxes

if TYPE_CHECKING:
    from penstock.model.stream import Stream

Within = Duration | tuple[Duration, Duration]


class CombiningBoxes(StatelessBoxes):
    """Boxes with more than one input."""

    def group_by(self, *keys: str, also: Iterable[Stream] = (), name: str | None = None) -> Stream:
        """Partition the tuples by equal values (A17), of this stream and of those in `also`; no aggregate.

        CASE is a map that makes a column, then group_by (A19):

        >>> import penstock as ps
        >>> cars = ps.Network("n").source("cars", ps.csv("in/", "time TIMESTAMP, spd INT"), timestamp="time")
        >>> kinds = cars.map(kind="CASE WHEN spd > 60 THEN 'fast' WHEN spd > 0 THEN 'slow' ELSE 'standing' END")
        >>> kinds.group_by("kind").tumble("1 minute", cars="count(*)")
        Stream(tumble_1: kind STRING, time TIMESTAMP, cars BIGINT)
        """
        draft = self._draft(GroupBy, "group_by", name)
        return draft.add([self._stream, *also], keys=keys)

    def union(self, *others: Stream, name: str | None = None) -> Stream:
        """Merge streams of the same columns."""
        return self._draft(Union, "union", name).add([self._stream, *others])

    def join(
        self,
        other: Stream,
        *,
        on: str | Iterable[str | tuple[str, str]] = (),
        within: Within,
        where: str = "",
        suffix: str = "_right",
        name: str | None = None,
    ) -> Stream:
        """Pair tuples at most so far apart in time (A18): `.join(calls, on=["vid"], within="30 minutes")`.

        `on`: column names, or (left, right) pairs. `within=(after, before)`: the other's tuple may come up to
        `after` later or `before` earlier. `where`: any further condition over the columns of the pair.
        """
        draft = self._draft(Join, "join", name)
        keys = [on] if isinstance(on, str) else on
        pairs = tuple((key, key) if isinstance(key, str) else (key[0], key[1]) for key in keys)
        bounds = _bounds(draft, within)
        return draft.add([self._stream, other], on=pairs, within=bounds, predicate=where, suffix=suffix)


def _bounds(draft: Draft, within: Within) -> tuple[int, int]:
    after, before = within if isinstance(within, tuple | list) else (within, within)
    return draft.duration("within", after), draft.duration("within", before)


def group_by(keys: str | Iterable[str], *streams: Stream, name: str | None = None) -> Stream:
    """GroupBy across several streams (A17): `ps.group_by("vid", reports, calls)`."""
    if not streams:
        raise NetworkError(
            "group_by of no stream",
            where=caller(),
            expected="one stream or more",
            hint='ps.group_by("k", a, b)',
        )
    wanted = (keys,) if isinstance(keys, str) else tuple(keys)
    draft = streams[0]._draft(GroupBy, "group_by", name)
    return draft.add(streams, keys=wanted)


def union(*streams: Stream, name: str | None = None) -> Stream:
    """Merge streams of the same columns: `ps.union(a, b, c)`."""
    if not streams:
        raise NetworkError(
            "union of no stream", where=caller(), expected="two streams or more", hint="ps.union(a, b)"
        )
    return streams[0].union(*streams[1:], name=name)
