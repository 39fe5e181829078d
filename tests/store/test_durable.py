"""Durable files: whole or absent, torn ones found out, locks among threads."""

from __future__ import annotations

import fcntl
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import pytest

from penstock.store import durable
from penstock.store.errors import CorruptFileError, MissingFileError


def test_a_record_torn_or_changed_at_any_byte_is_refused(tmp_path):
    path = tmp_path / "r.json"
    durable.write_record(path, {"train": 7, "name": "é"})
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        with pytest.raises(CorruptFileError):
            durable.read_record(path)
        path.write_bytes(whole[:cut] + bytes([whole[cut] ^ 0x21]) + whole[cut + 1 :])
        with pytest.raises(CorruptFileError):
            durable.read_record(path)
    path.write_bytes(whole + b"x")
    with pytest.raises(CorruptFileError):
        durable.read_record(path)


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "f"
    durable.write_bytes(path, b"old")

    def full_disk(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        durable.write_bytes(path, b"new")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("f", b"old")]


def test_read_checked_tells_missing_torn_and_changed(tmp_path):
    path, data = tmp_path / "f", b"content"
    with pytest.raises(MissingFileError, match="missing"):
        durable.read_checked(path, len(data), durable.checksum(data))
    path.write_bytes(data[:-1])
    with pytest.raises(CorruptFileError, match="torn") as error:
        durable.read_checked(path, len(data), durable.checksum(data))
    assert pickle.loads(pickle.dumps(error.value)).found == "6 bytes"
    path.write_bytes(b"Content")
    with pytest.raises(CorruptFileError, match="has changed"):
        durable.read_checked(path, len(data), durable.checksum(data))


def test_locks_exclude_threads_and_are_given_back(tmp_path, monkeypatch):
    path, seen, refused = tmp_path / "lock", [], threading.Event()

    def asked(descriptor, how, flock=fcntl.flock):
        try:
            flock(descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            refused.set()
            flock(descriptor, how)

    with durable.locked(path) as mine:
        assert mine
        with durable.locked(path, wait=False) as second:
            assert not second
        thread = threading.Thread(target=lambda: [seen.append(got) for got in [_take(path)]])
        monkeypatch.setattr(fcntl, "flock", asked)
        thread.start()
        assert refused.wait(60)
        assert seen == []
    thread.join(60)
    assert seen == [True]


def _take(path):
    with durable.locked(path) as mine:
        return mine


def test_litter_goes_when_it_is_old(tmp_path):
    (tmp_path / ".a.1.tmp").write_bytes(b"half")
    assert durable.remove_litter(tmp_path) == 0
    assert durable.remove_litter(tmp_path, seconds=-1) == 1


def test_a_process_killed_while_writing_leaves_whole_files(tmp_path):
    # The child rewrites one record as fast as it can; wherever the kill falls, what is there is one of its
    # versions.
    script = (
        "import sys, pathlib, itertools; from penstock.store import durable\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "for n in itertools.count(): durable.write_record(path, {'n': n, 'pad': 'x' * 5000})"
    )
    path = tmp_path / "r.json"
    for wait in (0.0, 0.003, 0.01):
        child = subprocess.Popen([sys.executable, "-c", script, str(path)])
        try:
            while not path.exists() and child.poll() is None:
                time.sleep(0.01)
            time.sleep(wait)
        finally:
            child.send_signal(signal.SIGKILL)
            child.wait()
        assert len(durable.read_record(path)["pad"]) == 5000
        path.unlink()
