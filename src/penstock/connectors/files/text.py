"""CSV and JSON lines: files are cut into byte ranges at line ends."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from zlib import crc32

from penstock.connectors.contract import (
    Decoded,
    Input,
    Location,
    Position,
    RefusedInput,
    Slice,
    SliceChangedError,
    SliceGoneError,
    Stays,
    Taken,
    Thinned,
    TicketPart,
    Waiting,
)
from penstock.connectors.files.csv_decode import decode_csv
from penstock.connectors.files.discovery.backlog import Backlog
from penstock.connectors.files.discovery.settling import Signature
from penstock.connectors.files.discovery.source_files import SourceFiles
from penstock.connectors.files.header import Header, WrongHeaderError, read_header
from penstock.connectors.files.json_decode import decode_json
from penstock.connectors.files.line_cut import CutLimit, UncutTextError, count_rows, cut_piece, slice_bytes
from penstock.connectors.files.text_file import (
    Archive,
    BrokenArchiveError,
    PlainText,
    TextFile,
    checksum_of,
    codec_of,
    plain_text,
)
from penstock.connectors.line_blocks import thin_lines
from penstock.connectors.lines import count_lines
from penstock.connectors.paths import is_resource_shortage
from penstock.connectors.tables import first_seq, location_in
from penstock.model.boxes import Source
from penstock.model.formats.files import Csv, Files
from penstock.store.durable import make_directory, write_bytes
from penstock.store.file_names import numbered_part

_LETTERS = 1000  # at most so many changed files are reported in a train
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class TextPosition(Position):
    """The next file to read, and the byte and line in it.

    `crc`: the checksum of what was read of that file. `reported`: how many changed files were reported.
    """

    file: int = 0
    byte: int = 0
    line: int = 0
    crc: int = 0
    reported: int = 0

    def next_file(self) -> TextPosition:
        return TextPosition(self.file + 1, reported=self.reported)


@dataclass(frozen=True)
class ByteRange(Slice):
    """Whole lines of a file.

    `line` is the number of the first. The first `header` lines are not rows. `before` and `crc`: the
    checksums of the file up to the slice and up to its end. `columns`: the file's own, from its header.
    `spool`: where the bytes were put, if the file is an archive.
    """

    path: str
    file: int
    start: int
    end: int
    line: int
    header: int = 0
    rows: int = 0
    before: int = 0
    crc: int | None = None
    columns: Sequence[str] = ()
    spool: str = ""

    def read(self) -> bytes:
        try:
            data = self._bytes()
        except FileNotFoundError:
            raise SliceGoneError(self.path, tuples=self.rows) from None
        except BrokenArchiveError as error:
            raise SliceChangedError(self.path, str(error), tuples=self.rows) from None
        if not self._fits(data):
            reason = "the file was changed after it was seen and before it was read"
            raise SliceChangedError(self.path, reason, tuples=self.rows)
        return data

    def _fits(self, data: bytes) -> bool:
        return len(data) == self.end - self.start and self.crc in (None, crc32(data, self.before))

    def _bytes(self) -> bytes:
        if not codec_of(self.path):
            with plain_text(self.path) as text:
                return text.read(self.start, self.end - self.start)
        if self.spool and Path(self.spool).exists() and self._fits(data := Path(self.spool).read_bytes()):
            return data
        return Archive(self.path).read(self.start, self.end - self.start)

    def decode(self, source: Source, data: bytes | memoryview) -> Decoded:
        return self._decode(source, self._rows(data), first_seq(self.file, self.line + self.header))

    def _decode(self, source: Source, rows: bytes, first: int) -> Decoded:
        assert isinstance(source.format, Files)
        options = source.format.options
        if isinstance(source.format, Csv):
            return decode_csv(source.schema, options, rows, first, self.columns)
        return decode_json(source.schema, options, rows, first)

    def offered(self, source: Source, data: bytes | memoryview) -> int:
        return count_lines(self._rows(data), self._comment(source))

    def thinned(self, source: Source, data: bytes | memoryview, stays: Stays) -> Thinned:
        first, decode = first_seq(self.file, self.line + self.header), partial(self._decode, source)
        return thin_lines(self._rows(data), first, stays, decode, self._comment(source))

    @staticmethod
    def _comment(source: Source) -> bytes:
        """What comments begin with; only CSV has any."""
        options = dict(source.format.options) if isinstance(source.format, Csv) else {}
        return options.get("comment", "").encode()

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


class _FileLostError(Exception):
    """The file cannot be read, or cannot be read on: `reason`, and how many tuples that concerns."""

    def __init__(self, reason: str, tuples: int = 1) -> None:
        super().__init__(reason)
        self.reason, self.tuples = reason, tuples


class _ReadLater(Exception):  # noqa: N818 - no error
    """The file has changed before any of it was read: it comes again as a new file."""


@dataclass
class _Train:
    """A train under construction."""

    at: TextPosition
    left: int
    bytes_left: int
    slices: list[ByteRange] = field(default_factory=list)
    refused: list[RefusedInput] = field(default_factory=list)

    @property
    def open(self) -> bool:
        return self.left > 0 and self.bytes_left > 0 and len(self.refused) < _LETTERS


class TextFiles(Input[TextPosition]):
    """Cuts text files into byte ranges."""

    def __init__(self, source: Source, directory: Path) -> None:
        assert isinstance(source.format, Files)
        self._source, self._options = source, source.format.options
        self._files = SourceFiles(source, directory, self._judge)
        self._log = self._files.log
        given = dict(self._options) if isinstance(source.format, Csv) else {}
        self._has_header = given.get("header", "false") == "true"
        self._comment = given.get("comment", "").encode()
        self._spool = directory / "unpacked"
        self._archive: tuple[int, Archive] | None = None
        self._header: tuple[int, Header] = (-1, Header())
        self._begun = (-1, 0, 0)  # the file that was begun last, its inode and when it changed
        self._backlog = Backlog(self._log)

    def take(self, position: TextPosition | None, limit: int) -> Taken:
        train = _Train(position or TextPosition(), limit, self.max_bytes)
        self._log.check(train.at.file)
        first, start = train.at.file, self._place(train.at)
        self._fill(train)
        if train.at.file > first and not train.slices and not train.refused:
            self._fill(train)  # the files that were known have changed, and come again as new ones
        self._log.flush()
        rows = sum(piece.rows for piece in train.slices)
        self._backlog.read(start, self._place(train.at), rows)
        more = train.at.file < len(self._log.known) or train.at.reported < len(self._log.changes)
        return Taken(
            train.slices,
            train.at,
            rows,
            refused=train.refused,
            more=more,
            waiting=self._files.waiting,
            arrived=self._log.arrived({piece.file for piece in train.slices}),
            arrivals=self._log.arrivals((piece.file, piece.rows) for piece in train.slices),
        )

    def waiting(self, position: TextPosition | None) -> Waiting:
        at = position or TextPosition()
        self._files.look(at.file)
        return self._backlog.waiting(at.file, self._place(at) - self._log.bytes_before(at.file))

    def _place(self, at: TextPosition) -> int:
        """The bytes on disk before a position. Inside an archive, bytes are those of the unpacked text."""
        packed = at.byte and codec_of(self._log.path(at.file))
        return self._backlog.bytes_before(at.file, 0 if packed else at.byte)

    def here(self, piece: TicketPart) -> TicketPart:
        return replace(piece, path=self._log.path(piece.file)) if isinstance(piece, ByteRange) else piece

    def committed(self, position: TextPosition | None) -> None:
        """Delete unpacked text that no train will read again."""
        if position is not None and self._spool.is_dir():
            done = numbered_part(position.file, f"{position.byte:015d}")
            for path in self._spool.iterdir():
                if path.name < done:
                    path.unlink(missing_ok=True)

    def _fill(self, train: _Train) -> None:
        if train.at.file >= len(self._log.known):
            self._files.look(train.at.file)
        self._report(train)
        while train.open and train.at.file < len(self._log.known):
            self._add(train)

    def _report(self, train: _Train) -> None:
        """Dead letters about files that have changed since they were read."""
        reported = train.at.reported
        for change in self._log.changes[reported : reported + _LETTERS]:
            train.refused.append(self._log.letter(change.file, change.reason, change.tuples))
        train.at = replace(train.at, reported=reported + len(train.refused))

    def _add(self, train: _Train) -> None:
        """The next range of the current file, or a dead letter about it."""
        at = train.at
        try:
            with self._opened(at) as text:
                self._cut(train, text)
        except _ReadLater:
            train.at = at.next_file()
        except (_FileLostError, UncutTextError) as error:
            lost = error if isinstance(error, _FileLostError) else _FileLostError(str(error))
            train.refused.append(self._log.letter(at.file, lost.reason, lost.tuples))
            if not at.byte:
                self._log.was_refused(at.file)
            train.at = at.next_file()

    def _cut(self, train: _Train, text: TextFile) -> None:
        at = train.at
        header = self._header_of(at, text)
        size = self._log.known[at.file].signature.size if isinstance(text, PlainText) else text.size
        skipped = header.lines if at.byte == 0 else 0
        most = min(train.bytes_left, slice_bytes(len(train.slices)))
        limit = CutLimit(max(train.left, skipped), most, max(1, skipped))
        piece = cut_piece(text, at.byte, size, limit, before=at.crc, comment=self._comment)
        if train.slices and piece.end - at.byte > train.bytes_left:
            train.bytes_left = 0  # its next line belongs to the next train
            return
        if piece.end > at.byte:
            path, rows = self._log.path(at.file), max(0, piece.rows - (1 if skipped else 0))
            lines = ByteRange(
                path=path,
                file=at.file,
                start=at.byte,
                end=piece.end,
                line=at.line,
                header=skipped,
                rows=rows,
                before=at.crc,
                crc=piece.crc,
            )
            train.slices.append(replace(lines, columns=header.columns, spool=self._spooled(lines, text)))
            train.left, train.bytes_left = train.left - piece.lines, train.bytes_left - piece.end + at.byte
        if piece.end >= size:
            self._log.was_read(at.file, piece.crc)
            train.at = at.next_file()
        else:
            train.at = TextPosition(at.file, piece.end, at.line + piece.lines, piece.crc, at.reported)

    def _spooled(self, piece: ByteRange, text: TextFile) -> str:
        """Where an archive's bytes are put, so that tasks need not unpack it from the beginning."""
        if not isinstance(text, Archive):
            return ""
        path = self._spool / numbered_part(piece.file, f"{piece.start:015d}")
        make_directory(self._spool)
        write_bytes(path, text.read(piece.start, piece.end - piece.start), sync=False)
        return str(path)

    def _header_of(self, at: TextPosition, text: TextFile) -> Header:
        if not self._has_header:
            return Header()
        if self._header[0] != at.file:
            path = self._log.path(at.file)
            try:
                header = read_header(text, path, self._source.schema, self._options)
            except WrongHeaderError as error:
                rows = max(0, count_rows(text, 0, self._comment) - 1)
                raise _FileLostError(str(error), rows) from None
            self._header = at.file, header
        return self._header[1]

    # -- opening a file, if it is still the one that was seen

    @contextmanager
    def _opened(self, at: TextPosition) -> Iterator[TextFile]:
        path = self._log.path(at.file)
        try:
            if codec_of(path):
                yield self._unpacked(at, path)
            else:
                with plain_text(path) as text:
                    self._check(at, text.stat, text)
                    yield text
        except FileNotFoundError:
            raise _FileLostError("the file was deleted before it was read" + _so_far(at)) from None
        except BrokenArchiveError as error:
            raise _FileLostError(f"the file was refused: {error}") from None
        except OSError as error:
            if is_resource_shortage(error):
                raise
            raise _FileLostError(f"the file cannot be read: {error.strerror or error}") from None

    def _unpacked(self, at: TextPosition, path: str) -> Archive:
        if self._archive is None or self._archive[0] != at.file:
            stat = os.stat(path)  # noqa: PTH116 - the path may be any text
            if Signature.of(stat) != self._log.signatures[at.file] and not at.byte:
                self._later(at)
            archive = Archive(path)
            self._check(at, stat, archive)
            self._archive = at.file, archive
        return self._archive[1]

    def _check(self, at: TextPosition, stat: os.stat_result, text: TextFile) -> None:
        """Refuse to read on in another text than the one that was begun."""
        signature, begun = Signature.of(stat), (at.file, stat.st_ino, stat.st_ctime_ns)
        if signature != self._log.signatures[at.file] and not at.byte:
            self._later(at)
        if at.byte and begun != self._begun:
            # Another file may have the same size and time. What was read tells, at the cost of reading it.
            same = isinstance(text, Archive) or signature.size >= self._log.known[at.file].signature.size
            if not same or checksum_of(text, at.byte) != at.crc:
                self._log.has_changed(at.file, signature)
                raise _FileLostError("the file was changed while it was read" + _so_far(at))
        self._begun = begun

    def _later(self, at: TextPosition) -> None:
        name = self._log.known[at.file].name
        if self._log.current.get(name) == at.file:
            self._files.read_anew(name)
        raise _ReadLater

    # -- what has become of a file that was read

    def _judge(self, number: int) -> tuple[str, int]:
        """Whether the file has other content than what was read, and how many tuples are not read."""
        path, read = self._log.path(number), self._log.known[number].signature.size
        before = self._log.signatures[number].size
        try:
            if codec_of(path):
                text: TextFile = Archive(path)
                same = checksum_of(text, text.size) == self._log.content.get(number)
                return ("", 0) if same else (_CHANGED, count_rows(text, 0, self._comment))
            with plain_text(path) as text:
                if checksum_of(text, min(read, text.size)) != self._log.content.get(number):
                    return _CHANGED, count_rows(text, 0, self._comment)
                if text.size <= before:
                    return ("", 0) if text.size == read else (_SHORTER, 1)
                return _grew(before, text.size), count_rows(text, before, self._comment)
        except (OSError, BrokenArchiveError, UncutTextError) as error:
            if is_resource_shortage(error):
                raise
            return _CHANGED, 1


_CHANGED = "the file was changed after it was read; what it holds now is not read"
_SHORTER = "the file became shorter after it was read; what was read of it stays"


def _grew(before: int, now: int) -> str:
    return (
        f"the file grew after it was read, from {before:,} to {now:,} bytes; what was added is not read "
        "(tail=True follows a growing file)"
    )


def _so_far(at: TextPosition) -> str:
    return f"; its first {at.line:,} lines were read, the rest is lost" if at.byte else ""
