"""Fluent boxes over windows and state: tumble, slide, latch, resample (Aurora, Sect. 2.1, A09-A13)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from penstock.model.boxes import ColumnLatch, Latch, Resample, Slide, Tumble
from penstock.model.durations import Extent
from penstock.model.types import Schema
from penstock.model.writing.arguments import names
from penstock.model.writing.arrow import first_of
from penstock.model.writing.box_builder import Draft, Duration, UserFunction
from penstock.model.writing.stateless import StatelessBoxes

if TYPE_CHECKING:
    from penstock.model.writing.stream import Stream

Size = Duration | Extent
Aggregates = Mapping[str, str] | None


class WindowBoxes(StatelessBoxes):
    """Boxes that look at many tuples; after `group_by` they do so for each key apart."""

    def tumble(
        self,
        size: Size,
        columns: Aggregates = None,
        /,
        *,
        function: UserFunction | None = None,
        reads: str | Iterable[str] = (),
        produces: str | Schema = "",
        stamp: str = "earliest",
        name: str | None = None,
        **aggregates: str,
    ) -> Stream:
        """Disjoint windows, each tuple in exactly one (A11): `.tumble("1 minute", speed="avg(spd)")`.

        `size` is a time or '100 tuples'. With `function`, each window's tuples go through it in order.
        """
        draft = self._draft(Tumble, "tumble", name)
        return draft.add(
            [self._stream],
            size=draft.extent("size", size),
            aggregates=draft.texts("aggregates", columns, aggregates),
            function=draft.function(function),
            reads=names(reads),
            produces=draft.schema("produces", produces),
            stamp=stamp,
        )

    def slide(
        self,
        size: Size,
        columns: Aggregates = None,
        /,
        *,
        every: Size,
        function: UserFunction | None = None,
        reads: str | Iterable[str] = (),
        produces: str | Schema = "",
        stamp: str = "earliest",
        name: str | None = None,
        **aggregates: str,
    ) -> Stream:
        """Rolling windows (A10): `.slide("3 hours", every="1 minute", average="avg(price)")`."""
        draft = self._draft(Slide, "slide", name)
        return draft.add(
            [self._stream],
            size=draft.extent("size", size),
            every=draft.extent("every", every),
            aggregates=draft.texts("aggregates", columns, aggregates),
            function=draft.function(function),
            reads=names(reads),
            produces=draft.schema("produces", produces),
            stamp=stamp,
        )

    def latch(
        self,
        size: Size | None = None,
        columns: Aggregates = None,
        /,
        *,
        function: UserFunction | None = None,
        state: str | Schema = "",
        reads: str | Iterable[str] = (),
        produces: str | Schema = "",
        stamp: str = "earliest",
        name: str | None = None,
        **aggregates: str,
    ) -> Stream:
        """State that is kept for ever (A12).

        `.latch("1 minute", best="max(price)")`: as tumble, but each answer covers all tuples so far.
        `.latch(function=f, state="n BIGINT", produces="vid INT, n BIGINT")`: `f(batch, state) -> (batch, changed)`.
        """
        draft = self._draft(Latch, "latch", name)
        texts = draft.texts("aggregates", columns, aggregates)
        return add_latch(draft, [self._stream], size, dict(texts), function, state, reads, produces, stamp)

    def column_latch(self, logic: UserFunction, *, produces: str | Schema, name: str | None = None) -> Stream:
        """State as columns of the whole partition, kept for ever: `logic()` makes the object that holds it.

        See `boxes.ColumnLatch` for what the object must do; `ps.column_latch([a, b], ...)` takes several streams.
        """
        draft = self._draft(ColumnLatch, "column_latch", name)
        return add_column_latch(draft, [self._stream], logic, produces)

    def resample(
        self,
        every: Duration,
        *,
        columns: str | Iterable[str],
        limit: Duration = "10 seconds",
        name: str | None = None,
    ) -> Stream:
        """Interpolated tuples at each multiple of `every` between two actual ones at most `limit` apart (A13)."""
        draft = self._draft(Resample, "resample", name)
        return draft.add(
            [self._stream],
            every=draft.duration("every", every),
            limit=draft.duration("limit", limit),
            columns=names(columns),
        )


def add_latch(
    draft: Draft,
    streams: Iterable[Stream],
    size: Size | None,
    aggregates: Mapping[str, str],
    function: UserFunction | None,
    state: str | Schema,
    reads: str | Iterable[str],
    produces: str | Schema,
    stamp: str,
) -> Stream:
    """The one place where a Latch is put together, for one input or several."""
    return draft.add(
        streams,
        size=None if size is None else draft.extent("size", size),
        aggregates=tuple(aggregates.items()),
        function=draft.function(function),
        state=draft.schema("state", state),
        reads=names(reads),
        produces=draft.schema("produces", produces),
        stamp=stamp,
    )


def latch(
    streams: Iterable[Stream],
    size: Size | None = None,
    /,
    *,
    function: UserFunction | None = None,
    state: str | Schema = "",
    reads: str | Iterable[str] = (),
    produces: str | Schema = "",
    stamp: str = "earliest",
    name: str | None = None,
    **aggregates: str,
) -> Stream:
    """A Latch over several streams, merged by timestamp, ties by their order here (see `Stream.latch`).

    The function's batch has the columns of all of them (null where a stream lacks one) and `input`, the index.
    """
    inputs = list(streams) if isinstance(streams, Iterable) else [streams]
    draft = first_of(inputs, "latch", "ps.latch([a, b], ...)")._draft(Latch, "latch", name)
    return add_latch(draft, inputs, size, aggregates, function, state, reads, produces, stamp)


def add_column_latch(
    draft: Draft, streams: Iterable[Stream], logic: UserFunction, produces: str | Schema
) -> Stream:
    """The one place where a ColumnLatch is put together."""
    return draft.add(streams, logic=draft.function(logic), produces=draft.schema("produces", produces))


def column_latch(
    streams: Iterable[Stream], logic: UserFunction, *, produces: str | Schema, name: str | None = None
) -> Stream:
    """A ColumnLatch over several streams, each in order of time, all as far as the slowest of them."""
    inputs = list(streams) if isinstance(streams, Iterable) else [streams]
    first = first_of(inputs, "column_latch", "ps.column_latch([a, b], ...)")
    return add_column_latch(first._draft(ColumnLatch, "column_latch", name), inputs, logic, produces)
