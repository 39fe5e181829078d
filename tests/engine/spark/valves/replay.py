"""The tickets of a run, replayed on the reference engine: its outputs are what the run must have given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from penstock.connectors.files.text import ByteRange
from penstock.connectors.tables import first_seq
from penstock.engine.contract.commit import Commit
from penstock.engine.contract.train_log import TrainLog
from penstock.engine.local import LocalEngine, LocalResult
from penstock.engine.local.source import SourceLogic
from penstock.model.writing.network import Network

Lines = Mapping[str, Sequence[object]]
"""The rows of each file, by its path."""


def replayed(network: Network, log: TrainLog, lines: Lines) -> LocalResult:
    """Run each ticket of a sub-network with one source, with the rows and valves that it names."""
    engine = LocalEngine(network)
    (source,) = engine.sources.values()
    for train in range(log.last() + 1):
        ticket = log.ticket(train)
        assert ticket is not None
        rows = _placed(source, ticket.slices.get(source.node.name, ()), lines)
        valves = [valve.plain() for valve in ticket.valves]
        engine.train({source.node.name: rows}, final=ticket.final, valves=valves)
    return engine.result


def _placed(source: SourceLogic, slices: Sequence[object], lines: Lines) -> Iterator[object]:
    """The rows of the slices; each has the place in its file, as on Spark."""
    for piece in slices:
        assert isinstance(piece, ByteRange)
        for line in range(piece.line, piece.line + piece.rows):
            source.arrived = first_seq(piece.file, line)
            yield lines[piece.path][line]


def commits(log: TrainLog) -> list[Commit]:
    """All commits of a sub-network."""
    found = [log.commit(train) for train in range(log.last() + 1)]
    assert None not in found
    return [commit for commit in found if commit is not None]


def check_accounts(log: TrainLog, source: str, offered: int) -> int:
    """Each train's account must add up, and all of them to what was offered; how many tuples were shed."""
    accounts = [commit.accounts[source] for commit in commits(log)]
    assert all(account.balanced for account in accounts)
    assert sum(account.offered for account in accounts) == offered
    for commit in commits(log):
        flow = commit.valves.get(source)
        assert flow is None or (flow.offered, flow.shed) == (
            commit.accounts[source].offered,
            commit.accounts[source].shed,
        )
    return sum(account.shed for account in accounts)


def log_of(checkpoint: Path, subnetwork: str) -> TrainLog:
    """The tickets and commits of a sub-network."""
    return TrainLog(checkpoint / "queries" / subnetwork)
