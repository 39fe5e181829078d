"""Schemas: named columns with Spark SQL types, and what an arrow carries.

Every arrow also carries two hidden columns that no box can lose (Aurora, Sect. 2). `_ts` is the tuple's
timestamp in microseconds, the earliest one where tuples were combined. `_seq` is its rank in order of
arrival.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.model.errors import ExpressionError, did_you_mean, shown

if TYPE_CHECKING:
    import pyarrow as pa  # only where it is called for: a network is written without it

STAMP, SEQ = "_ts", "_seq"

_ALIASES = {
    "BOOL": "BOOLEAN", "BYTE": "TINYINT", "SHORT": "SMALLINT", "INTEGER": "INT", "LONG": "BIGINT",
    "REAL": "FLOAT", "TEXT": "STRING", "VARCHAR": "STRING", "TIMESTAMP_LTZ": "TIMESTAMP",
}  # fmt: skip
TYPES = (
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "STRING",
    "BINARY",
    "DATE",
    "TIMESTAMP",
)
INTEGRAL = ("TINYINT", "SMALLINT", "INT", "BIGINT")
NUMERIC = (*INTEGRAL, "FLOAT", "DOUBLE")
_COLUMN = re.compile(r"\s*(`[^`]+`|\w+)\s*:?\s+([A-Za-z_]+)\s*")
# A comma outside of backticks: an even number of them follows.
_COMMA = re.compile(r",(?=(?:[^`]*`[^`]*`)*[^`]*$)")
_BARE = re.compile(r"[^\W\d]\w*")
_ODD = re.compile(r"[`\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True)
class Column:
    """A column's name and its Spark SQL type, in the one spelling of `TYPES`."""

    name: str
    type: str


@dataclass(frozen=True)
class Schema:
    """Columns in order.

    >>> Schema.parse("time TIMESTAMP, vid int").ddl()
    'time TIMESTAMP, vid INT'
    """

    columns: tuple[Column, ...] = ()

    @staticmethod
    def parse(ddl: str) -> Schema:
        """Read Spark's DDL form, refusing types that Penstock does not carry."""
        columns = []
        for part in _COMMA.split(ddl):
            match = _COLUMN.fullmatch(part)
            if not match:
                raise ExpressionError(
                    f"'{part.strip()}' is not a column",
                    expected="name TYPE, separated by commas",
                    hint="for example 'time TIMESTAMP, vid INT'",
                )
            columns.append(Column(match[1].strip("`"), canonical_type(match[2])))
        return Schema.of(columns)

    @staticmethod
    def of(columns: Iterable[Column | tuple[str, str]]) -> Schema:
        """Build from columns or (name, type) pairs; a name twice is refused, and so are the hidden names."""
        typed = tuple(c if isinstance(c, Column) else Column(c[0], canonical_type(c[1])) for c in columns)
        names = [c.name for c in typed]
        for name in names:
            if names.count(name) > 1:
                raise ExpressionError(f"column '{name}' appears twice", hint="give one of them another name")
            if not name.strip() or _ODD.search(name):
                raise ExpressionError(
                    f"{name!r} cannot be the name of a column",
                    expected="a text without backticks, line ends and other control characters",
                )
            if name.startswith("_"):
                raise ExpressionError(
                    f"column '{name}' starts with '_'", hint="Penstock uses such names itself; choose another"
                )
        return Schema(typed)

    def ddl(self) -> str:
        """The text form that `parse` reads back.

        >>> Schema.of([("my col", "INT")]).ddl()
        '`my col` INT'
        """
        return ", ".join(f"{quoted(c.name)} {c.type}" for c in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def type_of(self, name: str) -> str:
        """The column's type, or an error that says which columns there are."""
        for column in self.columns:
            if column.name == name:
                return column.type
        raise ExpressionError(
            f"unknown column '{name}'",
            expected=f"one of: {', '.join(self.names)}",
            hint=did_you_mean(name, self.names),
        )

    def with_columns(self, more: Iterable[Column]) -> Schema:
        """Replace columns of the same name in place, add the others at the end."""
        new = {c.name: c for c in more}
        kept = [new.pop(c.name, c) for c in self.columns]
        return Schema.of([*kept, *new.values()])


def quoted(name: str) -> str:
    """A column's name as one writes it in Spark SQL: in backticks where it must be."""
    return name if _BARE.fullmatch(name) else f"`{name}`"


def parse_schema(given: str | Schema) -> Schema:
    """Columns as text or ready made."""
    if isinstance(given, Schema):
        return given
    if not isinstance(given, str):
        raise ExpressionError(
            "not a schema",
            found=shown(given),
            expected="a text or a Schema",
            hint="for example 'time TIMESTAMP, vid INT'",
        )
    return Schema.parse(given)


def canonical_type(text: str) -> str:
    """One spelling for each type; refuses those that Penstock does not carry."""
    name = text.strip().upper()
    name = _ALIASES.get(name, name)
    if name not in TYPES:
        raise ExpressionError(
            f"unknown type '{text}'", expected=f"one of: {', '.join(TYPES)}", hint=did_you_mean(text, TYPES)
        )
    return name


@dataclass(frozen=True)
class StreamType:
    """What an arrow carries: visible columns, its timestamp column (None: unstamped), its grouping."""

    schema: Schema
    timestamp: str | None = None
    keys: tuple[str, ...] = ()
    # True while later tuples of one timestamp always have a larger _seq: a single source through stateless
    # boxes. Order-sensitive boxes may then release a tuple as soon as its time is reached, not only when it
    # is passed.
    arrival_order: bool = True
    # None: the stamp may lag behind the stream without bound (a count window that keeps the earliest
    # timestamp).
    lag: int | None = 0
    # Whether the timestamp column shows `_ts`. A pair shows the left tuple's time, while its `_ts` is the
    # earlier one of the two.
    shows_stamp: bool = True
    # False behind a column latch, which numbers no rows: `_seq` is 0. They have an order in time only.
    numbered: bool = True


def arrow_schema(schema: Schema, *, hidden: bool = True) -> pa.Schema:
    """The pyarrow schema of a batch on an arrow: visible columns, then `_ts` and `_seq`."""
    import pyarrow as pa

    types = {
        "BOOLEAN": pa.bool_(), "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(),
        "BIGINT": pa.int64(), "FLOAT": pa.float32(), "DOUBLE": pa.float64(), "STRING": pa.string(),
        "BINARY": pa.binary(), "DATE": pa.date32(), "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    }  # fmt: skip
    fields = [pa.field(c.name, types[c.type]) for c in schema]
    if hidden:
        fields += [pa.field(STAMP, pa.int64()), pa.field(SEQ, pa.int64())]
    return pa.schema(fields)
