"""A lock that is held only briefly: a suspended holder keeps nobody waiting for long."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.model.types import Schema
from penstock.store import locks
from penstock.store.locks import briefly_locked
from penstock.store.points.leases import take_lease
from penstock.store.points.point import PointReader, PointWriter

HOLD = """
import os, signal, sys
from pathlib import Path
from penstock.store.locks import briefly_locked

with briefly_locked(Path(sys.argv[1])):
    print("mine", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
    print("still at it", flush=True)
"""


@contextmanager
def suspended_holder(path):
    """A process that was stopped while it held the lock, as by Ctrl-Z."""
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "mine\n"
        os.waitid(os.P_PID, holder.pid, os.WSTOPPED | os.WNOWAIT)
        yield holder
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()


def is_locked(path):
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def test_it_is_taken_from_a_suspended_process(tmp_path, caplog):
    path = tmp_path / "lock"
    with suspended_holder(path) as holder, caplog.at_level(logging.WARNING):
        with briefly_locked(path, patience=0.1):
            assert is_locked(path)
            holder.send_signal(signal.SIGCONT)  # it wakes up in the middle of ours, and lets go of its own
            assert holder.stdout.readline() == "still at it\n"
            assert holder.wait() == 0
            assert is_locked(path)
        assert not is_locked(path)
    assert "its holder is suspended" in caplog.text


def test_one_at_a_time_also_when_it_is_taken_away(tmp_path):
    path, inside, most = tmp_path / "lock", [], []

    def work():
        for _ in range(20):
            with briefly_locked(path, patience=2.0):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    with suspended_holder(path):
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert most == [1] * 160


def test_who_goes_on_keeps_it(tmp_path, caplog):
    path, order = tmp_path / "lock", []

    def second():
        with briefly_locked(path, patience=300.0):
            order.append("second")

    with briefly_locked(path):
        waiting = threading.Thread(target=second)
        waiting.start()
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]
    assert not caplog.text


def test_holders_that_follow_each_other_are_not_robbed(tmp_path, monkeypatch):
    """However long somebody waits: each of them has held it only briefly."""
    path = tmp_path / "lock"
    holder = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(holder, fcntl.LOCK_EX)
    before, looks = path.stat().st_ino, []

    def sleep(_seconds):
        looks.append(1)
        os.pwrite(holder, bytes([len(looks)]) * 16, 0)  # another one holds it now
        if len(looks) == 100:
            fcntl.flock(holder, fcntl.LOCK_UN)

    monkeypatch.setattr(locks.time, "sleep", sleep)
    with briefly_locked(path, patience=0.05) as held:
        assert held()
    assert (len(looks), path.stat().st_ino) == (100, before)
    os.close(holder)


def test_who_has_lost_it_can_tell(tmp_path):
    with briefly_locked(tmp_path / "lock") as held, briefly_locked(tmp_path / "lock", patience=0.05):
        assert not held()


@pytest.mark.parametrize("steps", ["take", "renew"])
def test_a_suspended_reader_keeps_no_other_from_its_lease(tmp_path, monkeypatch, steps):
    """Found by a soak: a follower waited for the lease lock of the owner that it had taken over from."""
    monkeypatch.setattr(locks, "PATIENCE", 0.1)
    writer = PointWriter(tmp_path, "p", Schema.parse("v INT"))
    lease = take_lease(PointReader(tmp_path, "p"), "r", every=0.0)
    with suspended_holder(writer.manifest.path / "switch.lock"):
        if steps == "renew":
            lease.renew(0)
        else:
            lease = take_lease(PointReader(tmp_path, "p"), "r")
    lease.release()


def test_a_failing_lock_leaves_no_descriptor_open(tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(locks.fcntl, "flock", no_locks)
    path = tmp_path / "lock"
    with pytest.raises(OSError, match="no locks"), briefly_locked(path):
        pass
    assert path.exists()
    assert str(path) not in [os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()]
