"""Tickets and commits of one sub-network, as numbered JSON files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.engine.contract.commit import Commit
from penstock.engine.contract.ticket import Ticket
from penstock.store.durable import read_record, write_record
from penstock.store.file_names import numbered, numbers_in

# Spark does not flush its own logs to the platter either, and a killed process loses nothing without it.
SYNC = False


class TrainLog:
    """The folders `trains` and `commits` of a sub-network."""

    def __init__(self, root: Path) -> None:
        self.tickets, self.commits = root / "trains", root / "commits"
        self.tickets.mkdir(parents=True, exist_ok=True)
        self.commits.mkdir(parents=True, exist_ok=True)

    def write_ticket(self, ticket: Ticket) -> None:
        write_record(numbered(self.tickets, ticket.train), ticket.plain(), sync=SYNC)

    def write_commit(self, commit: Commit) -> None:
        write_record(numbered(self.commits, commit.train), commit.plain(), sync=SYNC)

    def ticket(self, train: int) -> Ticket | None:
        plain = _read(numbered(self.tickets, train))
        return None if plain is None else Ticket.of(plain)

    def commit(self, train: int) -> Commit | None:
        plain = _read(numbered(self.commits, train))
        return None if plain is None else Commit.of(plain)

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


def _read(path: Path) -> Mapping[str, Any] | None:
    try:
        return read_record(path)
    except FileNotFoundError:
        return None
