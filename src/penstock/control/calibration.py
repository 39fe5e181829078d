"""A calibration run: the network on its own input for some seconds, to learn what it costs.

Trains of very different lengths leave in turn, so that the line through their costs has two ends. They have
the form that they have under control, and the first ones of each sub-network, which are cold, do not count if
there are others. Nothing of the real run is touched: the checkpoint is a scratch folder, and outputs go there
too.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.control.costs import costs_of
from penstock.engine.contract.policy import LONG_JOB_TUPLES
from penstock.engine.contract.situation import Situation
from penstock.model.boxes import Node, Output, Source
from penstock.model.costs import MeasuredCosts
from penstock.model.errors import PenstockError
from penstock.model.formats.callback import callback
from penstock.model.formats.files import Files
from penstock.model.writing.network import Network
from penstock.runtime.runtime import Runtime
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.record_types import TrainRecord

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LENGTHS = (1_000, 20_000, 5_000, 100_000)
_LEAST_TRAINS = 4
_MOST_TRAINS = 100_000  # all of them, for the first are to be left out


class LengthsInTurn:
    """Trains of these lengths, one after the other, in each sub-network. The first ones warm Spark up."""

    job_tuples = LONG_JOB_TUPLES
    """As under control: first trains of DataFrames take many seconds, and would look like what is fixed."""

    def next_train(self, situation: Situation) -> int | None:
        """The same length until a train has left."""
        return _LENGTHS[situation.train % len(_LENGTHS)]


def calibrate(network: Network, seconds: float, spark: SparkSession | None = None) -> MeasuredCosts:
    """What a network costs on its own input, measured for so many seconds after its first trains."""
    for node in network.nodes.values():
        if isinstance(node, Source) and node.format.read_once:
            raise PenstockError(
                f"source '{node.name}' can be read only once, so nothing can be tried out on it",
                hint="give a checkpoint of a run: --checkpoint DIR",
            )
    with tempfile.TemporaryDirectory(prefix="penstock-calibrate-") as folder:
        scratch = Path(folder)
        _run(aside(network, scratch), scratch / "checkpoint", seconds, spark)
        costs = costs_of(warm_trains(scratch / "checkpoint"), jobs=True)
    if not any(sub.tuples for sub in costs.subnetworks.values()):
        raise PenstockError(
            "there is no input to calibrate with", hint="put some files where the sources look"
        )
    return costs


def warm_trains(checkpoint: Path) -> dict[str, list[TrainRecord]]:
    """By sub-network: the trains with tuples after the first ones, or all where there are no others."""
    catalog = Catalog(checkpoint / "catalog.db")
    try:
        known = {name: catalog.trains(name, last=_MOST_TRAINS) for name in catalog.totals()}
    finally:
        catalog.close()
    full = {name: [train for train in trains if train.rows_in > 0] for name, trains in known.items()}
    return {name: trains[_LEAST_TRAINS:] or trains for name, trains in full.items()}


def _run(network: Network, checkpoint: Path, seconds: float, spark: SparkSession | None) -> None:
    with Runtime(network, spark, checkpoint, once=True, policy=LengthsInTurn()) as running:
        until: float | None = None
        while not running.wait(timeout=0.2):
            warm = all(query.last >= _LEAST_TRAINS for query in list(running.queries.values()))
            if until is None and warm:
                until = time.monotonic() + seconds
            if until is not None and time.monotonic() > until:
                return


def aside(network: Network, folder: Path) -> Network:
    """The same network, with outputs in a scratch folder, or nowhere if they are no files."""
    nodes = [_output_aside(node, folder) for node in network.nodes.values()]
    return Network.of(network.name, nodes, groups=network.groups)


def _output_aside(node: Node, folder: Path) -> Node:
    if not isinstance(node, Output):
        return node
    if isinstance(node.to, Files):
        return replace(node, to=replace(node.to, path=str(folder / "out" / node.name)))
    return replace(node, to=callback(_ignore))


def _ignore(table: object) -> None:
    del table
