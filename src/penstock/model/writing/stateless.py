"""Boxes that look at one tuple at a time: filter, map, select, apply, drop (Aurora, Sect. 2.1, A14-A16)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, cast

from penstock.model.boxes import Drop, Filter, Map, Node
from penstock.model.errors import NetworkError, caller
from penstock.model.expressions.expression import column_text, is_expression
from penstock.model.types import Schema
from penstock.model.writing.arguments import names, refuse_twice
from penstock.model.writing.arrow import OutgoingArrow
from penstock.model.writing.box_builder import BoxBuilder, UserFunction

if TYPE_CHECKING:
    from penstock.model.writing.stream import Stream


class StatelessBoxes(OutgoingArrow):
    """A tuple's fate depends on that tuple alone."""

    def filter(
        self,
        predicate: UserFunction,
        *,
        reads: str | Iterable[str] = (),
        rowwise: bool = False,
        name: str | None = None,
    ) -> Stream:
        """Pass the tuples for which the predicate is true: Spark SQL, or a function batch -> booleans (A14).

        A text is always SQL; a function is given as such, and may declare the columns it reads. `rowwise`
        promises that its answer about a row depends on these columns of that row alone, and that it fails for
        none: then the optimizer may move it.
        """
        builder = self._builder(Filter, "filter", name)
        columns = names(reads)
        if isinstance(predicate, str):
            return builder.add([self._stream], predicate=predicate, reads=columns, rowwise=rowwise)
        function = builder.function(predicate)
        return builder.add([self._stream], function=function, reads=columns, rowwise=rowwise)

    def map(
        self, columns: Mapping[str, str] | None = None, /, *, name: str | None = None, **expressions: str
    ) -> Stream:
        """Add or replace columns, keep the others (A16): `.map(kmh="mph * 1.609")`.

        Columns whose name is no Python name, or is 'name', go into a dict: `.map({"name": "upper(plate)"})`.
        """
        builder = self._column_builder(Map, "map", name)
        return builder.add([self._stream], columns=builder.texts("map", columns, expressions))

    def select(
        self, *columns: str | Mapping[str, str], name: str | None = None, **expressions: str
    ) -> Stream:
        """Exactly these columns, in this order: `.select("vid", "seg", kmh="mph * 1.609")`.

        A column called 'name' is written `.select("name")` or `.select({"name": "upper(plate)"})`.
        """
        builder = self._column_builder(Map, "select", name)
        pairs = [
            pair
            for column in columns
            for pair in (
                [(column, column_text(column))]
                if isinstance(column, str)
                else builder.texts("select", column, {})
            )
        ]
        pairs += expressions.items()
        with builder.part("select"):
            refuse_twice([column for column, _ in pairs])
        return builder.add([self._stream], columns=tuple(pairs), keep=False)

    def apply(
        self,
        function: UserFunction,
        *,
        produces: str | Schema,
        reads: str | Iterable[str] = (),
        keep: bool = True,
        rowwise: bool = False,
        name: str | None = None,
    ) -> Stream:
        """A function over a batch (A16).

        It gets the columns `reads` (all, if none are named) and returns the columns `produces`, one row for
        each row it got. They are added to the others; with `keep=False` they replace them. `rowwise` is a
        promise, as with `filter`.
        """
        builder = self._builder(Map, "apply", name)
        schema = builder.schema("produces", produces)
        return builder.add(
            [self._stream],
            function=builder.function(function),
            reads=names(reads),
            produces=schema,
            keep=keep,
            rowwise=rowwise,
        )

    def drop(self, rate: float, *, seed: int = 0, name: str | None = None) -> Stream:
        """Drop tuples at random: 0.25 drops a quarter (A15). The rate can be changed while running."""
        share = float(rate) if type(rate) is int else rate
        return self._builder(Drop, "drop", name).add([self._stream], rate=share, seed=seed)

    def _builder(self, make: Callable[..., Node], kind: str, name: str | None) -> BoxBuilder:
        return BoxBuilder(self.network, make, name or self.network.free_name(kind), caller())

    def _column_builder(self, make: Callable[..., Node], kind: str, name: str | None) -> BoxBuilder:
        """The builder of a box whose keywords are columns: `name=` must not be meant as one of them."""
        if isinstance(name, str) and is_expression(name, self.schema):
            raise NetworkError(
                f"{kind}(name='{name}') could name the box or a column",
                where=caller(),
                found=f"'{name}', an expression over its input",
                expected="one meaning",
                hint=f'a column: .{kind}({{"name": "{name}"}}); the box: .{kind}(...).named("{name}")',
            )
        return self._builder(make, kind, name)

    @property
    def _stream(self) -> Stream:
        return cast("Stream", self)
