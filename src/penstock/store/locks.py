"""A lock that can be taken from a suspended process: after 20 seconds with one holder, others go on.

The kernel frees the locks of a process that was killed, but not those of one that was suspended. A reader
stopped by Ctrl-Z, or an owner that was taken over while suspended, would hold up a network for as long. So
after a while a new file takes the place of the one that is locked. What is done under such a lock must do no
harm if the old holder wakes up in the middle of it.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.store import durable

_LOG = logging.getLogger(__name__)
PATIENCE = 20.0
"""Seconds to wait for work that takes milliseconds, on a busy machine perhaps a second."""
_LOOK = 0.01  # seconds between two looks
_MARK = 16  # bytes by which a holder is told from the one before


StillHeld = Callable[[], bool]
"""Whether nobody has taken the lock away. Ask right before a step that must not be done by two."""


@contextmanager
def briefly_locked(path: Path, *, patience: float | None = None) -> Iterator[StillHeld]:
    """Hold a lock among threads and processes; takes it from a holder that keeps it for so many seconds."""
    durable.make_directory(path.parent)
    descriptor = _obtained(path, PATIENCE if patience is None else patience)
    try:
        os.pwrite(descriptor, os.urandom(_MARK), 0)
        yield lambda: _is_at(path, descriptor)
    finally:
        os.close(descriptor)  # closing releases the lock, also when the process is killed


def _obtained(path: Path, patience: float) -> int:
    """Looks are counted, not seconds: who was suspended itself has not waited for anybody meanwhile."""
    descriptor, looks, seen = _opened(path), 0, b""
    try:
        while not _locks(descriptor) or not _is_at(path, descriptor):
            if not _is_at(path, descriptor):
                stale, descriptor, looks = descriptor, _opened(path), 0
                os.close(stale)
                continue
            holder = os.pread(descriptor, _MARK, 0)
            looks, seen = (looks + 1 if holder == seen else 0), holder
            if looks * _LOOK >= patience:
                _take_away(path, descriptor)
            time.sleep(_LOOK)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _opened(path: Path) -> int:
    return durable.opener(str(path), os.O_RDWR | os.O_CREAT)


def _locks(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether the open file is still the one under this name."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    return False


def _take_away(path: Path, descriptor: int) -> None:
    """Remove the file that was locked for too long. One at a time: the next file is another one's."""
    with durable.locked(path.with_name(f"{path.name}.taken"), wait=False) as mine:
        if mine and _is_at(path, descriptor):
            _LOG.warning("%s: its holder is suspended, and others go on without it", path)
            path.unlink(missing_ok=True)
