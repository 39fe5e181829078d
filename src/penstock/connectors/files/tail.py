"""Text files that grow: each is followed line by line, as `tail -F` does.

A line is taken when it is complete. A file that became shorter or was replaced, as when a log is rotated, is
read from its beginning as a new file, and a dead letter says so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from zlib import crc32

from penstock.connectors.contract import Input, Position, RefusedInput, Taken, TicketPart, Waiting
from penstock.connectors.files.discovery.source_files import SourceFiles
from penstock.connectors.files.header import Header, WrongHeaderError, header_has_come, read_header
from penstock.connectors.files.line_cut import MAX_LINE_BYTES, MAX_SLICE_BYTES, CutLimit, cut_piece
from penstock.connectors.files.text import ByteRange, TextFiles
from penstock.connectors.files.text_file import TextFile, codec_of, plain_text
from penstock.connectors.paths import is_resource_shortage
from penstock.model.boxes import Source
from penstock.model.errors import NetworkError
from penstock.model.formats.files import Csv, Files

MOST_FILES = 1000
"""A ticket says how far each file was read, so there must not be too many."""
_MOST_LOOKS = 1024
_MARK = 256  # the last bytes that were read show whether the file is still the same


def text_input(source: Source, directory: Path) -> TextFiles | TailedFiles:
    """The input of CSV and JSON files: whole ones, or growing ones if the source says `tail`."""
    assert isinstance(source.format, Files)
    tailed = dict(source.format.options).get("tail", "false") == "true"
    return TailedFiles(source, directory) if tailed else TextFiles(source, directory)


@dataclass(frozen=True)
class TailPosition(Position):
    """How far each file was read: [byte, line, checksum of the bytes before], by the file's number.

    A negative byte: the file is not followed any more.
    """

    files: Sequence[Sequence[int]] = ()


class _FileEnded(Exception):  # noqa: N818 - no error
    """The file cannot be followed any more; the text says why."""


@dataclass
class _Train:
    """A train under construction. `at`: how far each file was read."""

    at: list[tuple[int, int, int]]
    left: int
    bytes_left: int
    slices: list[ByteRange] = field(default_factory=list)
    refused: list[RefusedInput] = field(default_factory=list)
    more: bool = False

    @property
    def full(self) -> bool:
        return self.left <= 0 or self.bytes_left <= 0


@dataclass
class Growth:
    """When bytes came that were not taken yet: each look notes how many there were in all.

    A file that is followed for hours has old and new lines, so the time when it was first seen says nothing.

    >>> growth = Growth()
    >>> growth.look(10.0, 0, 500), growth.look(11.0, 0, 800), growth.since
    (None, None, 10.0)
    >>> growth.look(12.0, 500, 800), growth.since
    (None, 11.0)
    >>> growth.look(13.0, 800, 800), growth.since
    (None, None)
    """

    _looks: list[tuple[float, int]] = field(default_factory=list)

    def look(self, now: float, taken: int, there: int) -> None:
        """Note that so many bytes were taken, and that so many are there in all."""
        self._looks = [look for look in self._looks if taken < look[1] <= there]
        if there > max(taken, self._looks[-1][1] if self._looks else 0):
            self._looks.append((now, there))
        if len(self._looks) > _MOST_LOOKS:
            # Every second one is enough: the oldest stays, and the times between become coarser.
            self._looks = self._looks[::2]

    @property
    def since(self) -> float | None:
        """When the oldest byte was seen that is not taken yet; None if there is none."""
        return self._looks[0][0] if self._looks else None


class TailedFiles(Input[TailPosition]):
    """Follows growing text files by complete lines."""

    def __init__(self, source: Source, directory: Path) -> None:
        assert isinstance(source.format, Files)
        self._source, self._options = source, source.format.options
        self._files = SourceFiles(source, directory, lambda _: ("", 0), lambda _: True)
        self._log = self._files.log
        given = dict(self._options) if isinstance(source.format, Csv) else {}
        self._has_header = given.get("header", "false") == "true"
        self._comment = given.get("comment", "").encode()
        self._headers: dict[int, Header] = {}
        self._seen: dict[int, tuple[int, ...]] = {}  # what tells each file from any other, as last seen
        self._read = (0, 0)  # bytes and tuples taken since the start
        self._growth = Growth()

    def take(self, position: TailPosition | None, limit: int) -> Taken:
        read = position.files if position is not None else ()
        self._log.check(len(read))
        self._files.look(0)
        self._check_number()
        new = len(self._log.known) - len(read)
        at = [*((b, line, mark) for b, line, mark in read), *[(0, 0, 0)] * new]
        train = _Train(at, limit, self.max_bytes)
        for number, (byte, _, _) in enumerate(train.at):
            if byte >= 0:
                self._follow(train, number)
        rows = sum(piece.rows for piece in train.slices)
        now = TailPosition(train.at)
        size = sum(piece.end - piece.start for piece in train.slices)
        self._read = self._read[0] + size, self._read[1] + rows
        arrived = self._arrived(train, {number for number, (byte, _, _) in enumerate(read) if byte > 0})
        return Taken(train.slices, now, rows, refused=train.refused, more=train.more, arrived=arrived)

    def _arrived(self, train: _Train, followed: set[int]) -> float | None:
        """When the oldest line came: with its file if that is new, else when a look first found it."""
        files = {piece.file for piece in train.slices}
        came = [self._log.arrived(files - followed)]
        if files & followed:
            came.append(self._growth.since or time.time())
        first = min((each for each in came if each is not None), default=None)
        if files - followed and first is not None:
            # What is left of a new file came with it.
            self._look(first, train.at)
        return first

    def waiting(self, position: TailPosition | None) -> Waiting:
        """Bytes by the sizes of the files; the oldest line is as old as the first look that found it."""
        read = position.files if position is not None else ()
        left = self._look(time.time(), read)
        if not left:
            return Waiting(0, 0)
        size, rows = self._read
        return Waiting(round(left * rows / size) if size else None, left, self._growth.since)

    def _look(self, now: float, read: Sequence[Sequence[int]]) -> int:
        """The bytes beyond what was read, and note when they were there."""
        left = sum(self._unread(number, byte) for number, (byte, _, _) in enumerate(read))
        taken = sum(byte for byte, _, _ in read if byte > 0)
        self._growth.look(now, taken, taken + left)
        return left

    def _unread(self, number: int, byte: int) -> int:
        if byte < 0:
            return 0
        try:
            return max(0, os.stat(self._log.path(number)).st_size - byte)  # noqa: PTH116 - see _added
        except OSError:
            return 0

    def here(self, piece: TicketPart) -> TicketPart:
        return replace(piece, path=self._log.path(piece.file)) if isinstance(piece, ByteRange) else piece

    def _check_number(self) -> None:
        if len(self._log.known) > MOST_FILES:
            raise NetworkError(
                "too many files to follow",
                box=self._source.name,
                where=self._source.where,
                found=f"{len(self._log.known):,} files",
                expected=f"at most {MOST_FILES:,}",
                hint="name the files that grow; leave out tail=True for files that are whole",
            )

    def _follow(self, train: _Train, number: int) -> None:
        """What was added to a file, or why it is not followed any more."""
        if train.full:
            train.more = True
            return
        try:
            self._added(train, number)
        except _FileEnded as ended:
            train.refused.append(self._log.letter(number, str(ended)))
            train.at[number] = (-1, *train.at[number][1:])

    def _added(self, train: _Train, number: int) -> None:
        path, (byte, line, mark) = self._log.path(number), train.at[number]
        if codec_of(path):
            raise _FileEnded("an archive cannot be followed; leave out tail=True")
        try:
            stat = os.stat(path)  # noqa: PTH116 - the path may be any text
            if stat.st_size == byte and self._seen.get(number) == _identity(stat):
                return
            with plain_text(path) as text:
                self._check(number, text, byte, line, mark)
                self._cut(train, number, text)
                self._seen[number] = _identity(text.stat)  # not of one that ended: asked again, we tell again
        except FileNotFoundError:
            return  # it may come back under this name: then it is another file
        except OSError as error:
            if is_resource_shortage(error):
                raise
            raise _FileEnded(f"the file cannot be read: {error.strerror or error}") from None

    def _check(self, number: int, text: TextFile, byte: int, line: int, mark: int) -> None:
        """Whether the file still begins with what was read."""
        if text.size >= byte and _mark(text, byte) == mark:
            return
        name = self._log.known[number].name
        if self._log.current.get(name) == number:
            self._files.read_anew(name)
        what = "became shorter" if text.size < byte else "was replaced"
        raise _FileEnded(f"the file {what} after {line:,} lines were read; it is read from its beginning now")

    def _cut(self, train: _Train, number: int, text: TextFile) -> None:
        byte, line, _ = train.at[number]
        end = _complete(text, byte)
        if not byte and self._has_header and not header_has_come(text, self._options, end):
            return  # a writer may have flushed the comments first, or half of the header
        header = self._header(number, text) if end > byte else Header()
        while end > byte and not train.full:
            skipped = header.lines if byte == 0 else 0
            limit = CutLimit(max(train.left, skipped), train.bytes_left, max(1, skipped))
            piece = cut_piece(text, byte, end, limit, comment=self._comment)
            if train.slices and piece.end - byte > train.bytes_left:
                train.bytes_left = 0  # its next line belongs to the next train
                break
            rows = max(0, piece.rows - (1 if skipped else 0))
            path = self._log.path(number)
            lines = ByteRange(
                path=path,
                file=number,
                start=byte,
                end=piece.end,
                line=line,
                header=skipped,
                rows=rows,
                before=0,
                crc=piece.crc,
                columns=header.columns,
            )
            train.slices.append(lines)
            train.left, train.bytes_left = train.left - piece.lines, train.bytes_left - piece.end + byte
            byte, line = piece.end, line + piece.lines
        train.more = train.more or end > byte or _complete(text, end) > end
        train.at[number] = byte, line, _mark(text, byte)

    def _header(self, number: int, text: TextFile) -> Header:
        if not self._has_header:
            return Header()
        if number not in self._headers:
            try:
                path = self._log.path(number)
                self._headers[number] = read_header(text, path, self._source.schema, self._options)
            except WrongHeaderError as error:
                raise _FileEnded(str(error)) from None
        return self._headers[number]


def _complete(text: TextFile, start: int) -> int:
    """The end of the last complete line within a slice's worth of text, or of a longer line."""
    for most in (MAX_SLICE_BYTES, MAX_LINE_BYTES):
        data = text.read(start, min(most, text.size - start)) if text.size > start else b""
        last = data.rfind(b"\n")
        if last >= 0 or len(data) < most:
            return start + last + 1
    raise _FileEnded(f"a line is longer than {MAX_LINE_BYTES:,} bytes")


def _identity(stat: os.stat_result) -> tuple[int, ...]:
    return stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns


def _mark(text: TextFile, byte: int) -> int:
    return crc32(text.read(max(0, byte - _MARK), min(_MARK, byte)))
