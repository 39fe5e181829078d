"""A network on the Spark engine with trains cut by hand: what `run_network(..., engine="spark")` calls.

Everything is what production runs: the connector of the rows, the conductor and its tickets, the body of
foreachBatch, stages, state, sinks. Only the streaming query around it is left out, which saves its start for
each of many small tests.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from penstock.connectors.contract import Input, Taken
from penstock.connectors.loading import input_for
from penstock.connectors.rows import RowsPosition
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.steering import Steering
from penstock.engine.contract.train_done import TrainDone
from penstock.engine.local.engine import DropRates, LocalResult, Train
from penstock.engine.local.rows import DeadLetter
from penstock.engine.spark.session import local_session
from penstock.engine.spark.trains.query import SubnetworkQuery
from penstock.engine.spark.trains.query_settings import QuerySettings
from penstock.model.boxes import Output, Source
from penstock.model.formats.memory import Memory
from penstock.model.formats.rows import Rows
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import split
from penstock.store.dead_letters import DeadLetters
from penstock.store.points.point import PointReader


class CutByHand(Input[RowsPosition]):
    """The production input of a source of given rows; each `take` asks for one train, even an empty one."""

    def __init__(self, source: Source, directory: Path, trains: Sequence[Sequence[Any]]) -> None:
        self._lengths = [len(rows) for rows in trains]
        given = Rows([row for rows in trains for row in rows], source.schema)
        self._input = input_for(replace(source, format=given), directory)
        self._next = 0

    def take(self, position: RowsPosition | None, limit: int) -> Taken:
        """The next train, whatever the limit."""
        del limit
        if self._next >= len(self._lengths):
            return Taken([], position, 0)
        length = self._lengths[self._next]
        self._next += 1
        taken = self._input.take(position, length) if length else Taken([], position, 0)
        assert taken.rows == length, f"{taken.rows} tuples instead of {length}: is the machine very busy?"
        return replace(taken, more=True)


def run_on_spark(
    network: Network,
    trains: Sequence[Train],
    spark: Any,
    *,
    final: bool = True,
    drop_rates: DropRates | Sequence[DropRates] | None = None,
    fuse: bool = True,
    partitions: int = 2,
    schemes: Sequence[Mapping[str, str]] | None = None,
) -> LocalResult:
    """Run the trains; the result looks like the local engine's. `schemes`: of diffused joins, by train."""
    spark = spark or local_session()
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        root = Path(folder)
        net, sinks = with_memory_sinks(network)
        started = time.time()
        accounts: dict[str, Counter[str]] = {}
        for sub in split(net):
            # The clock stands still: on a busy machine an input must not become idle between two trains.
            steering = Steering(AsSoonAsPossible(), clock=lambda: started)
            inputs: dict[str, Input[Any]] = {
                name: CutByHand(
                    net.sources[name], root / "given" / name, [list(t.get(name, ())) for t in trains]
                )
                for name in sub.inputs
                if name in net.sources
            }
            listen = partial(_add_accounts, accounts)
            settings = QuerySettings(
                partitions, once=True, close=final, fuse=fuse, inputs=inputs, listen=listen
            )
            query = SubnetworkQuery(sub, spark, root, steering, settings)
            crank(query, drop_rates, schemes)
        return replace(_result(root, net, sinks), accounts=accounts)


def _add_accounts(accounts: dict[str, Counter[str]], done: TrainDone) -> None:
    for name, account in done.commit.accounts.items():
        counts = {key: number for key, number in asdict(account).items() if key != "shed"}
        accounts.setdefault(name, Counter()).update(counts)


def crank(
    query: SubnetworkQuery,
    drop_rates: DropRates | Sequence[DropRates] | None = None,
    schemes: Sequence[Mapping[str, str]] | None = None,
) -> None:
    """Run a sub-network's trains one after the other, here and now, until its input is used up."""
    while not query.finished.is_set():
        number = query.last + 1
        if isinstance(drop_rates, Mapping):
            query.steering.drop_rates.update(drop_rates)
        elif drop_rates is not None and number < len(drop_rates):
            query.steering.drop_rates.update(drop_rates[number])
        if schemes is not None and number < len(schemes):
            query.steering.schemes = dict(schemes[number])
        if query.next_ticket():
            query.tick(None, query.last)


def with_memory_sinks(network: Network) -> tuple[Network, dict[str, Memory]]:
    """The same network with every output kept in a list."""
    sinks = {name: Memory() for name in network.outputs}
    nodes = [
        replace(node, to=sinks[node.name]) if isinstance(node, Output) else node
        for node in network.nodes.values()
    ]
    return Network.of(network.name, nodes, groups=network.groups), sinks


def _result(root: Path, net: Network, sinks: dict[str, Memory]) -> LocalResult:
    result = LocalResult(outputs={name: sink.rows for name, sink in sinks.items()})
    for name in net.points:
        names = list(net.types[name].schema.names)
        result.points[name] = PointReader(root, name).read().select(names).to_pylist()
    for row in DeadLetters(root).read().to_pylist():
        result.dead_letters.append(
            DeadLetter(
                row["raw"], row["reason"], row["source"] or "", int(row["offset"]), row["box"], row["train"]
            )
        )
    return result
