"""Where versions of the state lie: in memory or in the checkpoint, in as many files as there are."""

from __future__ import annotations

import resource
from types import SimpleNamespace

import pytest

from engine.spark.recovery.dry_recovery import NEVER, start
from penstock.engine.spark.recovery import version_folder

HAS_ROOM = version_folder._has_room  # the real one: a fixture of these tests replaces it


@pytest.fixture
def machine(memory, monkeypatch):
    """Its memory: 10,000 bytes, of which an eighth must be free."""

    def used(number):
        room = SimpleNamespace(f_bavail=10_000 - number, f_blocks=10_000, f_frsize=1)
        monkeypatch.setattr(version_folder.os, "statvfs", lambda _folder: room)

    monkeypatch.setattr(version_folder, "_LEAST", 0)
    monkeypatch.setattr(version_folder, "_has_room", HAS_ROOM)
    return used


def test_what_others_use_counts(machine, memory, tmp_path):
    machine(8000)
    assert version_folder.version_folder(tmp_path / "a", local=True).parent == memory
    machine(9000)
    assert version_folder.version_folder(tmp_path / "b", local=True).is_relative_to(tmp_path / "b")


def test_what_an_earlier_run_of_ours_has_left_does_not_count(machine, memory, tmp_path):
    machine(1000)
    ours = version_folder.version_folder(tmp_path / "a", local=True)
    (ours / "state").write_bytes(bytes(6000))
    machine(9000)
    assert version_folder.version_folder(tmp_path / "a", local=True) == ours
    (ours / "state").write_bytes(bytes(10))
    assert version_folder.version_folder(tmp_path / "a", local=True) != ours


def test_a_run_with_snapshots_may_have_many_files_open(run):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    try:
        start(run, NEVER)
        raised, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert raised == (1 << 16 if hard == resource.RLIM_INFINITY else min(hard, 1 << 16))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("foreign", ["file", "link"])
def test_a_name_that_somebody_else_has_taken_is_left_to_him(memory, tmp_path, foreign):
    name = version_folder._in_memory(tmp_path / "a")
    name.write_text("") if foreign == "file" else name.symlink_to(tmp_path / "nowhere")
    assert version_folder.version_folder(tmp_path / "a", local=True).is_relative_to(tmp_path / "a")
