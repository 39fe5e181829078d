"""From packed slices to tuples: one record carries a slice's bytes; here they become columns, `_ts` and `_seq`.

The quick way parses a whole block; a block with anything wrong in it is parsed line by line, so that good rows next to
a bad one are kept and the bad one goes to the dead letters with its text and the reason.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from penstock.engine.arrow.logic import DEAD_SCHEMA
from penstock.engine.contract.ticket import Slice
from penstock.engine.spark.entry.feeds import unpack_feed
from penstock.engine.spark.entry.inputs import SEQ_BITS
from penstock.engine.spark.entry.packing import pack
from penstock.model.boxes import Source
from penstock.model.expressions.values import convert
from penstock.model.formats.time_patterns import TimePattern, time_pattern
from penstock.model.types import SEQ, STAMP, Schema, arrow_schema
from penstock.store.ipc import from_ipc

_QUICK_ROWS = 4096
_BOM = b"\xef\xbb\xbf"
# years 1 to 9999, in microseconds: what a Python datetime can hold
_FIRST_TIME, _LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999
Decoded = tuple[Any, Any]  # tuples, dead letters


def unpack(source: Source, slice_: Slice, chunk: bytes) -> Decoded:
    """The tuples of a packed slice, and the rows that are none."""
    match slice_["kind"]:
        case "bytes":
            first = (slice_["file"] << SEQ_BITS) + slice_["line"]
            if slice_["line"] == 0:
                chunk = chunk.removeprefix(_BOM)
            for _ in range(slice_["header"]):
                chunk, first = chunk.partition(b"\n")[2], first + 1
            kind = source.format.name
            parse = _csv_block if kind == "csv" else _json_block
            table, dead = _blocks(source, chunk, first, parse)
        case "feed":
            return unpack_feed(source, slice_, chunk)
        case "spool":
            table, dead = _spooled(source, slice_["row"], chunk)
        case "groups":
            table = from_ipc(chunk).select(list(source.schema.names))
            table = table.cast(arrow_schema(source.schema, hidden=False))
            table, dead = (
                _numbered(table, np.arange(table.num_rows) + ((slice_["file"] << SEQ_BITS) + slice_["row"])),
                _no_dead(),
            )
        case "rate":
            table, dead = _rate(source, slice_), _no_dead()
    return _stamped(source, table, dead)


def _blocks(source: Source, chunk: bytes, first: int, parse: Callable[..., Decoded | None]) -> Decoded:
    """All at once if every row is sound, else block by block, else line by line."""
    whole = parse(source, chunk, first)
    if whole is not None:
        return whole
    lines = chunk.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    by_line = _csv_lines if parse is _csv_block else _json_lines
    parts = [by_line(source, [], first)]
    for at in range(0, len(lines), _QUICK_ROWS):
        block = lines[at : at + _QUICK_ROWS]
        quick = parse(source, b"\n".join(block) + b"\n", first + at)
        parts.append(quick if quick is not None else by_line(source, block, first + at))
    return pa.concat_tables([t for t, _ in parts]), pa.concat_tables([d for _, d in parts])


def _csv_block(source: Source, chunk: bytes, first: int) -> Decoded | None:
    """The block as a table, or None if any row is doubtful."""
    options = dict(source.format.options)  # type: ignore[attr-defined]
    names = list(source.schema.names)
    types = {f.name: f.type for f in arrow_schema(source.schema, hidden=False)}
    times = [name for name, type_ in types.items() if pa.types.is_timestamp(type_)]
    # times are read as text or numbers first: Arrow takes one form of them only, Spark and people several
    types |= dict.fromkeys(times, pa.string())
    if chunk.startswith(_BOM) or _has_blank_line(chunk) or _has_hex(chunk) or _has_comment(chunk, options):
        return None
    try:
        table = pacsv.read_csv(
            pa.BufferReader(chunk),
            pacsv.ReadOptions(column_names=names, use_threads=False, block_size=max(len(chunk) + 1, 1024)),
            pacsv.ParseOptions(
                delimiter=options.get("sep", ","), quote_char=options.get("quote", '"') or False, ignore_empty_lines=False
            ),
            pacsv.ConvertOptions(
                column_types=types, null_values=[options.get("nullValue", "")], strings_can_be_null=True, quoted_strings_can_be_null=False,
                true_values=["true", "True", "TRUE"], false_values=["false", "False", "FALSE"],
            ),
        )  # fmt: skip
        for name in times:
            at = names.index(name)
            table = table.set_column(at, name, _times(table.column(name), _pattern(source)))
    except (pa.ArrowInvalid, ValueError):
        return None
    if table.num_rows != chunk.count(b"\n") + (0 if chunk.endswith(b"\n") else 1):
        return None
    return _numbered(table, np.arange(first, first + table.num_rows)), _no_dead()


def _pattern(source: Source) -> TimePattern | None:
    text = dict(source.format.options).get("timestampFormat")  # type: ignore[attr-defined]
    return None if text is None else time_pattern(text)


def _by_pattern(column: Any, pattern: TimePattern) -> Any:
    """Each different text is read once."""
    encoded = pa.chunked_array(column).combine_chunks().dictionary_encode()
    times = pa.array(
        [pattern.read(text) for text in encoded.dictionary.to_pylist()], pa.timestamp("us", tz="UTC")
    )
    return times.take(encoded.indices)


def _times(column: Any, pattern: TimePattern | None = None) -> Any:
    """Texts as UTC times: by the source's pattern, else ISO with or without zone, or seconds since 1970."""
    if pattern is not None:
        return _by_pattern(column, pattern)
    utc = pa.timestamp("us", tz="UTC")
    try:
        times = pc.cast(pc.multiply_checked(pc.cast(column, pa.int64()), 1_000_000), utc)
    except pa.ArrowInvalid:
        try:
            times = pc.assume_timezone(pc.cast(column, pa.timestamp("us")), "UTC")
        except pa.ArrowInvalid:
            times = pc.cast(column, utc)
    extent = pc.min_max(times.cast(pa.int64()))
    if extent["min"].is_valid and not (
        extent["min"].as_py() >= _FIRST_TIME and extent["max"].as_py() <= _LAST_TIME
    ):
        raise ValueError("a time beyond the years 1 to 9999")
    return times


def _has_hex(chunk: bytes) -> bool:
    """Arrow alone takes 0x1F for a number; texts that have it further in are no matter."""
    return (b"0x" in chunk or b"0X" in chunk) and re.search(rb"(?:^|[^\w.])-?0[xX]", chunk) is not None


def _has_comment(chunk: bytes, options: dict[str, str]) -> bool:
    mark = options.get("comment", "").encode()
    return bool(mark) and (chunk.startswith(mark) or b"\n" + mark in chunk)


def _has_blank_line(chunk: bytes) -> bool:
    return (
        chunk[:1] in (b"", b"\n", b"\r") or b"\n\n" in chunk or b"\n\r\n" in chunk or chunk.endswith(b"\n\r")
    )


def _csv_lines(source: Source, lines: list[bytes], first: int) -> Decoded:
    options = dict(source.format.options)  # type: ignore[attr-defined]
    null = options.get("nullValue", "")
    split, pattern = _splitter(options.get("sep", ","), options.get("quote", '"')), _pattern(source)
    comment = options.get("comment", "")

    def values(text: str) -> list[Any]:
        fields = split(text)
        if len(fields) != len(source.schema.columns):
            raise ValueError(f"{len(fields)} fields, expected {len(source.schema.columns)}")
        return [
            _from_text(
                None if text == null and not (quoted and c.type in ("STRING", "BINARY")) else text,
                c.type,
                c.name,
                pattern,
            )
            for (text, quoted), c in zip(fields, source.schema, strict=True)
        ]

    return _line_by_line(source.schema, lines, first, values, comment.encode())


def _splitter(sep: str, quote: str = '"') -> Callable[[str], list[tuple[str, bool]]]:
    """Cuts a line into its fields, as Arrow does; with each whether it was quoted: a quoted empty text is no null."""
    other, q = f"[^{re.escape(sep)}]*", re.escape(quote or '"')
    field = re.compile(f"(?:{q}((?:[^{q}]|{q}{q})*){q}({other})|((?!{q}){other}))(?:{re.escape(sep)}|$)")

    def split(text: str) -> list[tuple[str, bool]]:
        if not quote or quote not in text:
            return [(part, False) for part in text.split(sep)]
        fields, at = [], 0
        while True:
            found = field.match(text, at)
            if found is None:
                raise ValueError("a quote is not closed")
            quoted = found[3] is None
            fields.append((found[1].replace(quote * 2, quote) + found[2] if quoted else found[3], quoted))
            at = found.end()
            if at == len(text) and not found[0].endswith(sep):
                return fields

    return split


def _json_block(source: Source, chunk: bytes, first: int) -> Decoded | None:
    # the row parser is the only one that keeps Spark's meaning of missing and ill-typed members
    return (
        None
        if chunk.count(b"\n") > _QUICK_ROWS
        else _json_lines(source, chunk.removesuffix(b"\n").split(b"\n"), first)
    )


def _json_lines(source: Source, lines: list[bytes], first: int) -> Decoded:
    pattern = _pattern(source)

    def values(text: str) -> list[Any]:
        row = json.loads(text)
        if not isinstance(row, dict):
            raise ValueError("not a JSON object")  # noqa: TRY004 - a row is refused, no caller is at fault
        return [_member(row.get(c.name), c.type, c.name, pattern) for c in source.schema]

    return _line_by_line(source.schema, lines, first, values)


def _spooled(source: Source, first: int, chunk: bytes) -> Decoded:
    def values(text: str) -> list[Any]:
        row = json.loads(text)
        if isinstance(row, dict):
            return [_member(row.get(c.name), c.type, c.name) for c in source.schema]
        if not isinstance(row, list) or len(row) != len(source.schema.columns):
            raise ValueError(f"expected a dict or {len(source.schema.columns)} values")
        return [_member(value, c.type, c.name) for value, c in zip(row, source.schema, strict=True)]

    return _line_by_line(source.schema, chunk.removesuffix(b"\n").split(b"\n"), first, values)


def _line_by_line(
    schema: Schema, lines: list[bytes], first: int, values: Callable[[str], list[Any]], comment: bytes = b""
) -> Decoded:
    good: list[list[Any]] = []
    numbers: list[int] = []
    dead: list[tuple[str, str, int]] = []
    for number, line in enumerate(lines, first):
        stripped = line.removesuffix(b"\r")
        if not stripped or (comment and stripped.startswith(comment)):
            continue  # an empty line or a comment is no row, but it counts as a line
        try:
            # bytes that are no UTF-8 pass into BINARY columns only
            good.append(values(stripped.decode("utf-8", "surrogateescape")))
            numbers.append(number)
        except (ValueError, OverflowError, RecursionError) as error:
            reason = "not UTF-8" if isinstance(error, UnicodeError) else str(error)
            dead.append((stripped.decode("utf-8", "replace"), f"malformed: {reason}", number))
    types = arrow_schema(schema, hidden=False)
    columns = [pa.array([row[i] for row in good], f.type) for i, f in enumerate(types)]
    table = pa.Table.from_arrays(columns, schema=types) if columns else types.empty_table()
    return _numbered(table, np.array(numbers, np.int64)), _dead(dead)


def _from_text(text: str | None, type_: str, name: str, pattern: TimePattern | None = None) -> Any:
    """A field's text as a value of its column type; as with Arrow, numbers may have spaces around them."""
    if text is None:
        return None
    if type_ == "BINARY":
        return text.encode("utf-8", "surrogateescape")
    text.encode()  # refuses what was no UTF-8
    if type_ == "STRING":
        return text
    try:
        return pattern.read(text) if pattern is not None and type_ == "TIMESTAMP" else _parsed(text, type_)
    except (ValueError, KeyError, OverflowError) as error:
        told = "range" in str(error) or (pattern is not None and type_ == "TIMESTAMP")
        detail = str(error) if told else f"{text!r} is no {type_}"
        raise ValueError(f"column '{name}': {detail}") from None


def _parsed(text: str, type_: str) -> Any:
    if "_" in text:
        raise ValueError(text)
    match type_:
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT":
            return convert(int(text.strip(" \t")), type_)
        case "FLOAT" | "DOUBLE":
            return convert(float(text.strip(" \t")), type_)
        case "BOOLEAN":
            return {"true": True, "false": False}[text.strip(" \t").lower()]
        case "TIMESTAMP":
            return convert(_seconds(text), type_)
    return convert(text, type_)


def _seconds(text: str) -> int | float | str:
    if text.lstrip("-").isdigit():
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def _member(value: Any, type_: str, name: str, pattern: TimePattern | None = None) -> Any:
    if isinstance(value, dict) and set(value) == {"base64"} and type_ == "BINARY":
        return base64.b64decode(value["base64"])
    if type_ in ("TINYINT", "SMALLINT", "INT", "BIGINT") and isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str):
        value.encode()  # refuses what was no UTF-8, and halves of characters
    try:
        if pattern is not None and type_ == "TIMESTAMP" and isinstance(value, str):
            return pattern.read(value)
        return convert(value, type_)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"column '{name}': {error}") from None


def _rate(source: Source, slice_: Slice) -> Any:
    numbers = np.arange(slice_["row"], slice_["row"] + slice_["rows"], dtype=np.int64)
    stamps = slice_["start"] + numbers * 1_000_000 // slice_["rate"]
    table = pa.table(
        {
            source.schema.names[0]: pa.array(stamps).cast(pa.timestamp("us", tz="UTC")),
            source.schema.names[1]: pa.array(numbers),
        }
    )
    return _numbered(table, numbers)


def _numbered(table: Any, numbers: Any) -> Any:
    return table.append_column(SEQ, pa.array(numbers, pa.int64()))


def _stamped(source: Source, table: Any, dead: Any) -> Decoded:
    """Give each tuple its `_ts`; a stamped source refuses a tuple without a time."""
    at = len(source.schema.columns)
    if source.timestamp is None:
        return table.add_column(at, STAMP, pa.nulls(table.num_rows, pa.int64())), dead
    stamps = table.column(source.timestamp).cast(pa.int64())
    table = table.add_column(at, STAMP, stamps)
    if not stamps.null_count:
        return table, dead
    missing = table.filter(pc.is_null(table.column(STAMP)))
    raw = [
        json.dumps({k: v for k, v in row.items() if not k.startswith("_")}, default=str)
        for row in missing.to_pylist()
    ]
    more = [
        (text, "timestamp is null", seq)
        for text, seq in zip(raw, missing.column(SEQ).to_pylist(), strict=True)
    ]
    return table.filter(pc.is_valid(table.column(STAMP))), pa.concat_tables([dead, _dead(more)])


def _dead(rows: list[tuple[str, str, int]]) -> Any:
    raw, reason, offset = zip(*rows, strict=True) if rows else ((), (), ())
    box = [""] * len(rows)
    return pa.Table.from_arrays(
        [
            pa.array(raw, pa.string()),
            pa.array(reason, pa.string()),
            pa.array(offset, pa.int64()),
            pa.array(box, pa.string()),
        ],
        schema=DEAD_SCHEMA,
    )


def _no_dead() -> Any:
    return DEAD_SCHEMA.empty_table()


def read_slices(source: Source, slices: list[Slice]) -> Iterator[Decoded]:
    """Read and decode in one place: for tests and for readers outside of Spark."""
    for slice_ in slices:
        yield unpack(source, slice_, pack(slice_))
