"""The commit record of a train: what it did, on disk before anything it wrote becomes visible.

`engine/spark/trains/train.py` writes it and then publishes. The order of steps is in docs/design.md,
"Commit protocol".
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from penstock.engine.contract.account import Account
from penstock.engine.contract.cost import BoxCost
from penstock.engine.contract.valve import ValveFlow
from penstock.model.diffused.roles import Report
from penstock.model.json_types import JsonMapping, JsonObject
from penstock.store.points.manifest import DataFile

Move = tuple[str, str]  # (staged file, final file)


@dataclass(frozen=True)
class PointPart:
    """What a train adds to a connection point: files, and the promise about later trains."""

    files: tuple[DataFile, ...] = ()
    horizon: int = 0
    final: bool = False
    idle: bool = False

    @classmethod
    def of(cls, plain: JsonMapping) -> PointPart:
        """From a commit record."""
        return cls(**{**plain, "files": tuple(DataFile(**file) for file in plain["files"])})


@dataclass(frozen=True)
class Commit:
    """What a train did. A train that has one is never run again, only published again."""

    train: int
    newest: dict[str, int] = field(default_factory=dict)  # largest _ts seen so far, by input
    moves: tuple[Move, ...] = ()  # renames to do; to do one again is harmless
    points: dict[str, PointPart] = field(default_factory=dict)
    # By box: 'in', 'out', 'dead', and what else a box counts under a name of its own (`ColumnLatch.figures`).
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    dead: int = 0  # tuples, not letters: one letter may stand for a whole file
    finished: float = 0.0
    joins: dict[str, tuple[Report, ...]] = field(default_factory=dict)  # from the servers of diffused joins
    costs: dict[str, BoxCost] = field(default_factory=dict)
    accounts: dict[str, Account] = field(default_factory=dict)  # by source
    epoch: int = 0  # of the owner that wrote it
    amended: str = ""  # the amended ticket that it ran with, if any
    # The version of the state that the next train starts from: stage -> partition -> name.
    state: dict[str, dict[str, str]] = field(default_factory=dict)
    # With which boxes the train may be run again to rebuild state; empty: never, its input may be gone.
    network: str = ""
    valves: dict[str, ValveFlow] = field(default_factory=dict)  # by the valve's place

    def plain(self) -> JsonObject:
        """For the disk."""
        return asdict(self)

    @classmethod
    def of(cls, plain: JsonMapping) -> Commit:
        """From the disk."""
        return cls(
            **{
                **plain,
                "moves": tuple((staged, final) for staged, final in plain["moves"]),
                "points": {name: PointPart.of(part) for name, part in plain["points"].items()},
                "joins": {name: tuple(map(Report.of, reports)) for name, reports in plain["joins"].items()},
                "costs": {name: BoxCost(**cost) for name, cost in plain["costs"].items()},
                "accounts": {name: Account(**account) for name, account in plain["accounts"].items()},
                "valves": {at: ValveFlow(**flow) for at, flow in plain.get("valves", {}).items()},
            }
        )
