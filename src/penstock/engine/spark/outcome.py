"""What a train has produced so far: counts, staged files, dead letters. It becomes the commit record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.engine.arrow.value_samples import PlainSample
from penstock.engine.contract.commit import Move
from penstock.engine.contract.cost import BoxCost
from penstock.engine.contract.valve import ValveFlow
from penstock.model.diffused.roles import Report
from penstock.store.points.manifest import DataFile


@dataclass
class Outcome:
    """What a train has produced so far; the tasks report, the driver adds up."""

    moves: list[Move] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)  # files that tasks made visible before the commit
    points: dict[str, list[DataFile]] = field(default_factory=dict)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    costs: dict[str, BoxCost] = field(default_factory=dict)
    phases: dict[str, float] = field(default_factory=dict)  # see `TrainDone.phases`
    written: dict[str, int] = field(default_factory=dict)  # tuples written after native nodes
    delivered: dict[str, int] = field(default_factory=dict)  # tuples that have left, by output
    rows: dict[str, list[pa.Table]] = field(default_factory=dict)  # for sinks in this process, by node
    dead: list[pa.Table] = field(default_factory=list)
    state_bytes: int = 0
    state: dict[str, dict[str, str]] = field(default_factory=dict)  # what was kept: stage, partition, token
    samples: dict[str, list[pa.Table]] = field(default_factory=dict)  # by monitor
    joins: dict[str, list[Report]] = field(default_factory=dict)  # reports of diffused joins, by server
    valves: dict[str, ValveFlow] = field(default_factory=dict)  # by place
    values: dict[str, list[PlainSample]] = field(default_factory=dict)  # by node, see `value_samples.py`

    def take(self, record: Mapping[str, Any]) -> None:
        """Add one task's report."""
        self.take_files(record)
        self.state_bytes += record["state_bytes"]
        for stage, tokens in record["state"].items():
            self.state.setdefault(stage, {}).update(tokens)
        for name, files in record["points"].items():
            self.take_point_files(name, files)
        for name, counts in record["counts"].items():
            self.count(name, **counts)
        for name, report in record["joins"].items():
            self.joins.setdefault(name, []).append(Report.of(report))
        for at, flow in record["valves"].items():
            self.pass_valve(at, ValveFlow(**flow))
        for name, values in record["values"].items():
            self.values.setdefault(name, []).append(values)
        for name, seconds in record.get("phases", {}).items():
            self.phases[name] = self.phases.get(name, 0.0) + seconds
        for name, cost in record["costs"].items():
            self.costs[name] = self.costs.get(name, BoxCost()) + BoxCost(**cost)

    def take_files(self, record: Mapping[str, Any]) -> None:
        """Add the output files that one task reports: staged ones, and those already visible."""
        self.moves += [(staged, final) for staged, final in record["moves"]]
        self.shown += record["shown"]

    def take_point_files(self, point: str, files: Iterable[Mapping[str, Any]]) -> None:
        """Add the files that one task has staged for a connection point."""
        self.points.setdefault(point, []).extend(DataFile(**file) for file in files)

    def pass_valve(self, at: str, flow: ValveFlow) -> None:
        """Add to what came to a valve."""
        self.valves[at] = self.valves.get(at, ValveFlow()) + flow

    def count(self, name: str, **counts: int) -> None:
        """Add to the counts of a box."""
        mine = self.counts.setdefault(name, {})
        for key, value in counts.items():
            mine[key] = mine.get(key, 0) + int(value)
