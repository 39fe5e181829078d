"""Fixtures for pytest: write `from penstock.testing.plugin import engine, spark_session` in a conftest.py.

`engine` is an `Engine` (call it with a network and trains); a test that takes it runs once on each engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.testing.suite import ENGINES, Engine, chosen_engines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark_session() -> SparkSession | None:
    """The session that `engine` uses for Spark; override it to bring your own. None: one is started."""
    return None


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine in turn; those not asked for by PENSTOCK_ENGINES are skipped."""
    if request.param not in chosen_engines():
        pytest.skip(f"engine '{request.param}' is not in PENSTOCK_ENGINES")
    if request.param == "local":
        return Engine("local")
    return Engine("spark", request.getfixturevalue("spark_session"))
