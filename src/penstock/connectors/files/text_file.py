"""The text of a file, plain or compressed, to be read at any place.

The end of the name says how a file is compressed. An archive is unpacked once as a whole before any of it is
used: only then is it known to be sound.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol
from zlib import crc32

import pyarrow as pa

from penstock.connectors.paths import is_resource_shortage, native_file

_BLOCK = 4 << 20
_KEPT = 64 << 20  # the unpacked text of a small archive is kept in memory
_LARGE, _RATIO = 1 << 30, 200
_CODECS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}


class BrokenArchiveError(Exception):
    """An archive that cannot be unpacked; the text says why."""


class TextFile(Protocol):
    """Text that can be read at any place."""

    size: int

    def read(self, start: int, count: int) -> bytes:
        """So many bytes from `start`, fewer at the end."""


def codec_of(path: str) -> str:
    """How a file is compressed, by the end of its name; "" if it is not.

    >>> codec_of("in/a.csv.gz"), codec_of("in/a.csv")
    ('gzip', '')
    """
    return _CODECS.get(os.path.splitext(path)[1].lower(), "")  # noqa: PTH122 - the path may be any text


@contextmanager
def plain_text(path: str) -> Iterator[PlainText]:
    """Open a file that is not compressed."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield PlainText(descriptor)
    finally:
        os.close(descriptor)


class PlainText:
    """An open file."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.stat = os.fstat(descriptor)
        self.size = self.stat.st_size

    def read(self, start: int, count: int) -> bytes:
        """So many bytes from `start`, fewer at the end."""
        return os.pread(self._descriptor, count, start)


class Archive:
    """An archive that is sound. Reading goes forward; going back begins anew.

    `size` is that of the unpacked text.
    """

    def __init__(self, path: str) -> None:
        self._path, self._codec = path, codec_of(path)
        self._kept: bytes | None = None
        self.size = self._verify()
        self._stream: pa.CompressedInputStream | None = None
        self._at, self._buffer = 0, b""  # the place of the buffer, which begins where the last read did

    def read(self, start: int, count: int) -> bytes:
        """So many bytes of the unpacked text from `start`, fewer at the end."""
        if self._kept is not None:
            return self._kept[start : start + count]
        if self._stream is None or start < self._at:
            self._stream, self._at, self._buffer = _unpacking(self._path, self._codec), 0, b""
        while self._at + len(self._buffer) < start + count:
            block = self._stream.read(_BLOCK)
            if not block:
                break
            skipped = max(0, min(start - self._at, len(self._buffer)))
            self._at, self._buffer = self._at + skipped, self._buffer[skipped:] + block
        skipped = min(start - self._at, len(self._buffer))
        self._at, self._buffer = self._at + skipped, self._buffer[skipped:]
        return self._buffer[:count]

    def _verify(self) -> int:
        """Unpack everything once; the size of the text."""
        most = max(_LARGE, _RATIO * os.stat(self._path).st_size)  # noqa: PTH116 - the path may be any text
        size = 0
        kept: list[bytes] = []
        try:
            stream = _unpacking(self._path, self._codec)
            while block := stream.read(_BLOCK):
                size += len(block)
                kept = [*kept, block] if size <= _KEPT else []
                if size > most:
                    raise BrokenArchiveError(
                        f"it unpacks to more than {most:,} bytes, {_RATIO} times its size"
                    )
        except (pa.ArrowInvalid, OSError) as error:
            if isinstance(error, FileNotFoundError | PermissionError) or is_resource_shortage(error):
                raise
            raise BrokenArchiveError(f"not a sound {self._codec} archive: {error}") from None
        if size <= _KEPT:
            self._kept = b"".join(kept)
        return size


def _unpacking(path: str, codec: str) -> pa.CompressedInputStream:
    return pa.CompressedInputStream(native_file(path), codec)


def checksum_of(text: TextFile, end: int) -> int:
    """The checksum of the text up to `end`."""
    crc, at = 0, 0
    while at < end:
        block = text.read(at, min(_BLOCK, end - at))
        if not block:
            break
        crc, at = crc32(block, crc), at + len(block)
    return crc
