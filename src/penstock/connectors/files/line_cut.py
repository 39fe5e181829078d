"""Cuts text into pieces of whole lines, and counts their tuples."""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

import numpy as np

from penstock.connectors.files.text_file import TextFile
from penstock.connectors.lines import count_lines

MAX_SLICE_BYTES = 4 << 20
_FIRST_SLICE_BYTES = 256 << 10
_OF_ONE_SIZE = 4
MAX_LINE_BYTES = 64 << 20
_NEWLINE = 10


def slice_bytes(number: int) -> int:
    """The most bytes of a train's n-th slice: they grow, so that all cores read short trains too.

    Tasks get whole slices. One slice for all of a short train would leave all cores but one idle; many small
    ones in a long train would only cost time.

    >>> [slice_bytes(number) >> 10 for number in (0, 3, 4, 8, 12, 16, 100)]
    [256, 256, 512, 1024, 2048, 4096, 4096]
    """
    return min(MAX_SLICE_BYTES, _FIRST_SLICE_BYTES << min(8, number // _OF_ONE_SIZE))


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


@dataclass(frozen=True)
class CutLimit:
    """The most lines and bytes of a piece. It has `least` lines nevertheless, however long they are."""

    lines: int
    bytes: int = MAX_SLICE_BYTES
    least: int = 1


def cut_piece(
    text: TextFile, start: int, size: int, limit: CutLimit, *, before: int = 0, comment: bytes = b""
) -> Piece:
    """Whole lines from `start`. The last line of the text may lack its end.

    `before`: the checksum up to `start`.
    """
    most = min(limit.bytes, MAX_SLICE_BYTES)
    data = _block(text, start, size, most, limit.least)
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE)
    lines = min(len(ends), limit.lines)
    if len(data) > most:
        lines = min(lines, max(limit.least, int(np.searchsorted(ends, most))))
    # Only the last line of the text may lack its end, and only if the piece has room for it.
    full = lines == limit.lines or lines < len(ends) or len(data) > most
    if lines and (full or start + len(data) < size):
        data, ends = data[: int(ends[lines - 1]) + 1], ends[:lines]
    count = len(ends) + (1 if data and not data.endswith(b"\n") else 0)
    return Piece(start + len(data), count, count_lines(data, comment), crc32(data, before))


def count_rows(text: TextFile, start: int, comment: bytes = b"") -> int:
    """How many tuples there are from `start` to the end."""
    rows = 0
    while start < text.size:
        piece = cut_piece(text, start, text.size, CutLimit(text.size), comment=comment)
        start, rows = piece.end, rows + piece.rows
    return rows


def _block(text: TextFile, start: int, size: int, most: int, least: int) -> bytes:
    """The text from `start`: `most` bytes, or more if the first `least` lines are longer."""
    data, lines = b"", 0
    while start + len(data) < size and lines < least:
        wanted = MAX_SLICE_BYTES if data else most
        more = text.read(start + len(data), min(wanted, size - start - len(data)))
        if not more:
            raise UncutTextError("it became shorter while it was read")
        if len(data) > MAX_LINE_BYTES:
            raise UncutTextError(f"a line is longer than {MAX_LINE_BYTES:,} bytes")
        data, lines = data + more, lines + more.count(b"\n")
    return data
