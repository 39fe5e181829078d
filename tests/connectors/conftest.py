"""A folder that a source reads, and a clock that goes when told."""

from __future__ import annotations

import pytest

from penstock.connectors.files.discovery import source_files
from penstock.connectors.files.discovery.settling import Settling


@pytest.fixture
def clock(monkeypatch):
    """Time that passes when told: [monotonic, wall]."""
    now = [100.0, 1_000_000.0]
    monkeypatch.setattr(
        source_files, "Settling", lambda settle: Settling(settle, lambda: now[0], lambda: now[1])
    )
    monkeypatch.setattr(source_files, "_WATCH_SECONDS", 0.0)
    return now


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(source_files, "_WATCH_SECONDS", 0.0)
    (tmp_path / "in").mkdir()
    return tmp_path / "in"
