"""One suite over all engines: the same network and the same trains, whatever runs them.

PENSTOCK_ENGINES names the engines of a test run ("local,spark"; "local" if unset), since starting Spark takes
a while.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.engine.local.engine import DropRates, LocalEngine, LocalResult, Train
from penstock.model.errors import PenstockError, did_you_mean
from penstock.model.writing.network import Network

if TYPE_CHECKING:
    import pytest  # only tests have it
    from pyspark.sql import SparkSession

ENGINES = ("local", "spark")
VARIABLE = "PENSTOCK_ENGINES"


def run_network(
    network: Network,
    trains: Sequence[Train],
    *,
    engine: str = "local",
    spark: SparkSession | None = None,
    final: bool = True,
    drop_rates: DropRates | Sequence[DropRates] | None = None,
) -> LocalResult:
    """Run the trains (rows by source name) on an engine, then close all windows unless `final` is false."""
    if engine == "local":
        return LocalEngine(network).run(trains, final=final, drop_rates=drop_rates)
    if engine != "spark":
        raise PenstockError(f"no engine '{engine}'", hint=did_you_mean(engine, ENGINES))
    # Spark is loaded only where it is asked for
    run_on_spark = importlib.import_module("penstock.testing.spark_run").run_on_spark
    result: LocalResult = run_on_spark(network, trains, spark, final=final, drop_rates=drop_rates)
    return result


@dataclass(frozen=True)
class Engine:
    """An engine that a test can call: `engine(network, {"cars": rows}, {"cars": more})`."""

    name: str
    spark: SparkSession | None = None

    def __call__(self, network: Network, *trains: Train, **options: Any) -> LocalResult:
        return run_network(network, trains, engine=self.name, spark=self.spark, **options)


def chosen_engines(environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The engines that this test run asks for.

    >>> chosen_engines({"PENSTOCK_ENGINES": "local,spark"})
    ('local', 'spark')
    """
    text = (os.environ if environment is None else environment).get(VARIABLE, "") or "local"
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in ENGINES:
            raise PenstockError(
                f"{VARIABLE}='{text}' names no engine '{name}'", hint=did_you_mean(name, ENGINES)
            )
    return names


def engines(*names: str) -> pytest.MarkDecorator:
    """A pytest mark: the test runs with `engine` set to each name (all, if none); others are skipped."""
    import pytest

    skip = pytest.mark.skip(reason=f"not in {VARIABLE}")
    parameters = [pytest.param(n, marks=[] if n in chosen_engines() else [skip]) for n in names or ENGINES]
    return pytest.mark.parametrize("engine", parameters)
