"""One train through one sub-network: from its ticket to its commit record.

Everything a train writes stays hidden until its commit record is on disk; then it is published. A train with
a commit record is not run again. It is only published again, which does no harm. So nothing is lost and
nothing doubled.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from penstock.engine.contract.account import Account, check_accounts
from penstock.engine.contract.commit import Commit, PointPart
from penstock.engine.contract.cost import BoxCost
from penstock.engine.contract.kept_share import kept_shares
from penstock.engine.contract.ticket import Ticket
from penstock.engine.contract.train_log import TrainLog
from penstock.engine.contract.valve import ValveFlow
from penstock.engine.spark.entry.admission import guards_of
from penstock.engine.spark.entry.early import early_of
from penstock.engine.spark.entry.points import PointEntries, asleep, kept_above
from penstock.engine.spark.exits.outputs import Outputs
from penstock.engine.spark.jobs.forms import Form, form_of
from penstock.engine.spark.jobs.plan import PickledPlan
from penstock.engine.spark.layout.horizons import HorizonPlan
from penstock.engine.spark.layout.plan import Layout, behind, lay_out
from penstock.engine.spark.outcome import Outcome
from penstock.engine.spark.recovery.snapshots import State as StateView
from penstock.engine.spark.recovery.state_versions import DELTAS, Recovery, StateVersions
from penstock.engine.spark.runs.job_run import train_run
from penstock.engine.spark.runs.own_workers import Places
from penstock.engine.spark.runs.train_run import TrainRun
from penstock.engine.spark.session import is_local
from penstock.engine.spark.tasks.state_parts import StateError
from penstock.engine.spark.trains.estimates import Estimates
from penstock.engine.spark.trains.letters import LetterOrigins, refused_pieces, sources_of
from penstock.engine.spark.trains.own_records import is_published, lost_records, run_of, void_state, voided
from penstock.engine.spark.trains.rebuilt import Compared
from penstock.engine.spark.trains.unreadable_input import without_unreadable
from penstock.model.boxes import ConnectionPoint, Node
from penstock.model.errors import one_line
from penstock.rewrite.as_written import WrittenNames
from penstock.rewrite.subnetworks import SubNetwork, reaching
from penstock.store.crash import crash_point
from penstock.store.dead_letters import DeadLetters
from penstock.store.errors import FencedError, MissingFileError
from penstock.store.points.point import PointWriter

_LOG = logging.getLogger("penstock")
State = dict[str, dict[str, str]]  # stage -> partition -> token, see Commit.state
Done = Callable[[Ticket, Commit, Outcome], None]


@dataclass(frozen=True)
class TrainSettings:
    """How trains run, and who owns the checkpoint; see QuerySettings. `form`: which way each train runs."""

    partitions: int = 2
    fuse: bool = True
    epoch: int = 0
    follows_dead: bool = False
    sync: bool = False
    recovery: Recovery = DELTAS
    form: Callable[[Ticket, Layout], Form] = form_of


@dataclass
class _Ran:
    """A train that ran in this process, and the sinks of this process that have not got its rows yet."""

    train: int = -1
    outcome: Outcome = field(default_factory=Outcome)
    deliveries: list[Callable[[], None]] = field(default_factory=list)


class Trains:
    """Runs the trains of one sub-network; `directory` is its own under the checkpoint."""

    def __init__(
        self,
        sub: SubNetwork,
        spark: SparkSession,
        checkpoint: Path,
        settings: TrainSettings | None = None,
        done: Done | None = None,
    ) -> None:
        self.settings = settings = settings or TrainSettings()
        self.sub, self.net, self.spark, self.checkpoint = sub, sub.network, spark, checkpoint
        self.directory = checkpoint / "queries" / sub.name
        self.sync, self.partitions = settings.sync, settings.partitions
        self.log = TrainLog(self.directory, settings.epoch, sync=settings.sync)
        self.log.take_over(follows_dead=settings.follows_dead)
        self.log.check()
        self.run = run_of(self.directory, self.log.last())
        self.layout = lay_out(sub, fuse=settings.fuse)
        self.into_stages = reaching(self.net, self.layout.home)
        self.horizon_plan = HorizonPlan.of(self.net.nodes.values())
        self.done = done
        self.here: Callable[[Ticket], Ticket] = lambda ticket: ticket  # with slices where they are now
        self.train_run: Callable[[Trains, Ticket, Outcome], TrainRun] = train_run
        self.job_plans: dict[bool, PickledPlan] = {}  # by whether state is being rebuilt
        self._numbered: dict[int, Any] = {}
        self.guards = {
            name: guards_of(self.net, self.layout, name) for name in sub.inputs if name in self.net.sources
        }
        self.early = {
            name: early_of(self.net, self.layout, name) for name in sub.inputs if name in self.net.sources
        }
        self.guarded = frozenset().union(*(g.boxes for g in self.guards.values()))
        last = self.log.commit(self.log.last_commit())
        recovery = replace(settings.recovery, local=spark is None or is_local(spark))
        stateful = any(stage.keeps_state(self.net) for stage in self.layout.stages)
        self.places = Places(spark, self.partitions, stateful=stateful)
        self.versions = StateVersions(self.directory, self.log, recovery, sync=self.sync)
        self.outputs = Outputs(self.net, sub.outputs, self.run, sync=self.sync)
        self.outputs.start(last.moves if last is not None else (), self.log.last())
        self.started = uuid.uuid4().hex  # identifies this start of the query, see PartitionState
        self.loaded = 0  # trains with tuples since then
        self.state: State = {}
        self._ran = _Ran()  # the train that runs now, by whatever attempt
        self._behind = range(0)  # trains to run again before the next one, to have its state
        self._find_state(last)
        self.rebuilding = False  # a train is run again for its state only
        self.doing: tuple[str, ...] = ()  # the boxes whose job runs now, for messages
        self.writers = {name: self._writer(self.net.nodes[name]) for name in sub.points}
        self._must_not_be_ahead()
        self.dead_letters = DeadLetters(checkpoint, sync=self.sync)
        self._tails = {name: behind(self.net, self.net.nodes[name].inputs[0]) for name in sub.outputs}
        self.estimates = Estimates()
        self._origins = LetterOrigins(self.net)
        self._names = None if sub.written is None else WrittenNames(self.net, sub.written)
        self._compared = Compared.of(self.net, self.layout, self._names)
        self.sources_of = sources_of(self.net)

    def _writer(self, node: Node) -> PointWriter:
        key = node.key if isinstance(node, ConnectionPoint) else None
        schema = self.net.types[node.name].schema
        return PointWriter(self.checkpoint, node.name, schema, key, sync=self.sync)

    def _must_not_be_ahead(self) -> None:
        """Refuse a log that has lost its end: its points hold trains that it does not know."""
        last = self.log.last()
        for name, writer in self.writers.items():
            if writer.latest() > last:
                raise lost_records(
                    f"connection point '{name}' holds train {writer.latest()}, "
                    f"but the last ticket in {self.directory} is that of train {last}"
                )

    def _must_have(self, commit: Commit) -> None:
        """Refuse points that have lost their end: a published train is not in them."""
        for name in commit.points:
            if name in self.writers and self.writers[name].latest() < commit.train:
                raise lost_records(
                    f"train {commit.train} of {self.directory} is published, "
                    f"but connection point '{name}' ends with train {self.writers[name].latest()}"
                )

    # -- state

    def state_folder(self, stage: str) -> Path:
        """Where a stage keeps its state."""
        return self.versions.folder(stage)

    def _find_state(self, commit: Commit | None, *, contents: bool = False) -> None:
        """Find the state that the next train starts from, or an older one that trains can be run again from.

        Refuses if there is neither.
        """
        stages = {stage.name for stage in self.layout.stages if stage.keeps_state(self.net)}
        wanted = {} if commit is None else {n: t for n, t in commit.state.items() if n in stages}
        train = -1 if commit is None else commit.train
        start = self.versions.after(commit, self._without_void(wanted, train), stages, contents=contents)
        self.state = self._without_void(start.state, start.train)
        self._behind = range(start.train + 1, train + 1)

    def _without_void(self, state: StateView, train: int) -> State:
        void = voided(self.directory)
        return {stage: dict(tokens) for stage, tokens in state.items() if void.get(stage) != train}

    def forget_state(self) -> None:
        """Discard the state of boxes. The next start begins with empty state."""
        void_state(self.directory, self.state)
        self.versions.restart_empty(self.log.last_commit())

    def close_state(self) -> bool:
        """Leave the state so that the next start has it at once; False: it must rebuild it.

        A run without any train may have to rebuild it now: the next one may be of another network, which
        cannot.
        """
        try:
            if self._behind or self.versions.uses_snapshots:
                self.log.must_own()
                self._rebuild()
                self.versions.settle(self.log.last_commit(), self.state)
        except FencedError:
            pass  # the state is the follower's
        except Exception as error:
            _LOG.warning("%s: its state was not rebuilt: %s", self.sub.name, one_line(error))
            return False
        self.versions.close()
        return True

    def _rebuild(self) -> None:
        """Run trains again that are committed, for their state; nothing that they put out counts."""
        if not self._behind:
            return
        _LOG.warning(
            "%s: rebuilding its state: trains %d to %d run again",
            self.sub.name,
            self._behind[0],
            self._behind[-1],
        )
        self.rebuilding = True
        try:
            while self._behind:  # one that fails is tried again, see attempts.py
                train = self._behind[0]
                self.state = self._without_void(self._run_for_state(train), train)
                self._behind = self._behind[1:]
                crash_point("rebuilt-train")
        finally:
            self.rebuilding = False

    def _run_for_state(self, train: int) -> State:
        ticket, commit = self.log.ticket(train), self.log.commit(train)
        if ticket is None or commit is None:
            raise lost_records(f"{self.directory}: the ticket or the commit of train {train} is gone")
        outcome = Outcome()
        running = self.train_run(self, self.here(ticket), outcome)
        try:
            running.run()
        except Exception as error:
            self.log.must_own()
            if without_unreadable(ticket, error) is not None:
                raise _input_gone(self.directory, train) from error
            raise
        finally:
            running.release()
        self._must_be_as_committed(ticket, commit, outcome)
        return outcome.state

    def _must_be_as_committed(self, ticket: Ticket, commit: Commit, outcome: Outcome) -> None:
        """Refuse a train that ran again and did something else than the first time."""
        accounts = self._accounts(ticket, outcome)
        mine = {name: account for name, account in accounts.items() if name in self._compared.sources}
        check_accounts(mine, ticket.train)
        counts = outcome.counts if self._names is None else self._names.counts(outcome.counts)
        self._compared.check(self.directory, commit, counts, accounts)

    def _healed(self, train: int) -> bool:
        """Have the state again if its files have vanished from memory; False: they have not."""
        if not self.versions.uses_snapshots:
            return False
        try:
            self.versions.check(train - 1, self.state, contents=True)
        except StateError as error:
            _LOG.warning("%s: %s", self.sub.name, error)
            self._find_state(self.log.commit(train - 1), contents=True)
            self._rebuild()
            return True
        return False

    # -- trains

    def __call__(self, train: int) -> None:
        """Run a train by its ticket and publish it; a committed one is only published."""
        ticket = self.log.ticket(train)
        if ticket is None:
            self.log.must_own()
            raise MissingFileError(f"{self.directory}: the ticket of train {train} is missing")
        commit = self.log.commit(train)
        if commit is None:
            self._rebuild()
            ticket, commit = self._run_readable(self.here(ticket))
        outcome = self._hand_over(train)
        self._publish(ticket, commit)
        if self.done is not None:
            self.done(ticket, commit, outcome)
        self._ran = _Ran()
        crash_point("train-published")

    def _hand_over(self, train: int) -> Outcome:
        """Give the rows of a committed train to the sinks of this process; what the train told.

        A sink that raises is called again by the next attempt, and keeps no other sink from its rows. Those
        of a train that ran in another process are gone with that process.
        """
        if self._ran.train != train:
            return Outcome()
        failures = []
        for deliver in list(self._ran.deliveries):
            try:
                deliver()
                self._ran.deliveries.remove(deliver)
            except Exception as error:
                failures.append(error)
        if failures:
            raise failures[0]
        return self._ran.outcome

    def publish_again(self, train: int) -> tuple[Ticket, Commit] | None:
        """Publish a committed train once more; None if it is known to be published."""
        ticket, commit = self.log.ticket(train), self.log.commit(train)
        if ticket is None or commit is None:
            raise lost_records(f"{self.directory}: the ticket or the commit of train {train} is gone")
        if is_published(self.directory, train) or self.log.last() > train:
            self._must_have(commit)
            return None
        self._publish(ticket, commit)
        return ticket, commit

    def _run_readable(self, ticket: Ticket) -> tuple[Ticket, Commit]:
        """Run a train; input that cannot be read is left out, and the ticket amended before the next try."""
        healed = False
        while True:
            try:
                return ticket, self._run(ticket, Outcome())
            except FencedError:
                raise
            except Exception as error:
                if not healed and self._healed(ticket.train):
                    healed = True
                    continue
                readable = without_unreadable(ticket, error)
                if readable is None:
                    raise
                ticket = self.log.amend(readable)

    def _run(self, ticket: Ticket, outcome: Outcome) -> Commit:
        running, began = self.train_run(self, ticket, outcome), time.monotonic()
        try:
            running.run()
        except Exception:
            self.log.must_own()  # whoever was followed fails for that reason, whatever it ran into
            raise
        finally:
            running.release()
        outcome.phases["run"] = time.monotonic() - began
        outcome.delivered = self._delivered(outcome)
        self._count_points(outcome)
        accounts = self._accounts(ticket, outcome)
        check_accounts(accounts, ticket.train)
        crash_point("train-before-commit")
        dead = self._origins.letters(ticket, outcome.dead)
        if self._names is not None:
            dead, outcome.counts, outcome.costs = self._as_written(self._names, dead, outcome)
        self.log.must_own()  # letters have no owner in their names: those of a follower must stay
        self.dead_letters.append(self.sub.name, ticket.train, dead)
        # Readers of a point may rely on the horizon that this train itself has acted on.
        quiet = asleep(self.net, ticket.idle)
        points = {
            n: PointPart(
                tuple(outcome.points.get(n, ())), running.reached.behind[n], ticket.final, n in quiet
            )
            for n in self.sub.points
        }
        commit = Commit(
            ticket.train,
            newest=_newest(ticket, running.newest()),
            moves=tuple(outcome.moves),
            points=points,
            counts=outcome.counts,
            dead=int(pc.sum(dead.column("tuples")).as_py() or 0),
            finished=time.time(),
            joins={name: tuple(reports) for name, reports in outcome.joins.items()},
            costs=outcome.costs,
            accounts=accounts,
            epoch=self.log.epoch,
            amended=ticket.amended,
            state=outcome.state,
            network=self.versions.recovery.network if self.versions.uses_snapshots else "",
            valves=_flows(ticket, accounts, outcome),
        )
        self._ran = _Ran(ticket.train, outcome, self._deliveries(outcome))
        self.log.write_commit(commit)
        self.state = outcome.state
        crash_point("train-after-commit")
        return commit

    def _deliveries(self, outcome: Outcome) -> list[Callable[[], None]]:
        """What gives its rows to each output that the driver serves."""
        rows = {name: pa.concat_tables(tables) for name, tables in outcome.rows.items()}
        return [
            partial(self.outputs.deliver, end, table)
            for name, table in rows.items()
            for end in self.terminals(name)
        ]

    def _as_written(
        self, names: WrittenNames, dead: pa.Table, outcome: Outcome
    ) -> tuple[pa.Table, dict[str, dict[str, int]], dict[str, BoxCost]]:
        """Letters, counts and costs by the boxes as written, whatever form of them has run."""
        boxes = pa.array([names.box(box) for box in dead.column("box").to_pylist()], pa.string())
        named = dead.set_column(dead.column_names.index("box"), "box", boxes)
        cpu = names.costs({name: cost.cpu for name, cost in outcome.costs.items()})
        wall = names.costs({name: cost.wall for name, cost in outcome.costs.items()})
        costs = {name: BoxCost(wall[name], cpu[name]) for name in cpu}
        return named, names.counts(outcome.counts), costs

    def _count_points(self, outcome: Outcome) -> None:
        """Count a point's tuples as its writer put them there, however many read them."""
        for name in self.sub.inputs:
            if name not in self.net.sources:
                outcome.counts.pop(name, None)
        for name in self.sub.points:
            rows = sum(file.rows for file in outcome.points.get(name, []))
            outcome.counts[name] = {**outcome.counts.get(name, {}), "in": rows, "out": rows}

    def _delivered(self, outcome: Outcome) -> dict[str, int]:
        """How many tuples left through each output in this train."""
        counted = {name: counts.get("out", 0) for name, counts in outcome.counts.items()} | outcome.written
        return {name: counted[tail] for name, tail in self._tails.items() if counted.get(tail, 0)}

    def _accounts(self, ticket: Ticket, outcome: Outcome) -> dict[str, Account]:
        """What became of the tuples that each source offered; whole files that were refused count too."""
        for name, pieces in refused_pieces(ticket).items():
            tuples = sum(piece.get("tuples", 1) for piece in pieces)
            outcome.count(name, **{"offered": tuples, "in": tuples, "dead": tuples})
        for name, left in ticket.shed.items():
            outcome.count(name, offered=left.tuples, shed=left.tuples)
        sources = [name for name in self.sub.inputs if name in self.net.sources]
        return {name: Account.of_counts(outcome.counts.get(name, {})) for name in sources}

    def _publish(self, ticket: Ticket, commit: Commit) -> None:
        self.outputs.publish(commit.moves)
        kept = kept_shares(self.sub, commit.valves, ticket.valves, kept_above(ticket))
        for name, point in commit.points.items():
            if name not in self.writers:
                continue  # it has left the network since
            self.writers[name].commit(
                ticket.train,
                point.files,
                point.horizon,
                final=point.final,
                idle=point.idle,
                arrival=ticket.arrival,
                since=ticket.since,
                offered=ticket.rows,
                kept=kept.get(name, 1.0),
            )

    def numbered(self, tasks: int) -> Any:
        """So many partitions without data, for Spark: a job's tasks read their input themselves."""
        if tasks not in self._numbered:
            self._numbered[tasks] = self.spark.sparkContext.parallelize(range(tasks), tasks)
        return self._numbered[tasks]

    def terminals(self, name: str) -> list[str]:
        """Outputs, points and views fed by a box, directly or through points that pass its tuples on.

        There are none while state is being rebuilt: all that leaves has left already.
        """
        ends: list[str] = []
        if self.rebuilding:
            return ends
        for reader in self.net.readers(name):
            if not self.net.nodes[reader].is_box:
                ends += [reader, *self.terminals(reader)]
        return ends


def _newest(ticket: Ticket, seen: Mapping[str, int]) -> dict[str, int]:
    """The largest time of each input. Slices left out unread count; entries of a point tell theirs."""
    unread = {name: left.newest for name, left in ticket.shed.items() if left.newest is not None}
    points = {
        name: max(known)
        for name, slices in ticket.slices.items()
        if (known := [e.newest for e in slices if isinstance(e, PointEntries) and e.newest is not None])
    }
    told = (seen, unread, points)
    return {name: max(each[name] for each in told if name in each) for name in {**seen, **unread, **points}}


def _flows(ticket: Ticket, accounts: Mapping[str, Account], outcome: Outcome) -> dict[str, ValveFlow]:
    """What came to each valve of the train and what it shed. At a source, the account tells."""
    places = {valve.at for valve in ticket.valves}
    known = {name: ValveFlow(one.offered, one.shed) for name, one in accounts.items() if name in places}
    return {**dict.fromkeys(sorted(places), ValveFlow()), **outcome.valves, **known}


def _input_gone(directory: Path, train: int) -> MissingFileError:
    return MissingFileError(
        f"{directory}: train {train} must run again to rebuild the state, but its input is gone",
        hint="input must stay until a snapshot covers it, see stays= and --recovery; "
        "restore the input, or restore the checkpoint from a copy",
    )
