"""CSV and JSON lines: files are cut into byte ranges at line ends."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import numpy as np

from penstock.connectors.contract import Decoded, Input, Location, Position, Slice, Taken
from penstock.connectors.files.csv_decode import decode_csv
from penstock.connectors.files.file_log import FileLog
from penstock.connectors.files.json_decode import decode_json
from penstock.connectors.lines import count_lines
from penstock.connectors.tables import first_seq, location_in
from penstock.model.boxes import Source
from penstock.model.formats.files import Csv, Files

_BLOCK = 4 << 20
MAX_SLICE_BYTES = 4 << 20
"""Small enough that a large train is read by all cores."""
_BOM = b"\xef\xbb\xbf"
_NEWLINE = 10


@dataclass(frozen=True)
class TextPosition(Position):
    """The next file to read, and the byte and line in it."""

    file: int = 0
    byte: int = 0
    line: int = 0


@dataclass(frozen=True)
class ByteRange(Slice):
    """Whole lines of a file.

    `line` is the number of the first. The first `header` lines are not rows.
    """

    path: str
    file: int
    start: int
    end: int
    line: int
    header: int = 0

    def read(self) -> bytes:
        with open(self.path, "rb") as file:  # noqa: PTH123 - the path may be any file system's
            file.seek(self.start)
            return file.read(self.end - self.start)

    def decode(self, source: Source, data: bytes | memoryview) -> Decoded:
        assert isinstance(source.format, Files)
        decode = decode_csv if isinstance(source.format, Csv) else decode_json
        first = first_seq(self.file, self.line + self.header)
        return decode(source.schema, source.format.options, self._rows(data), first)

    def offered(self, source: Source, data: bytes | memoryview) -> int:
        assert isinstance(source.format, Files)
        options = dict(source.format.options) if isinstance(source.format, Csv) else {}
        return count_lines(self._rows(data), options.get("comment", "").encode())

    def _rows(self, data: bytes | memoryview) -> bytes:
        """The text without byte order mark and header."""
        text = bytes(data)
        if self.line == 0:
            text = text.removeprefix(_BOM)
        for _ in range(self.header):
            text = text.partition(b"\n")[2]
        return text

    def location(self, seq: int) -> Location | None:
        return location_in(self.path, self.file, seq)

    def weight(self) -> int:
        return self.end - self.start


class TextFiles(Input[TextPosition]):
    """Cuts text files into byte ranges."""

    def __init__(self, source: Source, directory: Path) -> None:
        assert isinstance(source.format, Files)
        self._log = FileLog(source.format.path, directory)
        options = dict(source.format.options) if isinstance(source.format, Csv) else {}
        self._header = options.get("header", "false") == "true"
        self._comment = options.get("comment", "").encode()

    def take(self, position: TextPosition | None, limit: int) -> Taken:
        at = position or TextPosition()
        if at.file >= len(self._log.known):
            self._log.discover()
        slices: list[ByteRange] = []
        left = limit
        while left > 0 and at.file < len(self._log.known):
            piece, lines, at = self._cut(at, left)
            if piece is not None:
                slices.append(piece)
                left -= lines
        more = at.file < len(self._log.known)
        arrived = self._log.arrived(piece.file for piece in slices)
        return Taken(slices, at, limit - left, more=more, arrived=arrived)

    def _cut(self, at: TextPosition, limit: int) -> tuple[ByteRange | None, int, TextPosition]:
        """The next range, its number of lines, and the position after it."""
        file = self._log.known[at.file]
        path = Path(file.path)
        header = self._header_lines(path) if self._header and at.byte == 0 else 0
        end, lines = cut_lines(path, at.byte, file.size, max(limit, header))
        piece = ByteRange(file.path, at.file, at.byte, end, at.line, header) if end > at.byte else None
        behind = TextPosition(at.file, end, at.line + lines)
        return piece, lines, TextPosition(at.file + 1) if end >= file.size else behind

    def _header_lines(self, path: Path) -> int:
        """How many lines the header takes, including comments before it."""
        if not self._comment:
            return 1
        with path.open("rb") as file:
            comments = takewhile(lambda line: line.startswith(self._comment), file)
            return sum(1 for _ in comments) + 1


def cut_lines(path: Path, start: int, size: int, limit: int) -> tuple[int, int]:
    """Find the end of a byte range of at most `limit` lines from `start`, and its number of lines."""
    at, lines, last_end = start, 0, start
    with path.open("rb") as file:
        file.seek(start)
        while at < size and at - start < MAX_SLICE_BYTES:
            block = file.read(min(_BLOCK, size - at))
            if not block:
                break
            ends = np.flatnonzero(np.frombuffer(block, np.uint8) == _NEWLINE)
            if lines + len(ends) >= limit:
                return at + int(ends[limit - lines - 1]) + 1, limit
            if len(ends):
                last_end = at + int(ends[-1]) + 1
            lines, at = lines + len(ends), at + len(block)
    if at >= size:
        # The last line may lack its end.
        return size, lines + (0 if _ends_with_newline(path, size) else 1)
    # Stop at the last line end seen. A single line longer than a slice is taken whole.
    return (last_end, lines) if lines else _one_long_line(path, start, size)


def _ends_with_newline(path: Path, size: int) -> bool:
    with path.open("rb") as file:
        file.seek(max(0, size - 1))
        return size == 0 or file.read(1) == b"\n"


def _one_long_line(path: Path, start: int, size: int) -> tuple[int, int]:
    with path.open("rb") as file:
        file.seek(start)
        return min(size, start + len(file.readline())), 1
