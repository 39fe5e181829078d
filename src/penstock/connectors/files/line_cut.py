"""Cuts text into pieces of whole lines, and counts their tuples."""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

import numpy as np

from penstock.connectors.files.text_file import TextFile
from penstock.connectors.lines import count_lines

MAX_SLICE_BYTES = 4 << 20
"""Small enough that a large train is read by all cores."""
MAX_LINE_BYTES = 64 << 20
_NEWLINE = 10


class UncutTextError(Exception):
    """Text that cannot be cut into lines; the text says why."""


@dataclass(frozen=True)
class Piece:
    """Whole lines of a text. `rows`: those that are neither blank nor a comment.

    `crc`: the checksum of the text from its beginning to the end of the piece.
    """

    end: int
    lines: int
    rows: int
    crc: int


def cut_piece(
    text: TextFile, start: int, size: int, limit: int, *, before: int = 0, comment: bytes = b""
) -> Piece:
    """At most `limit` lines from `start`; at least one, however long. The last may lack its end.

    `before`: the checksum up to `start`.
    """
    data = _block(text, start, size)
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE)
    if len(ends) >= limit:
        data, ends = data[: int(ends[limit - 1]) + 1], ends[:limit]
    elif start + len(data) < size:
        data = data[: int(ends[-1]) + 1]
    lines = len(ends) + (1 if data and not data.endswith(b"\n") else 0)
    return Piece(start + len(data), lines, count_lines(data, comment), crc32(data, before))


def count_rows(text: TextFile, start: int, comment: bytes = b"") -> int:
    """How many tuples there are from `start` to the end."""
    rows = 0
    while start < text.size:
        piece = cut_piece(text, start, text.size, text.size, comment=comment)
        start, rows = piece.end, rows + piece.rows
    return rows


def _block(text: TextFile, start: int, size: int) -> bytes:
    """The text from `start`: a slice's worth, or more if a line is longer."""
    data = b""
    while start + len(data) < size and b"\n" not in data[-MAX_SLICE_BYTES:]:
        more = text.read(start + len(data), min(MAX_SLICE_BYTES, size - start - len(data)))
        if not more:
            raise UncutTextError("it became shorter while it was read")
        if len(data) > MAX_LINE_BYTES:
            raise UncutTextError(f"a line is longer than {MAX_LINE_BYTES:,} bytes")
        data += more
    return data
