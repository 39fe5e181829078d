"""A machine whose memory is a folder, and the input of a run on it."""

from __future__ import annotations

import pytest

from engine.spark.recovery.dry_recovery import SECONDS, second, start, written
from penstock.engine.spark.recovery import version_folder


@pytest.fixture(autouse=True)
def memory(tmp_path, monkeypatch):
    """A folder that takes the place of the machine's memory."""
    folder = tmp_path / "memory"
    folder.mkdir()
    monkeypatch.setattr(version_folder, "MEMORY", folder)
    monkeypatch.setattr(version_folder, "_has_room", lambda _folder: True)
    return folder


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    for at in range(1, SECONDS + 1):
        second(folder, at)
    start(folder, None).run_all()
    return written(folder)


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    for at in range(1, SECONDS + 1):
        second(folder, at)
    return folder
