"""One owner of a checkpoint: refused, followed when dead, watched from another host, fenced."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
from dataclasses import asdict, replace

import pytest

from penstock.store import ownership
from penstock.store.durable import write_bytes, write_record
from penstock.store.errors import FencedError, OwnedError
from penstock.store.ownership import Owner, Timing, own, verdict

HOLD = """
import sys, time
from pathlib import Path
from penstock.store.ownership import own
held = own(Path(sys.argv[1]))
print("owned", flush=True)
time.sleep(600)
"""


class FakeTime:
    """A clock that moves when somebody sleeps; each sleep may do something."""

    def __init__(self, tick=lambda: None):
        self.now, self.tick = 0.0, tick

    def sleep(self, seconds):
        self.now += seconds
        self.tick()

    @property
    def timing(self):
        return Timing(clock=lambda: self.now, sleep=self.sleep)


@pytest.fixture
def other_process(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True, env={**os.environ}
    )
    assert process.stdout.readline() == "owned\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_second_owner_is_refused_and_told_who_and_how(tmp_path, other_process):
    with pytest.raises(OwnedError) as caught:
        own(tmp_path)
    said = str(caught.value)
    assert f"checkpoint {tmp_path} is in use by process {other_process.pid} on host" in said
    assert "since 20" in said
    assert "--take-over" in said


def test_a_fork_does_not_own_what_its_parent_owned(tmp_path):
    """A child that outlives the owner must not keep others out, and its end must not let others in."""
    held = own(tmp_path)
    child = os.fork()
    if child == 0:
        try:
            held.release()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    with pytest.raises(OwnedError):
        own(tmp_path)
    held.release()


def test_a_dead_owner_is_followed_though_its_fork_lives(tmp_path):
    forked = HOLD.replace('print("owned"', 'import os\nchild = os.fork()\nif child: print("owned", child')
    process = subprocess.Popen(
        [sys.executable, "-c", forked, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    child = int(process.stdout.readline().split()[1])
    process.kill()
    process.wait()
    try:
        own(tmp_path).release()
    finally:
        os.kill(child, signal.SIGKILL)
        process.stdout.close()


def test_a_fork_that_has_not_run_yet_is_waited_for(tmp_path, other_process):
    """It holds the lock of the dead owner until it is scheduled for the first time."""
    other_process.kill()
    other_process.wait()
    fork = os.open(tmp_path / "owners/000001.json", os.O_RDWR)
    fcntl.flock(fork, fcntl.LOCK_EX)
    held = own(tmp_path, timing=FakeTime(lambda: fcntl.flock(fork, fcntl.LOCK_UN)).timing)
    assert (held.epoch, held.follows_dead) == (2, True)
    held.release()
    os.close(fork)


def test_a_lock_that_outlives_its_owner_refuses(tmp_path, other_process):
    """Who holds it may be the owner after all, in a container that numbers processes its own way."""
    other_process.kill()
    other_process.wait()
    other = os.open(tmp_path / "owners/000001.json", os.O_RDWR)
    fcntl.flock(other, fcntl.LOCK_EX)
    with pytest.raises(OwnedError):
        own(tmp_path, timing=FakeTime().timing)
    os.close(other)


def test_a_dead_owner_is_followed_at_once(tmp_path, other_process):
    other_process.kill()
    other_process.wait()
    held = own(tmp_path)
    assert (held.epoch, held.follows_dead) == (2, True)
    held.release()


def test_taking_over_fences_the_owner_before(tmp_path):
    first = own(tmp_path)
    second = own(tmp_path, take_over=True)
    assert (second.epoch, second.follows_dead) == (2, False)
    first.check()
    first.look()
    with pytest.raises(FencedError, match=f"process {os.getpid()} on host .* has taken over"):
        first.check()
    for held in (first, second):
        held.release()


def test_who_has_let_go_is_followed(tmp_path):
    first = own(tmp_path)
    first.release()
    second = own(tmp_path)
    assert second.epoch == 2
    assert not second.follows_dead  # this process lives, so its old threads might still write
    second.release()


def on_another_host(tmp_path) -> Owner:
    """A record as a process on another host leaves it: no lock of ours tells whether it lives."""
    own(tmp_path).release()
    (tmp_path / "owners" / "000001.ended").unlink()
    mine = ownership._newest(tmp_path / "owners")
    theirs = replace(mine, host="elsewhere", boot="another")
    write_record(tmp_path / "owners" / "000001.json", asdict(theirs))
    return theirs


def test_an_owner_on_another_host_that_counts_is_refused(tmp_path):
    on_another_host(tmp_path)
    counts = iter(range(1000))

    def beat():
        write_bytes(tmp_path / "owners" / "000001.counter", b"%d" % next(counts))

    time = FakeTime(beat)
    with pytest.raises(OwnedError, match="on host elsewhere"):
        own(tmp_path, timing=time.timing)
    assert time.now < 2, "a sign of life is enough"


def test_an_owner_on_another_host_that_is_silent_is_followed_after_its_lease(tmp_path):
    on_another_host(tmp_path)
    time = FakeTime()
    held = own(tmp_path, timing=time.timing)
    assert time.now >= Timing().lease
    assert not held.follows_dead, "it may only be suspended"
    held.release()


def test_the_wall_clock_decides_nothing(tmp_path, monkeypatch):
    held = own(tmp_path)
    monkeypatch.setattr("time.time", lambda: 0.0)
    with pytest.raises(OwnedError):
        own(tmp_path)
    monkeypatch.setattr("time.time", lambda: 4e9)
    with pytest.raises(OwnedError):
        own(tmp_path)
    held.release()


@pytest.mark.parametrize(
    ("lock", "lives", "same", "expected"),
    [
        ("held", True, True, "refuse"),
        ("held", False, False, "refuse"),
        ("free", True, True, "follow"),  # its number is used again
        ("unknown", True, True, "refuse"),
        ("unknown", False, True, "follow"),
        ("free", False, False, "watch"),
        ("unknown", True, False, "watch"),
    ],
)
def test_verdicts(lock, lives, same, expected):
    old = Owner(1, "a", "x", 1, 1, 0.0)
    assert verdict(old, old if same else replace(old, host="b"), lock, lives=lives) == expected


def test_many_starts_leave_few_records(tmp_path):
    for _ in range(20):
        own(tmp_path).release()
    assert len(list((tmp_path / "owners").iterdir())) <= 3 * 10


@pytest.mark.parametrize("before", ["nobody", "a dead process"])
def test_of_many_that_start_at_once_one_owns(tmp_path, before, request):
    if before != "nobody":
        dead = request.getfixturevalue("other_process")
        dead.kill()
        dead.wait()
    together, owners, refused = threading.Barrier(8), [], []

    def start():
        together.wait()
        try:
            owners.append(own(tmp_path))
        except OwnedError as error:
            refused.append(error)

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(owners), len(refused)) == (1, 7)
    owners[0].release()
