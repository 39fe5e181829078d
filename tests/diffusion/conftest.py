from __future__ import annotations

import pytest

from penstock.testing.plugin import engine  # noqa: F401 - a fixture


@pytest.fixture(scope="session")
def spark_session(spark):
    """One session for the whole suite."""
    return spark
