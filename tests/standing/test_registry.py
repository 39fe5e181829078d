"""The registry on disk: who may read it, and what is said when it is none."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest

from penstock.model.errors import PenstockError
from penstock.standing.serving.registry import Registry, RegistryEntry
from standing.test_http import service_at

ENTRY = RegistryEntry("q-1", "ann", "", "SELECT v FROM cars", None, 0.0)


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "standing" / "registry.db")
    registry.add([ENTRY])
    files = sorted((tmp_path / "standing").iterdir())
    assert len(files) >= 2  # the log stands beside it
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "standing").stat().st_mode) == 0o700
    registry.close()


def test_only_its_owner_may_look_into_the_folder_of_a_service(tmp_path: Path) -> None:
    service = service_at(tmp_path)
    assert stat.S_IMODE((tmp_path / "standing").stat().st_mode) == 0o700
    service.stop()


def garbage(path: Path) -> None:
    path.write_bytes(b"garbage" * 1000)


def truncated(path: Path) -> None:
    registry = Registry(path)
    registry.add(RegistryEntry(f"q-{i}", "", "", "x" * 500, None, 0.0) for i in range(100))
    registry.close()
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def another_table(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE queries (a INT)")
    other.close()


@pytest.mark.parametrize("damage", [garbage, truncated, another_table])
def test_a_file_that_is_none_is_told_in_a_sentence(tmp_path: Path, damage) -> None:
    path = tmp_path / "standing" / "registry.db"
    path.parent.mkdir()
    damage(path)
    with pytest.raises(
        PenstockError, match="is not a registry of standing queries, or it is damaged"
    ) as caught:
        Registry(path).entries()
    assert "move it away" in str(caught.value)
    with pytest.raises(PenstockError, match="is not a registry"):
        service_at(tmp_path)


def test_what_does_not_fit_the_limits_any_more_is_listed_as_broken(tmp_path: Path) -> None:
    service_at(tmp_path).stop()
    registry = Registry(tmp_path / "standing" / "registry.db")
    values = ", ".join(map(str, range(20_000)))
    texts = ["SELECT vid FROM reports", f"SELECT vid FROM reports WHERE vid IN ({values})", "SELECT '"]
    registry.add(RegistryEntry(f"q-{i}", "", "", text, None, 0.0) for i, text in enumerate(texts))
    registry.close()
    service = service_at(tmp_path)
    assert [query["broken"] is None for query in service.list()] == [True, False, False]
    service.stop()
