"""Who owns a checkpoint: one process at a time, and what happens when it dies, hangs or comes back.

Each start gets an epoch: a numbered record, created exclusively, that its process holds locked while it
lives. A second start is refused. A dead owner is followed at once: its lock is free. Locks may not reach
other hosts, so an owner also counts in a file. Another host watches that counter on its own clock; wall
clocks are never compared.

Taking over does not end the old owner, which may only be suspended. The chain of tickets and commits does
(`engine/contract/train_log.py`): whoever has been followed can add nothing to it.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from penstock.store import durable
from penstock.store.boot import boot_id
from penstock.store.errors import CorruptFileError, FencedError, OwnedError
from penstock.store.file_names import numbers_in

_LOG = logging.getLogger("penstock")
FOLDER = "owners"
_KEPT = 8  # records of earlier owners
_TRIES = 50
_FORK_PATIENCE = 5.0  # seconds

Lock = Literal["held", "free", "unknown"]
Verdict = Literal["follow", "refuse", "watch"]


@dataclass(frozen=True)
class Owner:
    """The process that owns a checkpoint in one epoch."""

    epoch: int
    host: str
    boot: str  # of the host, so that a pid of an earlier boot is no pid
    pid: int
    started: int  # of the process, in ticks since boot: pids are used again
    since: float  # wall time, to be shown and never compared

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.since, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"process {self.pid} on host {self.host}, since {since}"

    def same_host(self, other: Owner) -> bool:
        return (self.host, self.boot) == (other.host, other.boot)


@dataclass(frozen=True)
class SignOfLife:
    """What an owner shows to those who only read: it counts while it lives, and says when it ends.

    `since`: when it came, by the clock of the disk. `alive`: whether its process is there; None if this host
    cannot know.
    """

    epoch: int
    count: bytes
    ended: bool
    since: float
    alive: bool | None = field(default=None, compare=False)  # a process that dies does not count on


def sign_of_life(checkpoint: Path) -> SignOfLife | None:
    """The last owner's; None if the checkpoint never had one."""
    folder = checkpoint / FOLDER
    epoch = max(numbers_in(folder), default=None) if folder.exists() else None
    if epoch is None:
        return None
    ended = _ended(folder, epoch).exists()
    alive = not ended and _is_there(folder, epoch)
    return SignOfLife(epoch, _text(_counter(folder, epoch)), ended, _came(folder, epoch), alive)


def _is_there(folder: Path, epoch: int) -> bool | None:
    lock = _lock_of(folder, epoch)
    if lock == "held":
        return True
    with contextlib.suppress(OSError, CorruptFileError, TypeError):
        owner = Owner(**durable.read_record(_record(folder, epoch)))
        if owner.same_host(_myself(epoch)):
            return lock == "unknown" and _lives(owner)
    return None


@dataclass(frozen=True)
class Timing:
    """How often an owner counts, how long another host waits for it, and by which clock."""

    beat: float = 2.0
    lease: float = 15.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def verdict(owner: Owner, me: Owner, lock: Lock, *, lives: bool) -> Verdict:
    """What a new start does about the last owner. `lives`: its process is there, as far as this host knows.

    >>> old, new = Owner(1, "a", "x", 7, 0, 0.0), Owner(2, "b", "y", 7, 0, 0.0)
    >>> verdict(old, old, "free", lives=True), verdict(old, new, "free", lives=False)
    ('follow', 'watch')
    """
    if lock == "held":
        return "refuse"
    if not owner.same_host(me):
        return "watch"
    return "follow" if lock == "free" or not lives else "refuse"


_HELD: dict[int, Ownership] = {}


def _close_inherited_locks() -> None:
    """A fork of the owner is not the owner. It must not keep the lock when the owner dies, nor release it."""
    while _HELD:
        os.close(_HELD.popitem()[0])


os.register_at_fork(after_in_child=_close_inherited_locks)


class Ownership:
    """The hold of this process on a checkpoint, from `own` to `release`."""

    def __init__(self, folder: Path, owner: Owner, lock: int, *, follows_dead: bool, timing: Timing) -> None:
        self._folder, self.owner, self._lock, self._timing = folder, owner, lock, timing
        self.follows_dead = follows_dead  # the owner before can no longer write
        self._followed_by: Owner | None = None
        self._ended = threading.Event()
        _HELD[lock] = self
        self._beats = threading.Thread(target=self._beat, name="checkpoint-owner", daemon=True)
        self._beats.start()

    @property
    def epoch(self) -> int:
        return self.owner.epoch

    @property
    def followed(self) -> bool:
        """Whether another process has taken over, as far as is known."""
        return self._followed_by is not None

    def check(self) -> None:
        """Refuse to go on if another process has taken over. It costs nothing: the counting thread looks."""
        if self._followed_by is not None:
            raise FencedError(
                f"{self._folder.parent}: {self._followed_by} has taken over this checkpoint; "
                "this process has published nothing since and ends"
            )

    def look(self) -> None:
        """Look for an owner after this one."""
        newest = _newest(self._folder)
        if newest is not None and newest.epoch > self.epoch:
            self._followed_by = newest

    def release(self) -> None:
        """Say that this process writes nothing more, and let the next one in."""
        if self._ended.is_set() or _HELD.get(self._lock) is not self:
            return
        self._ended.set()
        self._beats.join(10)
        with contextlib.suppress(OSError):
            _ended(self._folder, self.epoch).touch(mode=durable.FILE_MODE)
        del _HELD[self._lock]
        os.close(self._lock)

    def _beat(self) -> None:
        count = 0
        while not self._ended.is_set():
            count += 1
            try:
                durable.write_bytes(_counter(self._folder, self.epoch), b"%d" % count, sync=False)
                self.look()
            except (OSError, CorruptFileError) as error:
                # The next beat may succeed, and on one host the lock still holds.
                _LOG.warning("the counter of the checkpoint's owner: %s", error)
            if self.followed:
                return
            self._ended.wait(self._timing.beat)


def own(checkpoint: Path, *, take_over: bool = False, timing: Timing | None = None) -> Ownership:
    """Become the owner of a checkpoint, or refuse and say who is.

    `take_over`: follow even an owner that lives.
    """
    timing = timing or Timing()
    folder = checkpoint / FOLDER
    durable.make_directory(folder)
    for _ in range(_TRIES):
        # The number first, then the last owner: whoever comes in between has taken this number, and the claim
        # fails. In the other order two that start at once could follow the same dead owner.
        me = _myself(_next_epoch(folder))
        before = _newest(folder)
        if before is not None and before.epoch >= me.epoch:
            continue
        dead = before is None or _may_follow(folder, before, me, take_over, timing)
        lock = _claim(folder, me)
        if lock is not None:
            _forget(folder, me.epoch)
            return Ownership(folder, me, lock, follows_dead=dead, timing=timing)
    raise OwnedError(f"{checkpoint}: other processes keep taking this checkpoint", hint="try again")


@contextmanager
def owned(checkpoint: Path, *, take_over: bool = False) -> Iterator[Ownership]:
    """Own a checkpoint, or any folder, while the block runs."""
    ownership = own(checkpoint, take_over=take_over)
    try:
        yield ownership
    finally:
        ownership.release()


def _may_follow(folder: Path, owner: Owner, me: Owner, take_over: bool, timing: Timing) -> bool:
    """Whether the last owner is dead. If it lives, refuse, unless it has let go or we take over."""
    if _ended(folder, owner.epoch).exists():
        return owner.same_host(me) and not _lives(owner)
    decision = _decide(folder, owner, me, timing)
    if decision == "follow":
        return True
    if take_over:
        return False
    if decision == "watch":
        _LOG.warning("%s: owned by %s; waiting for a sign of life", folder.parent, owner)
        if not _counts(_counter(folder, owner.epoch), timing):
            return False  # silent, but it may wake up
    raise OwnedError(
        f"checkpoint {folder.parent} is in use by {owner}",
        hint="stop that process; or take over from it with --take-over (in Python: take_over=True)",
    )


def _decide(folder: Path, owner: Owner, me: Owner, timing: Timing) -> Verdict:
    """The verdict on an owner, once a fork of a dead one has had time to close the lock it inherited.

    A child that has just been forked holds the lock until it runs for the first time. If its parent is killed
    in that moment, the lock outlives its owner by as long as the machine is busy.
    """
    until = timing.clock() + _FORK_PATIENCE
    while True:
        lives = _lives(owner)
        lock = _lock_of(folder, owner.epoch)
        if lock != "held" or lives or not owner.same_host(me) or timing.clock() >= until:
            return verdict(owner, me, lock, lives=lives)
        timing.sleep(0.05)


def _counts(counter: Path, timing: Timing) -> bool:
    """Whether the owner's counter moves within the lease, on our own clock."""
    first, until = _text(counter), timing.clock() + timing.lease
    while timing.clock() < until:
        timing.sleep(timing.beat / 4)
        if _text(counter) != first:
            return True
    return False


def _text(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


# -- the records


def _came(folder: Path, epoch: int) -> float:
    try:
        return _record(folder, epoch).stat().st_mtime
    except FileNotFoundError:
        return 0.0  # deleted since


def _record(folder: Path, epoch: int) -> Path:
    return folder / f"{epoch:06d}.json"


def _counter(folder: Path, epoch: int) -> Path:
    return folder / f"{epoch:06d}.counter"


def _ended(folder: Path, epoch: int) -> Path:
    return folder / f"{epoch:06d}.ended"


def _next_epoch(folder: Path) -> int:
    # Count every trace of an epoch: a record may be lost, but its number must not be used again.
    epochs = [*numbers_in(folder), *numbers_in(folder, "counter"), *numbers_in(folder, "ended")]
    return max(epochs, default=0) + 1


def _newest(folder: Path) -> Owner | None:
    for epoch in sorted(numbers_in(folder), reverse=True):
        try:
            return Owner(**durable.read_record(_record(folder, epoch)))
        except FileNotFoundError:
            continue  # an old one, deleted since
        except (CorruptFileError, TypeError):
            raise CorruptFileError(
                f"{_record(folder, epoch)}: the record of the checkpoint's owner is torn or changed",
                hint="make sure that no process uses the checkpoint, then delete this file",
            ) from None
    return None


def _claim(folder: Path, me: Owner) -> int | None:
    """Create the record of an epoch, locked from the start; None: another process was faster."""
    aside = folder / f".{me.epoch:06d}.{me.host}.{me.pid}.{threading.get_ident()}{durable.TEMPORARY}"
    durable.write_bytes(aside, durable.record_bytes(_record(folder, me.epoch).name, asdict(me)))
    lock = os.open(aside, os.O_RDWR | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # without locks the counter must do
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        durable.layer.link(aside, _record(folder, me.epoch))
        durable.sync_directory(folder)
    except FileExistsError:
        os.close(lock)
        return None
    except BaseException:
        os.close(lock)
        raise
    finally:
        aside.unlink(missing_ok=True)
    newest = _newest(folder)
    if newest is None or newest.epoch != me.epoch:
        os.close(lock)
        return None
    return lock


def _lock_of(folder: Path, epoch: int) -> Lock:
    try:
        descriptor = os.open(_record(folder, epoch), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return "unknown"
    try:
        # A shared lock: two that look at the same time do not take each other for the owner.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return "held"
    except OSError:
        return "unknown"
    finally:
        os.close(descriptor)
    return "free"


def _forget(folder: Path, epoch: int) -> None:
    for name in (_record, _counter, _ended):
        for old in numbers_in(folder, name(folder, 0).suffix[1:]):
            if old < epoch - _KEPT:
                name(folder, old).unlink(missing_ok=True)


# -- this process and others


def _myself(epoch: int) -> Owner:
    pid = os.getpid()
    return Owner(epoch, socket.gethostname(), boot_id(), pid, _started(pid) or 0, time.time())


def _lives(owner: Owner) -> bool:
    """Whether the owner's process is there. A process that started at another time only has its number."""
    started = _started(owner.pid)
    return started is not None and (not owner.started or started == owner.started)


def _started(pid: int) -> int | None:
    try:
        # The name in parentheses may hold spaces; the start time is the 20th field after it.
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return None
