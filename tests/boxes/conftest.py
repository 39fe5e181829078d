"""One suite over all engines: a file per box, list in, list out."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.model.writing.network import Network
from penstock.testing import collect, rows_source
from penstock.testing.plugin import engine  # noqa: F401 - a fixture

SCHEMA = "time TIMESTAMP, k STRING, v INT"


@pytest.fixture(scope="session")
def spark_session(spark):
    """One session for the whole suite."""
    return spark


@pytest.fixture
def run(engine):  # noqa: F811 - the fixture of that name
    """run(build, train, train, ...): one source 'cars' (time, k, v), `build(stream)` is the output 'out'."""

    def call(build, *trains, schema=SCHEMA, timestamp="time", final=True, drop_rates=None, **source: Any):
        net = Network("one")
        cars = net.source("cars", rows_source(schema), timestamp=timestamp, **source)
        build(cars).output("out", to=collect())
        return engine(net, *({"cars": train} for train in trains), final=final, drop_rates=drop_rates)

    return call


@pytest.fixture
def run_two(engine):  # noqa: F811 - the fixture of that name
    """run_two(build, (left, right), ...): two sources 'left' and 'right', `build(left, right)` is the output
    'out'.
    """

    def call(build, *trains, schema=SCHEMA, other=None, final=True, **source: Any):
        net = Network("two")
        left = net.source("left", rows_source(schema), timestamp="time", **source)
        right = net.source("right", rows_source(other or schema), timestamp="time", **source)
        build(left, right).output("out", to=collect())
        return engine(net, *({"left": a, "right": b} for a, b in trains), final=final)

    return call


@pytest.fixture
def dead():
    """dead(result): the dead letters as sorted (box, offset)."""
    return lambda result: sorted((letter.box, letter.offset) for letter in result.dead_letters)
