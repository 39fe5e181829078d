"""Files that are either whole or absent; anything else is detected.

A file is written under a temporary name, flushed to disk and renamed; then its directory is flushed. A
process killed at any moment leaves the old file, the new one, or a `.tmp` that no reader looks at. Records
carry a checksum, so a file torn by a disk or a careless copy is refused.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.store.errors import CorruptFileError, MissingFileError

TEMPORARY = ".tmp"
_counter = itertools.count()


def checksum(data: bytes | memoryview) -> int:
    """CRC-32 of the bytes.

    >>> checksum(b"123456789")  # the check value of CRC-32
    3421780262
    """
    return zlib.crc32(data)


@contextmanager
def whole_file(path: Path, *, sync: bool = True, sync_parent: bool = True) -> Iterator[Path]:
    """Yield a temporary path to write to. It becomes `path` if the block succeeds and vanishes if it fails.

    `sync=False` skips the flush, for files that can be rebuilt. `sync_parent=False` is for writing several
    files into one directory, which the caller then flushes once with `sync_directory`.

    >>> import tempfile
    >>> answers = Path(tempfile.mkdtemp()) / "answers.csv"
    >>> with whole_file(answers) as aside:
    ...     _ = aside.write_text("0,1")
    ...     answers.exists()
    False
    >>> answers.read_text()
    '0,1'
    """
    # Use pid, thread and counter: orphans of a killed driver may be writing the same name at the same time.
    aside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.{next(_counter)}{TEMPORARY}")
    try:
        yield aside
        if sync:
            sync_file(aside)
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    if sync and sync_parent:
        sync_directory(path.parent)


def write_bytes(path: Path, data: bytes | memoryview, *, sync: bool = True, sync_parent: bool = True) -> None:
    """Write a whole file or nothing; the options are those of `whole_file`."""
    with whole_file(path, sync=sync, sync_parent=sync_parent) as aside:
        aside.write_bytes(data)


def write_text(path: Path, text: str, *, sync: bool = True) -> None:
    """Write a whole text file or nothing."""
    write_bytes(path, text.encode(), sync=sync)


def sync_file(path: Path) -> None:
    """Flush a file that was written by other means."""
    _flush(path, os.O_RDONLY)


def sync_directory(path: Path) -> None:
    """Flush a directory, so that the names in it survive a power cut."""
    _flush(path, os.O_RDONLY | os.O_DIRECTORY)


def _flush(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_length(path: Path, size: int) -> None:
    """Refuse a file that is missing or differs from its committed length, without reading it."""
    try:
        length = path.stat().st_size
    except FileNotFoundError:
        raise MissingFileError(f"{path}: the file is missing", expected=f"{size} bytes") from None
    if length != size:
        raise CorruptFileError(f"{path}: the file is torn", found=f"{length} bytes", expected=f"{size} bytes")


def read_checked(path: Path, size: int, crc: int) -> bytes:
    """Read a file of known length and checksum; refuse anything else."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise MissingFileError(f"{path}: the file is missing", expected=f"{size} bytes") from None
    if len(data) != size:
        raise CorruptFileError(
            f"{path}: the file is torn", found=f"{len(data)} bytes", expected=f"{size} bytes"
        )
    if checksum(data) != crc:
        raise CorruptFileError(
            f"{path}: the file's content has changed",
            found=f"checksum {checksum(data):08x}",
            expected=f"checksum {crc:08x}",
        )
    return data


def write_record(path: Path, body: Mapping[str, Any], *, sync: bool = True) -> None:
    """Write a small JSON record with its own length and checksum in front.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "position.json"
    >>> write_record(place, {"train": 7})
    >>> read_record(place)
    {'train': 7}
    """
    text = json.dumps(body, separators=(",", ":")).encode()
    write_bytes(path, b"%08x %d\n" % (checksum(text), len(text)) + text + b"\n", sync=sync)


def read_record(path: Path) -> dict[str, Any]:
    """Read what `write_record` wrote.

    A torn or changed file raises CorruptFileError, a missing one FileNotFoundError.
    """
    head, _, rest = path.read_bytes().partition(b"\n")
    try:
        crc, size = head.split(b" ")
        wanted, length = int(crc, 16), int(size)
    except ValueError:
        raise CorruptFileError(f"{path}: the record has no valid head", found=repr(head[:40])) from None
    text = rest.removesuffix(b"\n")
    if len(rest) != length + 1 or checksum(text) != wanted:
        raise CorruptFileError(
            f"{path}: the record is torn or changed",
            found=f"{len(text)} bytes, checksum {checksum(text):08x}",
            expected=f"{length} bytes, checksum {wanted:08x}",
            hint="restore the file from a copy of the checkpoint",
        )
    body: dict[str, Any] = json.loads(text)
    return body


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold a lock among threads and processes; yields False if it is taken and `wait` is False."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(descriptor)  # closing releases the lock, also when the process is killed


def remove_litter(directory: Path, *, seconds: float = 600.0) -> int:
    """Delete temporary files of killed processes.

    Only files too old to be still written are deleted.
    """
    removed = 0
    for path in directory.glob(f".*{TEMPORARY}"):
        try:
            if time.time() - path.stat().st_mtime > seconds:
                path.unlink()
                removed += 1
        except FileNotFoundError:
            continue
    return removed
