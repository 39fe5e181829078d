"""Trains without Spark: the same tickets, tasks, state and files, in this process.

Between two phases of a job Spark only carries records to the partition of their label. Here a loop does that.
So a network is tested in milliseconds, and profiled without a JVM around it.
"""

from __future__ import annotations

import atexit
import gc
from collections.abc import Callable
from functools import cache
from pathlib import Path

from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.steering import Steering
from penstock.engine.contract.ticket import Ticket
from penstock.engine.contract.train_done import TrainDone
from penstock.engine.spark.jobs.forms import Form, form_of
from penstock.engine.spark.jobs.plan import PickledPlan
from penstock.engine.spark.jobs.task import Labelled, Note, PhaseTask, TrainPart, WholeTrainTask
from penstock.engine.spark.layout.plan import Layout
from penstock.engine.spark.outcome import Outcome
from penstock.engine.spark.recovery.state_versions import Recovery
from penstock.engine.spark.runs.job_run import JobRun
from penstock.engine.spark.trains.query import SubnetworkQuery
from penstock.engine.spark.trains.query_settings import QuerySettings
from penstock.engine.spark.trains.train import Trains
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import split


class DryJobRun(JobRun):
    """One ticket through all phases, here and now."""

    def _notes(self, plan: PickledPlan, part: TrainPart) -> list[Note]:
        """As in production, but for Spark's exchange."""
        if self.form is Form.ONE_TASK:
            return [note for _, note in WholeTrainTask(plan, part)(0, ())]
        width = self.trains.partitions
        records: list[Labelled] = []
        for number in range(len(plan.load().phases)):
            mine = [[record for record in records if record[0] == p] for p in range(width)]
            task = PhaseTask(plan, part, number)
            records = [record for p in range(width) for record in task(p, mine[p])]
        return [note for _, note in records]


def dry_job(trains: Trains, ticket: Ticket, outcome: Outcome) -> DryJobRun:
    """A run without Spark: in the form of the ticket, or as tasks where it would be DataFrames."""
    _free_modules_at_the_end()
    form = trains.settings.form(ticket, trains.layout)
    return DryJobRun(trains, ticket, outcome, Form.TASKS if form is Form.FRAMES else form)


@cache
def _free_modules_at_the_end() -> None:
    # Tasks freeze the collector of their worker. Here that is this process, which must free its modules at
    # the end: DuckDB's bindings print each object that is still there.
    atexit.register(gc.unfreeze)


class DryRun:
    """A network of one sub-network fed by a feed; `train` takes the next train, `run_all` what there is.

    `listen`: called after each committed train, as `Runtime.on_train` does. `epoch`: of the owner.
    `sync`: what it writes survives a power cut. `recovery`: in seconds; state is kept by snapshots, which
    are written between trains. `form`: which way each train runs.
    """

    def __init__(  # noqa: PLR0913 - settings of a query, for tests to choose
        self,
        network: Network,
        checkpoint: Path,
        *,
        length: int = 500_000,
        partitions: int = 2,
        fuse: bool = True,
        epoch: int = 0,
        sync: bool = False,
        recovery: float | None = None,
        listen: Callable[[TrainDone], None] = lambda _done: None,
        form: Callable[[Ticket, Layout], Form] = form_of,
    ) -> None:
        (sub,) = split(network)
        steering = Steering(AsSoonAsPossible(length))
        settings = QuerySettings(
            partitions,
            once=True,
            close=True,
            fuse=fuse,
            epoch=epoch,
            sync=sync,
            recovery=Recovery(recovery, inline=True),
            listen=listen,
            form=form,
        )
        self.query = SubnetworkQuery(
            sub,
            None,  # type: ignore[arg-type]  # a dry run has no session
            checkpoint,
            steering,
            settings,
        )
        self.query.trains.train_run = dry_job
        self.query.publish_again()

    def train(self) -> bool:
        """Run one train; False: there is no more."""
        if not self.query.drained():
            self.query.run_train(self.query.last)  # one that a crash has left behind
            return True
        while not self.query.finished.is_set():
            if self.query.next_ticket():
                self.query.run_train(self.query.last)
                return True
        return False

    def run_all(self) -> None:
        """Run until the feed is used up."""
        while self.train():
            pass
