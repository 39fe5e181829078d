"""A network on the Spark engine with trains cut by hand: what `run_network(..., engine="spark")` calls.

The conductor, the tickets, the stages and the state are the real ones. Only the streaming query itself is left out,
which saves its start for each of many small tests.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.local.engine import DropRates, LocalResult, Train
from penstock.engine.local.rows import DeadLetter
from penstock.engine.spark.entry.inputs import Input, Taken, as_json
from penstock.engine.spark.entry.packing import pack
from penstock.engine.spark.entry.slice_placement import PACKED
from penstock.engine.spark.session import local_session
from penstock.engine.spark.tasks.packed_train import labels_for
from penstock.engine.spark.trains.query import Steering, SubnetworkQuery
from penstock.model.boxes import Output
from penstock.model.formats.memory import Memory
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import split
from penstock.store.dead_letters import DeadLetters
from penstock.store.points.point import PointReader


class TrainsInput:
    """A source whose trains are given: each `take` is one of them, also when it is empty."""

    def __init__(self, place: Path, trains: Sequence[Sequence[Any]]) -> None:
        self._files: list[tuple[Path, int, int]] = []
        place.mkdir(parents=True, exist_ok=True)
        first = 0
        for number, rows in enumerate(trains):
            path = place / f"{number:06d}.jsonl"
            path.write_text("".join(json.dumps(row, default=as_json) + "\n" for row in rows))
            self._files.append((path, first, len(rows)))
            first += len(rows)

    def take(self, position: dict[str, Any], limit: int) -> Taken:
        """The next train, whatever the limit."""
        del limit
        number = position.get("train", 0)
        if number >= len(self._files):
            return Taken([], position, 0)
        path, first, rows = self._files[number]
        slices = [{"kind": "spool", "path": str(path), "row": first, "rows": rows}] if rows else []
        return Taken(slices, {"train": number + 1}, rows, more=True)


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
    """Run the trains; the result has the shape of the local engine's. `schemes`: of diffused joins, for each train."""
    spark = spark or local_session()
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        root = Path(folder)
        net, sinks = with_memory_sinks(network)
        for sub in split(net):
            steering = Steering(AsSoonAsPossible())
            inputs: dict[str, Input] = {
                name: TrainsInput(root / "given" / name, [list(train.get(name, ())) for train in trains])
                for name in sub.inputs
                if name in net.sources
            }
            query = SubnetworkQuery(
                sub,
                spark,
                root,
                steering,
                partitions=partitions,
                once=True,
                close=final,
                fuse=fuse,
                inputs=inputs,
            )
            crank(query, spark, drop_rates, schemes)
        return _result(root, net, sinks)


def crank(
    query: SubnetworkQuery,
    spark: Any,
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
            rooted = query.trains.layout.rooted
            query.run_train(packed_records(query, spark) if rooted else None, query.last)


def packed_records(query: SubnetworkQuery, spark: Any) -> Any:
    """The newest ticket's slices as Spark would read them if they were files of a feed."""
    ticket = query.log.ticket(query.last)
    assert ticket is not None
    packed = [(name, s) for name, slices in ticket.slices.items() for s in slices if s["kind"] in PACKED]
    table = pa.table({
        "input": pa.array([name for name, _ in packed], pa.string()),
        "slice": pa.array([json.dumps(s) for _, s in packed], pa.string()),
        "chunk": pa.array([pack(s) for _, s in packed], pa.binary()),
    })  # fmt: skip
    # every partition has its task, and a group is always in the same one
    parts = query.trains.partitions
    labels = labels_for(parts)
    mine = pa.array([labels[s.get("group", 0) % parts] for _, s in packed], pa.int32())
    frame = spark.createDataFrame(table.append_column("label", mine))
    return frame.repartition(parts, "label").select("input", "slice", "chunk")


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
