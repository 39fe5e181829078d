"""Fixtures that all tests share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One local Spark session for all tests of a process."""
    from penstock.engine.spark.session import local_session

    session = local_session("local[2]", "penstock-tests")
    yield session
    session.stop()
