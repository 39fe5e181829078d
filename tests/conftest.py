"""Fixtures that all tests share, and how tests spread over two processes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.connectors.files.discovery import source_files

_SPARK_FIXTURES = {"spark", "spark_session"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep every test that needs the shared Spark session in one process: a session takes seconds to warm up.

    The other process works through the rest meanwhile. This has an effect under `pytest -n 2 --dist
    loadgroup` only. A test that tells what it did belongs to the soak, whether it is slow in CI or not.
    """
    for item in items:
        if _needs_session(item):
            item.add_marker(pytest.mark.xdist_group("spark"))
        if "record_property" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.soak)


def _needs_session(item: pytest.Item) -> bool:
    if not _SPARK_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
        return True
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    return parameters.get("engine") == "spark"


@pytest.fixture(scope="session", autouse=True)
def _files_are_whole() -> None:
    """Tests put whole files into folders: no need to wait until they settle. Tests of settling say so.

    Nor is a folder left alone for a while because a busy machine took long to list it.
    """
    source_files.SETTLE = "0 seconds"
    source_files._QUICK = math.inf


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One local Spark session for all tests of a process, with a folder of its own for what it shuffles."""
    from penstock.engine.spark.session import local_session

    own = {"spark.local.dir": str(tmp_path_factory.mktemp("spark"))}
    session = local_session("local[2]", "penstock-tests", **own)
    yield session
    session.stop()
