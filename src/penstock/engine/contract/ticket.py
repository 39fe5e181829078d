"""The ticket of a train: everything that steers one micro-batch, on disk before the train runs (A76).

Spark's own offset is only the train's number. What the train reads, which horizons hold, at which rates boxes drop:
all of it stands in the ticket, so a train that is replayed after a crash is the same train.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from penstock.store.durable import read_record, write_record
from penstock.store.file_names import numbered, numbers_in
from penstock.store.points.manifest import NO_HORIZON

# A horizon nobody has promised anything about.
UNKNOWN = NO_HORIZON
FOREVER = 2**63 - 1

# Spark's own logs are not flushed to the platter either; a killed process loses nothing without it.
SYNC = False

Slice = dict[str, Any]
Position = dict[str, Any]


@dataclass(frozen=True)
class Ticket:
    """One train: what it reads of each input, where each input stands afterwards, and what steers it."""

    train: int
    arrival: float
    slices: dict[str, list[Slice]] = field(default_factory=dict)
    positions: dict[str, Position] = field(default_factory=dict)
    horizons: dict[str, int] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)  # largest _ts of earlier trains, by source
    drop_rates: dict[str, float] = field(default_factory=dict)
    joins: dict[str, dict[str, Any]] = field(default_factory=dict)  # roles of diffused joins
    idle: list[str] = field(default_factory=list)
    final: bool = False
    rows: int = 0
    since: float | None = None  # when the oldest tuple that this train is about came to the network
    refused: dict[str, list[dict[str, Any]]] = field(
        default_factory=dict
    )  # files that cannot be read, by source

    @property
    def empty(self) -> bool:
        """True for a train that only moves horizons or closes windows."""
        return not any(self.slices.values())


@dataclass(frozen=True)
class Commit:
    """What a train did: written when all its files lie ready; a train that has one is never run again."""

    train: int
    newest: dict[str, int] = field(default_factory=dict)  # largest _ts seen so far, by input
    moves: list[list[str]] = field(
        default_factory=list
    )  # (staged file, final file), redone harmlessly on replay
    points: dict[str, dict[str, Any]] = field(default_factory=dict)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    dead: int = 0
    finished: float = 0.0
    joins: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # what their servers report


class TrainLog:
    """Tickets and commits of one sub-network, as numbered JSON files."""

    def __init__(self, root: Path) -> None:
        self.tickets, self.commits = root / "trains", root / "commits"
        self.tickets.mkdir(parents=True, exist_ok=True)
        self.commits.mkdir(parents=True, exist_ok=True)

    def write_ticket(self, ticket: Ticket) -> None:
        write_record(numbered(self.tickets, ticket.train), asdict(ticket), sync=SYNC)

    def write_commit(self, commit: Commit) -> None:
        write_record(numbered(self.commits, commit.train), asdict(commit), sync=SYNC)

    def ticket(self, train: int) -> Ticket | None:
        return _load(Ticket, numbered(self.tickets, train))

    def commit(self, train: int) -> Commit | None:
        return _load(Commit, numbered(self.commits, train))

    def last(self) -> int:
        """The number of the newest ticket, -1 before the first."""
        return max(numbers_in(self.tickets), default=-1)

    def forget(self, before: int) -> None:
        """Drop tickets and commits that Spark can no longer ask for."""
        for folder in (self.tickets, self.commits):
            number = before - 1
            while (path := numbered(folder, number)).exists():
                path.unlink()
                number -= 1


_Record = TypeVar("_Record", Ticket, Commit)


def _load(kind: type[_Record], path: Path) -> _Record | None:
    try:
        return kind(**read_record(path))
    except FileNotFoundError:
        return None
