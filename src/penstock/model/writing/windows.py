"""Boxes over windows and state: tumble, slide, latch, resample (Aurora, Sect. 2.1, A09-A13)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from penstock.model.boxes import ColumnLatch, Latch, Resample, Slide, Tumble
from penstock.model.durations import Extent
from penstock.model.types import Schema
from penstock.model.writing.arguments import names
from penstock.model.writing.arrow import first_of
from penstock.model.writing.box_builder import Duration, UserFunction
from penstock.model.writing.stateless import StatelessBoxes

if TYPE_CHECKING:
    from penstock.model.writing.stream import Stream

Size = Duration | Extent
Aggregates = Mapping[str, str] | None


class WindowBoxes(StatelessBoxes):
    """Boxes that look at many tuples; after `group_by`, at those of each key apart."""

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
        builder = self._column_builder(Tumble, "tumble", name)
        return builder.add(
            [self._stream],
            size=builder.extent("size", size),
            aggregates=builder.texts("aggregates", columns, aggregates),
            function=builder.function(function),
            reads=names(reads),
            produces=builder.schema("produces", produces),
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
        builder = self._column_builder(Slide, "slide", name)
        return builder.add(
            [self._stream],
            size=builder.extent("size", size),
            every=builder.extent("every", every),
            aggregates=builder.texts("aggregates", columns, aggregates),
            function=builder.function(function),
            reads=names(reads),
            produces=builder.schema("produces", produces),
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
        `.latch(function=f, state="n BIGINT", produces="vid INT, n BIGINT")`: it calls
        `f(batch, state) -> (batch, changed)`.
        """
        return latch(
            [self._stream],
            size,
            columns,
            function=function,
            state=state,
            reads=reads,
            produces=produces,
            stamp=stamp,
            name=name,
            **aggregates,
        )

    def column_latch(self, logic: UserFunction, *, produces: str | Schema, name: str | None = None) -> Stream:
        """State as columns of the whole partition, kept for ever: `logic()` makes the object that holds it.

        See `boxes.ColumnLatch` for what the object must do. `ps.column_latch([a, b], ...)` takes several
        streams.
        """
        return column_latch([self._stream], logic, produces=produces, name=name)

    def resample(
        self,
        every: Duration,
        *,
        columns: str | Iterable[str],
        limit: Duration = "10 seconds",
        name: str | None = None,
    ) -> Stream:
        """Interpolate at each multiple of `every` between two tuples at most `limit` apart (A13)."""
        builder = self._builder(Resample, "resample", name)
        return builder.add(
            [self._stream],
            every=builder.duration("every", every),
            limit=builder.duration("limit", limit),
            columns=names(columns),
        )


def latch(  # noqa: PLR0913 - a box has as many options as it has
    streams: Iterable[Stream],
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
    """A Latch over several streams, merged by timestamp, ties by their order here (see `Stream.latch`).

    The function's batch has the columns of all streams (null where a stream lacks one) and `input`, the
    index.
    """
    inputs = list(streams) if isinstance(streams, Iterable) else [streams]
    builder = first_of(inputs, "latch", "ps.latch([a, b], ...)")._column_builder(Latch, "latch", name)
    return builder.add(
        inputs,
        size=None if size is None else builder.extent("size", size),
        aggregates=builder.texts("aggregates", columns, aggregates),
        function=builder.function(function),
        state=builder.schema("state", state),
        reads=names(reads),
        produces=builder.schema("produces", produces),
        stamp=stamp,
    )


def column_latch(
    streams: Iterable[Stream], logic: UserFunction, *, produces: str | Schema, name: str | None = None
) -> Stream:
    """A ColumnLatch over several streams, each in order of time, all as far as the slowest of them."""
    inputs = list(streams) if isinstance(streams, Iterable) else [streams]
    first = first_of(inputs, "column_latch", "ps.column_latch([a, b], ...)")
    builder = first._builder(ColumnLatch, "column_latch", name)
    return builder.add(inputs, logic=builder.function(logic), produces=builder.schema("produces", produces))
