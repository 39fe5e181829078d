"""A Python iterable as a source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from penstock.model.errors import ExpressionError, shown
from penstock.model.formats.description import ShedBy, SourceFormat
from penstock.model.types import Schema, parse_schema
from penstock.model.user_functions import name_of

GivenRow = Mapping[str, object] | Sequence[object]
RowsOrFunction = Iterable[GivenRow] | Callable[[], Iterable[GivenRow]]


@dataclass(frozen=True, eq=False)
class Rows(SourceFormat):
    """A Python iterable of dicts or tuples (or a function that returns one). Read once, kept for replay."""

    name: ClassVar[str] = "rows"
    input: ClassVar[str] = "penstock.connectors.rows:RowsInput"
    shed_by: ClassVar[ShedBy] = "blocks"

    rows: RowsOrFunction
    schema: Schema

    def begin(self) -> Iterator[GivenRow]:
        """The rows from the first one on."""
        return iter(self.rows() if callable(self.rows) else self.rows)

    @property
    def read_once(self) -> bool:
        return not callable(self.rows) and iter(self.rows) is self.rows

    def text(self) -> str:
        return f"rows from {name_of(self.rows)}" if callable(self.rows) else "rows of this process"

    def identity(self) -> object:
        return (Rows, name_of(self.rows), self.schema) if callable(self.rows) else self


def rows(data: RowsOrFunction, schema: str | Schema) -> Rows:
    """A Python iterable as a source."""
    if not callable(data) and (isinstance(data, str) or not isinstance(data, Iterable)):
        raise ExpressionError(
            "not rows",
            found=shown(data),
            expected="an iterable of dicts or tuples, or a function that returns one",
        )
    return Rows(data, parse_schema(schema))
