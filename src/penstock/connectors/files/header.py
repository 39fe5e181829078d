"""The first line of a CSV file with header: it says which column is which, file by file."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from penstock.connectors.files.csv_decode import field_splitter
from penstock.connectors.files.text_file import TextFile
from penstock.connectors.paths import shown_path
from penstock.model.formats.description import Options
from penstock.model.types import Schema

_LOG = logging.getLogger("penstock")
_BOM = b"\xef\xbb\xbf"
_MOST = 1 << 20  # bytes in which a header must end


class WrongHeaderError(Exception):
    """A header with which no row can be read; the text says why."""


@dataclass(frozen=True)
class Header:
    """`lines`: how many lines it takes, with comments before it. `end`: the byte after it.

    `columns`: the names in the file, or none if they are those of the schema in its order.
    """

    lines: int = 0
    end: int = 0
    columns: tuple[str, ...] = ()


def read_header(text: TextFile, path: str, schema: Schema, options: Options) -> Header:
    """Read a file's header; say which columns are ignored, refuse a header that lacks one."""
    given = dict(options)
    lines, line, end = _first_line(text, given.get("comment", "").encode())
    if not end:
        return Header()
    try:
        fields = field_splitter(given.get("sep", ","), given.get("quote", '"'))(line.decode())
    except ValueError as error:
        raise WrongHeaderError(f"the header cannot be read: {error}") from None
    names = tuple(name.strip() for name, _ in fields)
    _check(names, schema)
    if names == schema.names:
        return Header(lines, end)
    _say(names, path, schema)
    return Header(lines, end, _unique(names, schema))


def header_has_come(text: TextFile, options: Options, end: int) -> bool:
    """Whether the header is among the lines up to `end`, which are whole: comments may come before it."""
    comment = dict(options).get("comment", "").encode()
    top = text.read(0, min(end, _MOST)).removeprefix(_BOM)
    return end > _MOST or any(not comment or not line.startswith(comment) for line in top.split(b"\n")[:-1])


def header_line(text: TextFile, options: Options) -> str:
    """The text of a file's header, as it stands there."""
    return _first_line(text, dict(options).get("comment", "").encode())[1].decode()


def _first_line(text: TextFile, comment: bytes) -> tuple[int, bytes, int]:
    """The number of lines up to the header, its text, and the byte after it."""
    top = text.read(0, _MOST)
    start = len(_BOM) if top.startswith(_BOM) else 0
    number = 0
    while start < len(top):
        number += 1
        end = top.find(b"\n", start)
        end = len(top) if end < 0 else end
        line = top[start:end].removesuffix(b"\r")
        if not (comment and line.startswith(comment)):
            return number, line, min(end + 1, len(top))
        start = end + 1
    return number, b"", len(top)


def _check(names: tuple[str, ...], schema: Schema) -> None:
    for column in schema.names:
        if names.count(column) != 1:
            problem = "missing" if column not in names else "twice"
            raise WrongHeaderError(
                # Neither the path nor a list of quoted names: letters are grouped by this text.
                f"column '{column}' is {problem} in the header, which is '{', '.join(names)}'"
            )


def _say(names: tuple[str, ...], path: str, schema: Schema) -> None:
    extra = [name for name in names if name not in schema.names]
    if extra:
        _LOG.warning("%s: columns that the source does not declare: %s", shown_path(path), ", ".join(extra))
    if [name for name in names if name in schema.names] != list(schema.names):
        _LOG.info("%s: columns in another order, read by name: %s", shown_path(path), ", ".join(names))


def _unique(names: tuple[str, ...], schema: Schema) -> tuple[str, ...]:
    """Each ignored column under a name of its own: readers want no name twice."""
    return tuple(name if name in schema.names else f"{number}:{name}" for number, name in enumerate(names))
