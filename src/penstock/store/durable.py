"""Files that are either whole or absent; anything else is detected.

A file is written under a temporary name and renamed. A process killed at any moment leaves the old file, the
new one, or a `.tmp` that no reader looks at. With `sync`, the file is flushed to disk before it is renamed,
and its directory afterwards; then a power cut leaves no more choice than a kill. Records carry a checksum, so
a file torn by a disk or a careless copy is refused.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import socket
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, TextIO, get_args

from penstock.model.errors import PenstockError
from penstock.model.json_types import JsonMapping, JsonObject
from penstock.store.errors import CorruptFileError, MissingFileError, StoreError

TEMPORARY = ".tmp"


def umask_of(text: str | None) -> int:
    """The permissions that files and folders do not get, from PENSTOCK_UMASK; only their owner by default.

    >>> oct(umask_of("022")), oct(umask_of(None)), oct(umask_of("rw"))
    ('0o22', '0o77', '0o77')
    """
    return int(text, 8) if text and set(text) <= set("01234567") and len(text) <= _DIGITS else 0o077


_DIGITS = 4
UMASK = umask_of(os.environ.get("PENSTOCK_UMASK"))
FILE_MODE, FOLDER_MODE = 0o666 & ~UMASK, 0o777 & ~UMASK
_counter = itertools.count()
_QUIET_STEP = 4 << 20  # bytes that background work writes at a time
Piece = bytes | memoryview
_HOST = socket.gethostname()[:32].replace("/", "_")

Durability = Literal["process", "power"]
"""What a checkpoint survives: the death of a process, or a power cut as well (every record is flushed)."""


def known_durability(text: str) -> Durability:
    """Check the name of a durability.

    >>> known_durability("power")
    'power'
    """
    for durability in get_args(Durability):
        if text == durability:
            return durability  # type: ignore[no-any-return]  # get_args says Any
    raise PenstockError(f"durability '{text}' is not known", expected="'process' or 'power'")


class FileLayer:
    """The calls that decide what a crash leaves. Tests put a layer here that loses or refuses writes."""

    def write(self, path: Path, data: bytes | memoryview) -> None:
        with open_file(path) as file:
            file.write(data)

    def write_pieces(self, path: Path, pieces: Iterable[Piece], *, quietly: bool = False) -> None:
        with open_file(path) as file:
            for piece in pieces:
                _write_whole(file.fileno(), memoryview(piece), quietly=quietly)

    def replace(self, path: Path, target: Path) -> None:
        path.replace(target)

    def link(self, path: Path, target: Path) -> None:
        try:
            os.link(path, target)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP):
                raise
            raise StoreError(
                f"{target}: this file system has no hard links",
                found=str(error.strerror),
                hint="put checkpoints and outputs on another file system",
            ) from None

    def sync_file(self, path: Path) -> None:
        _flush(path, os.O_RDONLY)

    def sync_directory(self, path: Path) -> None:
        _flush(path, os.O_RDONLY | os.O_DIRECTORY)


layer = FileLayer()


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
    aside = _aside(path)
    try:
        os.close(opener(str(aside), os.O_WRONLY | os.O_CREAT))  # whoever writes it keeps its mode
        yield aside
        if sync:
            sync_file(aside)
        layer.replace(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    if sync and sync_parent:
        sync_directory(path.parent)


def write_bytes(
    path: Path,
    data: bytes | memoryview,
    *,
    sync: bool = True,
    sync_parent: bool = True,
) -> None:
    """Write a whole file or nothing. See `whole_file` for the options."""
    with whole_file(path, sync=sync, sync_parent=sync_parent) as aside:
        layer.write(aside, data)


def write_pieces(path: Path, pieces: Iterable[Piece], *, sync: bool, quietly: bool = False) -> None:
    """Write a whole file or nothing, from pieces that need not be copied together first.

    `quietly`: the disk begins at once with what was written. Then no large write is left over that others
    would have to wait for. For background work.
    """
    with whole_file(path, sync=sync) as aside:
        layer.write_pieces(aside, pieces, quietly=quietly)


def _write_whole(file: int, data: memoryview, *, quietly: bool) -> None:
    """Write all bytes: one call may write fewer."""
    step = _QUIET_STEP if quietly else len(data)
    while len(data):
        written = os.write(file, data[:step])
        data = data[written:]
        if quietly and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)


def create(path: Path, data: bytes, *, sync: bool = True) -> bool:
    """Write a whole file unless there is one of this name; False: there is, with another content.

    Of several processes, on any hosts, exactly one succeeds.

    >>> import tempfile
    >>> epoch = Path(tempfile.mkdtemp()) / "epoch"
    >>> create(epoch, b"mine"), create(epoch, b"yours"), epoch.read_bytes()
    (True, False, b'mine')
    """
    aside = _aside(path)
    try:
        layer.write(aside, data)
        if sync:
            sync_file(aside)
        try:
            layer.link(aside, path)
        except FileExistsError:
            # A network file system may repeat a call that has succeeded, and who could not flush the
            # name tries again.
            if path.read_bytes() != data:
                return False
    finally:
        aside.unlink(missing_ok=True)
    if sync:
        sync_directory(path.parent)
    return True


def _aside(path: Path) -> Path:
    # Use host, pid, thread and counter: others may be writing the same name at the same time.
    own = f"{_HOST}.{os.getpid()}.{threading.get_ident()}.{next(_counter)}"
    return path.with_name(f".{path.name}.{own}{TEMPORARY}")


def write_text(path: Path, text: str, *, sync: bool = True) -> None:
    """Write a whole text file or nothing."""
    write_bytes(path, text.encode(), sync=sync)


def sync_file(path: Path) -> None:
    """Flush a file that was written by other means."""
    layer.sync_file(path)


def sync_directory(path: Path) -> None:
    """Flush a directory, so that the names in it survive a power cut."""
    layer.sync_directory(path)


def opener(path: str, flags: int) -> int:
    """For `open(..., opener=)`: a new file that only its owner may read, unless PENSTOCK_UMASK says more."""
    return os.open(path, flags, FILE_MODE)


def open_file(path: Path, mode: Literal["wb", "ab"] = "wb") -> BinaryIO:
    """Open a file for writing. A new one gets `FILE_MODE`, one that is there keeps its mode."""
    return open(path, mode, opener=opener)


def open_text(path: Path, mode: Literal["w", "a"] = "w") -> TextIO:
    """The same for a text."""
    return open(path, mode, opener=opener, encoding="utf-8")


def make_directory(path: Path, *, sync: bool = False) -> None:
    """Create a directory and those above it, which only their owner may enter.

    One that is there already keeps its mode. `sync`: their names survive a power cut.
    """
    missing = [parent for parent in (path, *path.parents) if not parent.exists()]
    for parent in reversed(missing):
        parent.mkdir(mode=FOLDER_MODE, exist_ok=True)
    path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)  # somebody may have deleted one meanwhile
    for parent in missing if sync else ():
        sync_directory(parent.parent)


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


def write_record(path: Path, body: JsonMapping, *, sync: bool = True) -> None:
    """Write a small JSON record with its length and checksum in front.

    >>> import tempfile
    >>> position = Path(tempfile.mkdtemp()) / "position.json"
    >>> write_record(position, {"train": 7})
    >>> read_record(position)
    {'train': 7}
    """
    write_bytes(path, record_bytes(path.name, body), sync=sync)


def create_record(path: Path, body: JsonMapping, *, sync: bool = True) -> bool:
    """Write a record unless there is one of this name; False: there is, with another content."""
    return create(path, record_bytes(path.name, body), sync=sync)


def record_bytes(name: str, body: JsonMapping) -> bytes:
    """A record as it stands in the file of this name.

    The checksum covers the name, so a copy under another name is refused.
    """
    text = json.dumps(body, separators=(",", ":")).encode()
    return b"%08x %d\n" % (_record_checksum(name, text), len(text)) + text + b"\n"


def _record_checksum(name: str, text: bytes) -> int:
    return checksum(name.encode() + b"\n" + text)


def read_record(path: Path) -> JsonObject:
    """Read what `write_record` wrote.

    A torn or changed file raises CorruptFileError, a missing one FileNotFoundError.
    """
    head, _, rest = path.read_bytes().partition(b"\n")
    try:
        code, size = head.split(b" ")
        wanted, length = int(code, 16), int(size)
    except ValueError:
        raise CorruptFileError(f"{path}: the record has no valid head", found=repr(head[:40])) from None
    text = rest.removesuffix(b"\n")
    crc = _record_checksum(path.name, text)
    if len(rest) != length + 1 or crc != wanted:
        raise CorruptFileError(
            f"{path}: the record is torn or changed, or was written under another name",
            found=f"{len(text)} bytes, checksum {crc:08x}",
            expected=f"{length} bytes, checksum {wanted:08x}",
            hint="restore the file from a copy of the checkpoint",
        )
    body: JsonObject = json.loads(text)
    return body


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold a lock among threads and processes; yields False if it is taken and `wait` is False.

    `locks.briefly_locked` is for work that must not wait for a process that was suspended.
    """
    make_directory(path.parent)
    descriptor = opener(str(path), os.O_RDWR | os.O_CREAT)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(descriptor)  # closing releases the lock, also when the process is killed


_litter: dict[Path, float] = {}
"""Temporary files, and when this process first saw each, on the monotonic clock."""


def remove_litter(directory: Path, *, seconds: float = 600.0) -> int:
    """Delete temporary files of killed processes.

    Only files that this process has known for so many seconds are deleted: nobody can still be writing them.
    Their own times say nothing, because the clock may have been set.
    """
    removed, now = 0, time.monotonic()
    present = set(directory.glob(f".*{TEMPORARY}"))
    for path in [path for path in _litter if path.parent == directory and path not in present]:
        del _litter[path]
    for path in present:
        if now - _litter.setdefault(path, now) > seconds:
            path.unlink(missing_ok=True)
            removed += 1
    return removed
