"""A place for unfinished work, found again after a kill.

Idea: a long step keeps what it has finished in a directory named after everything its result depends on
(input files, options, code). A killed process leaves the directory behind, and the same command picks it up.
Success or an error removes it. One process at a time owns it. A second one that asks for the same work gets a
place of its own.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import parent_process
from pathlib import Path
from threading import Thread

import xxhash

from penstock.linear_road.errors import InputError
from penstock.linear_road.rows.inputs import Input

KEPT_DAYS = 3
"""Work that nobody came back for is removed after so many days."""
_OURS = re.compile(r"[a-z]+-[0-9a-f]{16}(-\d+)?\.lock")
"""The lock of a place: its kind, its key as `key_of` gives it, and a number if it is not the first."""
LONG_BYTES = {"csv": 64 << 20, "parquet": 10 << 20}
"""From this size on reading an input is a long step, worth the cost of keeping half-done work."""


def is_long(source: Input) -> bool:
    """Whether working through an input takes more than a few seconds."""
    return sum(file.stat().st_size for file in source.files) >= LONG_BYTES[source.format]


def key_of(files: Sequence[Path], *more: object) -> str:
    """A name for work on these files: a hash of paths, sizes, modification times and other dependencies.

    >>> file = Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = file.write_text("0")
    >>> before = key_of([file])
    >>> _ = file.write_text("00")
    >>> before == key_of([file])
    False
    """
    digest = xxhash.xxh3_64()
    for file in files:
        # Size and time of change stand for the content: hashing gigabytes would take too long.
        facts = file.stat()
        digest.update(f"{file.resolve()}\0{facts.st_size}\0{facts.st_mtime_ns}\n".encode())
    for item in more:
        digest.update(item if isinstance(item, bytes) else f"{item}\n".encode())
    return digest.hexdigest()


def code_of(package: Path) -> bytes:
    """The bytes of a package's code: unfinished work of other code cannot be trusted."""
    return b"".join(file.read_bytes() for file in sorted(package.rglob("*.py")))


@contextmanager
def work_directory(kind: str, key: str, where: Path | None = None) -> Iterator[Path]:
    """The directory for this work, with what an earlier process left there.

    It is removed at the end, but kept on a kill or Ctrl-C.
    """
    base = _base(where)
    _sweep(base)
    path, lock, held = _owned(base, f"{kind}-{key}")
    try:
        path.mkdir(exist_ok=True)
        yield path
    # Ctrl-C is no failure: what is done stays for the next call, as after a kill.
    except KeyboardInterrupt:
        raise
    except BaseException:
        _remove(path, lock)
        raise
    else:
        _remove(path, lock)
    finally:
        os.close(held)


def _owned(base: Path, name: str) -> tuple[Path, Path, int]:
    """The first place of this name that nobody owns, its lock file, and the lock's descriptor."""
    for number in itertools.count():
        # Each place has a lock beside it, so that those of killed processes can be swept away.
        path = base / (f"{name}-{number}" if number else name)
        lock = base / f"{path.name}.lock"
        if (held := _lock(lock)) is not None:
            return path, lock, held
    raise AssertionError


def _base(where: Path | None) -> Path:
    """The parent directory of all work. Only we may access it, because we trust its contents."""
    base = where or Path(tempfile.gettempdir()) / f"penstock-{os.getuid()}"
    try:
        base.mkdir(mode=0o700, exist_ok=True)
        # Not `stat`: a link that somebody else has put there must not be followed.
        facts = base.lstat()
    except OSError as error:
        raise InputError(f"the work directory {base} cannot be made: {error.strerror}") from error
    if where is None and (not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid()):
        raise InputError(
            f"the work directory {base} belongs to somebody else", hint="name another one with --work"
        )
    return base


def _lock(path: Path) -> int | None:
    """Own a lock file until its descriptor is closed; None if another process owns it."""
    while True:
        held = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(held)
            return None
        # Its last owner may have removed the file between our opening and locking it.
        there = _stat(path)
        if there is not None and os.fstat(held).st_ino == there.st_ino:
            return held
        os.close(held)


def _stat(path: Path) -> os.stat_result | None:
    """Size and times of a file; None if there is none, since another process may remove it at any moment."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _remove(path: Path, lock: Path) -> None:
    """Remove a place whose lock we hold."""
    shutil.rmtree(path, ignore_errors=True)
    # While the lock is still held: whoever opened the file before finds in `_lock` that it is gone.
    lock.unlink(missing_ok=True)


def _sweep(base: Path) -> None:
    """Remove work that was abandoned long ago and that no process owns."""
    for lock in base.glob("*.lock"):
        # --work may name a directory with files of others, and theirs may be called .lock too.
        if not _OURS.fullmatch(lock.name):
            continue
        facts = _stat(lock)
        if facts is None or facts.st_mtime > time.time() - KEPT_DAYS * 86_400:
            continue
        # Old is not abandoned: a process may work for days. Only a lock that we get shows that nobody does.
        held = _lock(lock)
        if held is not None:
            _remove(lock.with_suffix(""), lock)
            os.close(held)


def end_with_parent() -> None:
    """In a worker process: exit as soon as the parent is gone, even if it was killed."""
    parent = parent_process()
    if parent is not None:
        Thread(target=_wait_and_end, args=(parent.join,), daemon=True).start()


def _wait_and_end(wait: Callable[[], None]) -> None:
    wait()
    os._exit(1)
