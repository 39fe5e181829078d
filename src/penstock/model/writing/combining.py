"""Fluent boxes that bring streams together: group_by, union, join (Aurora, Sect. 2.1, A17, A18)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.model.boxes import GroupBy, Join, Union
from penstock.model.errors import ExpressionError, shown
from penstock.model.join_distribution import Diffusion
from penstock.model.writing.arguments import names
from penstock.model.writing.arrow import first_of
from penstock.model.writing.box_builder import BoxBuilder, Duration
from penstock.model.writing.stateless import StatelessBoxes

if TYPE_CHECKING:
    from penstock.model.writing.stream import Stream

Within = Duration | tuple[Duration, Duration]


class CombiningBoxes(StatelessBoxes):
    """Boxes with more than one input."""

    def group_by(self, *keys: str, also: Iterable[Stream] = (), name: str | None = None) -> Stream:
        """Partition the tuples by equal values (A17), of this stream and of those in `also`; no aggregate.

        CASE is a map that makes a column, then group_by (A19):

        >>> import penstock as ps
        >>> cars = ps.Network("n").source("cars", ps.csv("in/", "time TIMESTAMP, spd INT"), timestamp="time")
        >>> kinds = cars.map(kind="CASE WHEN spd > 60 THEN 'fast' WHEN spd > 0 THEN 'slow' ELSE 'still' END")
        >>> kinds.group_by("kind").tumble("1 minute", cars="count(*)")
        Stream(tumble_1: kind STRING, time TIMESTAMP, cars BIGINT)
        """
        builder = self._builder(GroupBy, "group_by", name)
        return builder.add([self._stream, *also], keys=keys)

    def union(self, *others: Stream, name: str | None = None) -> Stream:
        """Merge streams of the same columns."""
        return self._builder(Union, "union", name).add([self._stream, *others])

    def join(  # noqa: PLR0913 - a box has as many options as it has
        self,
        other: Stream,
        *,
        on: str | Iterable[str | tuple[str, str]] = (),
        within: Within,
        where: str = "",
        suffix: str = "_right",
        distribution: str = "hash",
        servers: int | None = None,
        master: str = "higher",
        placement: str = "least_loaded",
        sample: Duration = "10 seconds",
        threshold: float | None = None,
        memory: int | None = None,
        when_full: str = "error",
        name: str | None = None,
    ) -> Stream:
        """Pair tuples at most so far apart in time (A18): `.join(calls, on=["vid"], within="30 minutes")`.

        `on`: column names, or (left, right) pairs. `within=(after, before)`: the other's tuple may come up to
        `after` later or `before` earlier. `where`: any further condition over the columns of the pair.

        `distribution`: 'hash' sends a key to one server. 'diffused' spreads one stream over `servers` and
        sends the other to all of them, so no key is too hot and no key is needed. 'auto' goes from hash to
        diffused when a server gets too hot. The other arguments are those of
        `penstock.model.join_distribution.Diffusion`. See docs/diffusion.md.

        >>> import penstock as ps
        >>> net = ps.Network("n")
        >>> a, b = (net.source(n, ps.csv(n, "time TIMESTAMP, v INT"), timestamp="time") for n in "ab")
        >>> a.join(b, within="1 minute", where="abs(v - v_right) <= 2", distribution="diffused", servers=4)
        Stream(join_1: time TIMESTAMP, v INT, time_right TIMESTAMP, v_right INT)
        """
        builder = self._builder(Join, "join", name)
        bounds = _bounds(builder, within)
        length = builder.duration("sample", sample)
        options = Diffusion(master, placement, length, threshold, memory, when_full)
        return builder.add(
            [self._stream, other],
            on=key_pairs(on),
            within=bounds,
            predicate=where,
            suffix=suffix,
            distribution=distribution,
            servers=servers,
            diffusion=options,
        )


def key_pairs(on: str | Iterable[str | tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Pairs of names; one name stands for both sides. `checks.arguments` refuses anything else."""
    if not isinstance(on, Iterable):
        return on
    keys = [on] if isinstance(on, str) else list(on)
    return tuple((k, k) if isinstance(k, str) else tuple(k) if isinstance(k, list) else k for k in keys)


def _bounds(builder: BoxBuilder, within: Within) -> tuple[int, int]:
    pair = within if isinstance(within, tuple | list) else (within, within)
    if len(pair) != 2:
        with builder.part("within"):
            raise ExpressionError(
                "not a pair", found=shown(within), expected="one length of time, or (after, before)"
            )
    after, before = pair
    return builder.duration("within", after), builder.duration("within", before)


def group_by(keys: str | Iterable[str], *streams: Stream, name: str | None = None) -> Stream:
    """GroupBy across several streams (A17): `ps.group_by("vid", reports, calls)`."""
    builder = first_of(streams, "group_by", 'ps.group_by("k", a, b)')._builder(GroupBy, "group_by", name)
    return builder.add(streams, keys=names(keys))


def union(*streams: Stream, name: str | None = None) -> Stream:
    """Merge streams of the same columns: `ps.union(a, b, c)`."""
    return first_of(streams, "union", "ps.union(a, b)").union(*streams[1:], name=name)
