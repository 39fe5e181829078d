"""Whether versions of the state lie in memory or in the checkpoint."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from penstock.engine.spark.recovery import version_folder

HAS_ROOM = version_folder._has_room  # the real one: a fixture of these tests replaces it


@pytest.fixture
def machine(memory, monkeypatch):
    """Its memory: 1,000 bytes, of which an eighth must be free."""

    def used(number):
        room = SimpleNamespace(f_bavail=1000 - number, f_blocks=1000, f_frsize=1)
        monkeypatch.setattr(version_folder.os, "statvfs", lambda _folder: room)

    monkeypatch.setattr(version_folder, "_LEAST", 0)
    monkeypatch.setattr(version_folder, "_has_room", HAS_ROOM)
    return used


def test_what_others_use_counts(machine, memory, tmp_path):
    machine(800)
    assert version_folder.version_folder(tmp_path / "a", local=True).parent == memory
    machine(900)
    assert version_folder.version_folder(tmp_path / "b", local=True).is_relative_to(tmp_path / "b")


def test_what_an_earlier_run_of_ours_has_left_does_not_count(machine, memory, tmp_path):
    machine(100)
    ours = version_folder.version_folder(tmp_path / "a", local=True)
    (ours / "state").write_bytes(bytes(600))
    machine(900)
    assert version_folder.version_folder(tmp_path / "a", local=True) == ours
    (ours / "state").write_bytes(bytes(10))
    assert version_folder.version_folder(tmp_path / "a", local=True) != ours
