"""One train through one sub-network: from its ticket to its commit record.

Everything a train writes stays hidden until its commit record is on disk; then it is published. A train with
a commit record is not run again. It is only published again, which does no harm. So nothing is lost and
nothing doubled.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from penstock.engine.contract.account import Account, check_accounts
from penstock.engine.contract.commit import Commit, PointPart
from penstock.engine.contract.ticket import Ticket
from penstock.engine.contract.train_log import TrainLog
from penstock.engine.spark.entry.admission import guards_of
from penstock.engine.spark.entry.points import asleep
from penstock.engine.spark.exits.outputs import Outputs
from penstock.engine.spark.layout.horizons import HorizonPlan
from penstock.engine.spark.layout.plan import behind, lay_out
from penstock.engine.spark.tasks.packed_train import PackedTrainRun
from penstock.engine.spark.tasks.state import stage_base
from penstock.engine.spark.trains.estimates import Estimates
from penstock.engine.spark.trains.letters import LetterOrigins, refused_pieces
from penstock.engine.spark.trains.outcome import Outcome
from penstock.engine.spark.trains.train_run import TrainRun
from penstock.model.boxes import ConnectionPoint, Node
from penstock.rewrite.subnetworks import SubNetwork
from penstock.store.crash import crash_point
from penstock.store.dead_letters import DeadLetters
from penstock.store.durable import read_record, write_record
from penstock.store.points.point import PointWriter


class Trains:
    """Runs the trains of one sub-network; `place` is its directory under the checkpoint."""

    def __init__(
        self,
        sub: SubNetwork,
        spark: SparkSession,
        checkpoint: Path,
        *,
        partitions: int,
        fuse: bool = True,
        done: Callable[[Ticket, Commit, Outcome], None] | None = None,
    ) -> None:
        self.sub, self.net, self.spark, self.checkpoint = sub, sub.network, spark, checkpoint
        self.place = checkpoint / "queries" / sub.name
        self.log = TrainLog(self.place)
        self.run = _run_of(self.place)
        self.partitions, self.layout = partitions, lay_out(sub, fuse=fuse)
        self.horizon_plan = HorizonPlan.of(self.net.nodes.values())
        self.done = done
        self.train_run: type[TrainRun] = PackedTrainRun if self.layout.rooted else TrainRun
        self.guards = {
            name: guards_of(self.net, self.layout, name) for name in sub.inputs if name in self.net.sources
        }
        self.guarded = frozenset().union(*(g.boxes for g in self.guards.values()))
        last = self.log.commit(self.log.last())
        self.outputs = Outputs(self.net, sub.outputs, self.run)
        self.outputs.start(last.moves if last is not None else ())
        self.epoch = uuid.uuid4().hex  # of this start of the query, see PartitionState
        self.loaded = 0  # trains with tuples since then
        committed = self._committed()
        self.bases = {
            s.name: stage_base(self.place / "state" / s.name, committed)
            for s in self.layout.stages
            if s.stateful
        }
        self.writers = {name: self._writer(self.net.nodes[name]) for name in sub.points}
        self.dead_letters = DeadLetters(checkpoint)
        self._tails = {name: behind(self.net, self.net.nodes[name].inputs[0]) for name in sub.outputs}
        self.estimates = Estimates()
        self._origins = LetterOrigins(self.net)

    def _writer(self, node: Node) -> PointWriter:
        key = node.key if isinstance(node, ConnectionPoint) else None
        return PointWriter(self.checkpoint, node.name, self.net.types[node.name].schema, key)

    def _committed(self) -> int:
        last = self.log.last()
        return last if last < 0 or self.log.commit(last) is not None else last - 1

    def __call__(self, train: int) -> None:
        """Run a train by its ticket and publish it; a committed one is only published."""
        ticket = self.log.ticket(train)
        if ticket is None:
            raise FileNotFoundError(f"{self.place}: the ticket of train {train} is missing")
        commit = self.log.commit(train)
        outcome = Outcome()
        if commit is None:
            commit = self._run(ticket, outcome)
        self._publish(ticket, commit)
        if self.done is not None:
            self.done(ticket, commit, outcome)
        crash_point("train-published")

    def _run(self, ticket: Ticket, outcome: Outcome) -> Commit:
        running = self.train_run(self, ticket, outcome)
        try:
            running.run()
        finally:
            running.release()
        outcome.left = self._left(outcome)
        self._count_points(outcome)
        accounts = self._accounts(ticket, outcome)
        check_accounts(accounts, ticket.train)
        crash_point("train-before-commit")
        dead = self._origins.letters(ticket, outcome.dead)
        self.dead_letters.append(self.sub.name, ticket.train, dead)
        # Readers of a point may rely on the horizon that this train itself has acted on.
        quiet = asleep(self.net, ticket.idle)
        points = {
            n: PointPart(tuple(outcome.points.get(n, ())), running.horizons[n], ticket.final, n in quiet)
            for n in self.sub.points
        }
        commit = Commit(
            ticket.train,
            running.newest(),
            tuple(outcome.moves),
            points,
            outcome.counts,
            int(pc.sum(dead.column("tuples")).as_py() or 0),
            time.time(),
            {name: tuple(reports) for name, reports in outcome.joins.items()},
            outcome.costs,
            accounts,
        )
        self.log.write_commit(commit)
        crash_point("train-after-commit")
        for name, tables in outcome.rows.items():
            self.outputs.deliver(self.terminals(name), pa.concat_tables(tables))
        return commit

    def _count_points(self, outcome: Outcome) -> None:
        """Count a point's tuples as its writer put them there, however many read them."""
        for name in self.sub.inputs:
            if name not in self.net.sources:
                outcome.counts.pop(name, None)
        for name in self.sub.points:
            rows = sum(file.rows for file in outcome.points.get(name, []))
            outcome.counts[name] = {**outcome.counts.get(name, {}), "in": rows, "out": rows}

    def _left(self, outcome: Outcome) -> set[str]:
        """The outputs that tuples left through in this train."""
        counted = {name: counts.get("out", 0) for name, counts in outcome.counts.items()} | outcome.written
        return {name for name, tail in self._tails.items() if counted.get(tail, 0)}

    def _accounts(self, ticket: Ticket, outcome: Outcome) -> dict[str, Account]:
        """What became of the tuples that each source offered; whole files that were refused count too."""
        for name, pieces in refused_pieces(ticket).items():
            tuples = sum(piece.get("tuples", 1) for piece in pieces)
            outcome.count(name, **{"offered": tuples, "in": tuples, "dead": tuples})
        sources = [name for name in self.sub.inputs if name in self.net.sources]
        return {name: Account.of_counts(outcome.counts.get(name, {})) for name in sources}

    def _publish(self, ticket: Ticket, commit: Commit) -> None:
        self.outputs.publish(commit.moves)
        for name, point in commit.points.items():
            self.writers[name].commit(
                ticket.train,
                point.files,
                point.horizon,
                final=point.final,
                idle=point.idle,
                arrival=ticket.arrival,
                since=ticket.since,
            )

    def terminals(self, name: str) -> list[str]:
        """Outputs, points and views fed by a box, directly or through points that pass its tuples on."""
        found = []
        for reader in self.net.readers(name):
            if not self.net.nodes[reader].is_box:
                found += [reader, *self.terminals(reader)]
        return found


def _run_of(place: Path) -> str:
    """An identifier that tells this directory's output files from those of any other.

    It is made with the directory and kept as long.
    """
    path = place / "run.json"
    try:
        return str(read_record(path)["run"])
    except FileNotFoundError:
        write_record(path, {"run": uuid.uuid4().hex[:8]})
        return str(read_record(path)["run"])
