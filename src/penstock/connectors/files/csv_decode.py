"""CSV into columns: with Arrow's parser where it agrees with Spark's, otherwise with our own."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from penstock.connectors.contract import Decoded
from penstock.connectors.files.blocks import decode_blocks, longest_line
from penstock.connectors.lines import RowValues, decode_lines
from penstock.connectors.tables import counted_from
from penstock.connectors.values import Value, bytes_of, converted
from penstock.model.formats.description import Options
from penstock.model.formats.time_patterns import TimePattern, time_pattern
from penstock.model.types import INTEGRAL, Schema, arrow_schema

_BOM = b"\xef\xbb\xbf"
_NEWLINE = 10
_UTC = pa.timestamp("us", tz="UTC")
# Years 1 to 9999, in microseconds: the range of a Python datetime.
_FIRST_TIME, _LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999
_FIRST_DAY = -719_162  # 0001-01-01; Arrow reads no later year than 9999, but it reads the year 0


def decode_csv(
    schema: Schema, options: Options, data: bytes, first: int, columns: Sequence[str] = ()
) -> Decoded:
    """Decode the rows of whole lines; `first` is the place of the first one.

    `columns`: the names of the file's columns, if they are not those of the schema in its order.
    """
    csv = _Csv.of(schema, options, columns)
    return decode_blocks(data, first, csv.quick, csv.slow, longest_line(options))


@dataclass(frozen=True)
class _Csv:
    """How this source writes its rows."""

    schema: Schema
    sep: str
    quote: str
    comment: bytes
    null: str
    pattern: TimePattern | None
    columns: tuple[str, ...]  # of the file, in its order

    @classmethod
    def of(cls, schema: Schema, options: Options, columns: Sequence[str] = ()) -> _Csv:
        given = dict(options)
        pattern = given.get("timestampFormat")
        return cls(
            schema,
            given.get("sep", ","),
            given.get("quote", '"'),
            given.get("comment", "").encode(),
            given.get("nullValue", ""),
            None if pattern is None else time_pattern(pattern),
            tuple(columns or schema.names),
        )

    def quick(self, data: bytes, first: int) -> Decoded | None:
        """The block as a table, or None if any row is doubtful."""
        if (
            self._open_at_the_end(data)
            or data.startswith(_BOM)
            or _has_blank_line(data)
            or _has_lone_return(data)
            or _has_hex(data)
            or self._has_comment(data)
        ):
            return None
        # Without a line end, Arrow takes an empty last field behind a quoted one for a text, not for null.
        data = data if data.endswith(b"\n") else data + b"\n"
        try:
            table = self._by_arrow(data)
        except (pa.ArrowInvalid, ValueError):
            return None
        doubtful = table.num_rows != data.count(b"\n") or any(map(_beyond, table.columns))
        return None if doubtful else counted_from(table, first)

    def _open_at_the_end(self, data: bytes) -> bool:
        """Whether the last line has an open quote: for Arrow the end of a block closes it."""
        last = data[data.rfind(b"\n", 0, len(data) - 1) + 1 :] if self.quote else b""
        if self.quote.encode() not in last:
            return False
        try:
            field_splitter(self.sep, self.quote)(last.rstrip(b"\r\n").decode("utf-8", "surrogateescape"))
        except ValueError:
            return True
        return False

    def _has_comment(self, data: bytes) -> bool:
        return bool(self.comment) and (data.startswith(self.comment) or b"\n" + self.comment in data)

    def _by_arrow(self, data: bytes) -> pa.Table:
        types = {f.name: f.type for f in arrow_schema(self.schema, hidden=False)}
        times = [name for name, type_ in types.items() if pa.types.is_timestamp(type_)]
        binary = [name for name, type_ in types.items() if pa.types.is_binary(type_)]
        # Read times as text first: Arrow accepts only one form, Spark and people use several.
        types |= dict.fromkeys([*times, *binary], pa.string())
        table = pacsv.read_csv(
            pa.BufferReader(data),
            self._read_options(data),
            self._parse_options(),
            self._convert_options(types),
        )
        for name in times:
            table = table.set_column(table.column_names.index(name), name, self._times(table.column(name)))
        for name in binary:
            table = table.set_column(table.column_names.index(name), name, _unpacked(table.column(name)))
        return table

    def _read_options(self, data: bytes) -> pacsv.ReadOptions:
        block = max(len(data) + 1, 1024)
        return pacsv.ReadOptions(column_names=list(self.columns), use_threads=False, block_size=block)

    def _parse_options(self) -> pacsv.ParseOptions:
        return pacsv.ParseOptions(
            delimiter=self.sep, quote_char=self.quote or False, ignore_empty_lines=False
        )

    def _convert_options(self, types: dict[str, pa.DataType]) -> pacsv.ConvertOptions:
        return pacsv.ConvertOptions(
            column_types=types,
            include_columns=list(self.schema.names),
            null_values=[self.null],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["true", "True", "TRUE"],
            false_values=["false", "False", "FALSE"],
        )

    def _times(self, column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        return _plain_times(column) if self.pattern is None else _by_pattern(column, self.pattern)

    def slow(self, lines: list[bytes], first: int) -> Decoded:
        """Parse line by line, with a reason for each refused line."""
        split = field_splitter(self.sep, self.quote)
        numbers = [self.columns.index(c.name) for c in self.schema]

        def read(text: str) -> RowValues:
            fields = split(text)
            if len(fields) != len(self.columns):
                raise ValueError(f"{len(fields)} fields, expected {len(self.columns)}")
            return [
                self._value(*fields[number], c.type, c.name)
                for number, c in zip(numbers, self.schema, strict=True)
            ]

        return decode_lines(self.schema, lines, first, read, self.comment)

    def _value(self, text: str, quoted: bool, type_: str, column: str) -> Value:
        """A field's text as a value of its column. A quoted text is never null."""
        if text == self.null and not (quoted and type_ in ("STRING", "BINARY")):
            return None
        text.encode()  # refuses invalid UTF-8
        if type_ == "STRING":
            return text
        pattern = self.pattern if type_ == "TIMESTAMP" else None
        try:
            return _parsed(text, type_) if pattern is None else pattern.read(text)
        except (ValueError, KeyError, OverflowError) as error:
            says_why = "range" in str(error) or pattern is not None
            detail = str(error) if says_why else f"{text!r} is no {type_}"
            raise ValueError(f"column '{column}': {detail}") from None


def _unpacked(column: pa.ChunkedArray) -> pa.Array:
    """The bytes of base64 texts."""
    return pa.array([None if text is None else bytes_of(text) for text in column.to_pylist()], pa.binary())


# -- times, a column at once


def _by_pattern(column: pa.ChunkedArray, pattern: TimePattern) -> pa.Array:
    """Parse a column of times, each distinct text once."""
    encoded = column.combine_chunks().dictionary_encode()
    times = pa.array([pattern.read(text) for text in encoded.dictionary.to_pylist()], _UTC)
    return times.take(encoded.indices)


def _plain_times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts as UTC times: seconds since 1970, or ISO with or without zone."""
    times = _first_that_fits(column)
    extent = pc.min_max(times.cast(pa.int64()))
    least, latest = extent["min"].as_py(), extent["max"].as_py()
    if least is not None and not (least >= _FIRST_TIME and latest <= _LAST_TIME):
        raise ValueError("a time beyond the years 1 to 9999")
    return times


def _first_that_fits(column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return pc.cast(pc.multiply_checked(pc.cast(column, pa.int64()), 1_000_000), _UTC)
    except pa.ArrowInvalid:
        pass
    try:
        return pc.assume_timezone(pc.cast(column, pa.timestamp("us")), "UTC")
    except pa.ArrowInvalid:
        return pc.cast(column, _UTC)


# -- what Arrow would read differently


def _has_hex(data: bytes) -> bool:
    """Whether a field may start like the hex number 0x1F, which Arrow accepts and Spark does not."""
    return (b"x" in data or b"X" in data) and re.search(rb"(?:^|[^\w.])-?0[xX]", data) is not None


def _has_lone_return(data: bytes) -> bool:
    """Whether a carriage return ends no line: for Arrow it ends one everywhere."""
    return b"\r" in data and data.count(b"\r") != data.count(b"\r\n")


def _beyond(column: pa.ChunkedArray) -> bool:
    """Whether a column may hold a FLOAT out of range, which Arrow makes infinite, or a date of the year 0."""
    if pa.types.is_float32(column.type):
        return bool(pc.any(pc.is_inf(column)).as_py())
    if pa.types.is_date32(column.type):
        least = pc.min(column.cast(pa.int32())).as_py()
        return least is not None and least < _FIRST_DAY
    return False


def _has_blank_line(data: bytes) -> bool:
    if data[:1] in (b"", b"\n", b"\r") or (b"\r" in data and b"\n\r" in data):
        return True
    ends = np.frombuffer(data, np.uint8) == _NEWLINE
    return bool((ends[1:] & ends[:-1]).any())


# -- one line


def field_splitter(sep: str, quote: str) -> Callable[[str], list[tuple[str, bool]]]:
    """Split a line into its fields, as Arrow does, and note whether each was quoted."""
    other, q = f"[^{re.escape(sep)}]*", re.escape(quote or '"')
    field = re.compile(f"(?:{q}((?:[^{q}]|{q}{q})*+){q}({other})|((?!{q}){other}))(?:{re.escape(sep)}|$)")

    def split(text: str) -> list[tuple[str, bool]]:
        if not quote or quote not in text:
            return [(part, False) for part in text.split(sep)]
        fields, at = [], 0
        while True:
            match = field.match(text, at)
            if match is None:
                raise ValueError("a quote is not closed")
            quoted = match[3] is None
            fields.append((match[1].replace(quote * 2, quote) + match[2] if quoted else match[3], quoted))
            at = match.end()
            if at == len(text) and not match[0].endswith(sep):
                return fields

    return split


def _parsed(text: str, type_: str) -> Value:
    """Parse a field. As with Arrow, numbers and dates may have spaces around them."""
    if "_" in text:
        raise ValueError(text)
    bare = text.strip(" \t")
    if type_ in INTEGRAL:
        return converted(int(bare), type_)
    match type_:
        case "FLOAT" | "DOUBLE":
            return converted(float(bare), type_)
        case "BOOLEAN":
            return {"true": True, "false": False}[bare.lower()]
        case "TIMESTAMP":
            return converted(_seconds(text), type_)
        case "DATE":
            return converted(bare, type_)
        case "BINARY":
            return bytes_of(text)
    return converted(text, type_)


def _seconds(text: str) -> int | float | str:
    """The number of seconds, if the text is one."""
    if text.lstrip("-").isdigit():
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text
