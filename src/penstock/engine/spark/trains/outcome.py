"""What a train has brought so far: counts, staged files, dead letters; it becomes the commit record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Outcome:
    """What a train has brought so far; becomes the commit record."""

    moves: list[list[str]] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)  # files that their tasks made visible, before the commit
    points: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    cost: dict[str, float] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)  # tuples written behind native nodes
    left: set[str] = field(default_factory=set)  # outputs that tuples have left by
    rows: dict[str, list[Any]] = field(default_factory=dict)  # for sinks in this process, by node
    dead: list[Any] = field(default_factory=list)
    state_bytes: int = 0
    joins: dict[str, list[dict[str, Any]]] = field(
        default_factory=dict
    )  # reports of diffused joins, by server

    def take(self, record: dict[str, Any]) -> None:
        """Add what one task reports."""
        self.moves += record["moves"]
        self.shown += [final for _, final in record["shown"]]
        self.state_bytes += record["state_bytes"]
        for name, files in record["points"].items():
            self.points.setdefault(name, []).extend(files)
        for name, counts in record["counts"].items():
            self.count(name, **counts)
        for name, report in record.get("joins", {}).items():
            self.joins.setdefault(name, []).append(report)
        for name, seconds in record["cost"].items():
            self.cost[name] = self.cost.get(name, 0.0) + seconds

    def count(self, name: str, **counts: int) -> None:
        mine = self.counts.setdefault(name, {})
        for key, value in counts.items():
            mine[key] = mine.get(key, 0) + int(value)
