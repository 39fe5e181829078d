"""One train through the boxes of a stage, in one task: each gets its tuples, and its work is counted."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.arrow.boxes.column_latch import ColumnLatchLogic
from penstock.engine.arrow.boxes.diffused_join import DiffusedJoin
from penstock.engine.arrow.logic import DEAD_SCHEMA, Answer, Logic
from penstock.engine.arrow.valves import passed
from penstock.engine.contract.cost import BoxCost
from penstock.engine.contract.valve import Valve, ValveFlow
from penstock.engine.spark.layout.plan import FED
from penstock.model.boxes import Drop, Node, Trait, Windowed
from penstock.model.diffused.roles import Report
from penstock.model.errors import NetworkError, PenstockError, one_line, raised_at
from penstock.model.types import STAMP

if TYPE_CHECKING:
    from penstock.engine.spark.tasks.stage import StageTask

Entering = tuple[str, int]  # a box of the stage and the number of its input


class StageRun:
    """One train through the boxes of a stage, in order.

    `entries` are the tables that enter, as the task lists them.
    """

    def __init__(
        self, task: StageTask, logics: dict[str, Logic], entries: list[pa.Table], partition: int = 0
    ) -> None:
        self.task, self.logics, self.partition = task, logics, partition
        self.entering: dict[Entering, pa.Table] = dict(zip(task.entries, entries, strict=True))
        self.tables: dict[str, pa.Table] = {}  # after each box
        self.dead: list[pa.Table] = []
        self.counts: dict[str, dict[str, int]] = {}
        self.costs: dict[str, BoxCost] = {}
        self.joins: dict[str, dict[str, Any]] = {}  # reports of diffused joins
        self.valves: dict[str, ValveFlow] = {}  # by place
        self._proven = self._proven_horizons()
        self._partials = {task.entries[number] for number in task.partials}

    def run(self) -> None:
        """Run all boxes and measure the cost of each."""
        for node in self.task.nodes:
            wall, cpu = time.perf_counter(), time.process_time()
            self._run_box(node)
            # Measure the whole process: Arrow and numba may use threads of their own.
            self.costs[node.name] = BoxCost(time.perf_counter() - wall, time.process_time() - cpu)

    def _run_box(self, node: Node) -> None:
        inputs = [self._input(node, index, name) for index, name in enumerate(node.inputs)]
        logic = self.logics[node.name]
        self._steer(node, logic)
        try:
            answer = self._answer(node, logic, inputs)
        except PenstockError:
            raise
        except Exception as error:
            where = raised_at(error)
            raise NetworkError(
                f"it failed: {one_line(error)}",
                box=node.name,
                where=node.where,
                found=f"{type(error).__name__} at {where}" if where.file else type(error).__name__,
                hint="--verbose shows the whole trace",
            ) from error
        self._guard(node, inputs, answer.out)
        self._take(node.name, logic, inputs, answer)

    def _steer(self, node: Node, logic: Any) -> None:
        """Apply what the ticket says to some boxes: rates of drops, windows not to tell, roles of joins."""
        if isinstance(node, Drop):
            logic.rate = self.task.drop_rates.get(node.name, node.rate)
        if isinstance(node, Windowed):
            logic.choosing = self.task.choosing.get(node.name, ())
        if isinstance(logic, DiffusedJoin):
            logic.steer(self.task.joins[node.name], self.partition)

    def _answer(self, node: Node, logic: Any, inputs: list[pa.Table]) -> Answer:
        horizons = self._horizons(node)
        if any((node.name, index) in self._partials for index in range(len(inputs))):
            # Spark has made partial aggregates; put them into the state unchanged.
            logic.merge(inputs[0].drop_columns([FED]))
            answer: Answer = logic.close(horizons, final=self.task.final)
        else:
            answer = logic.process(inputs, horizons, final=self.task.final)
        return answer

    def _take(self, name: str, logic: Logic, inputs: list[pa.Table], answer: Answer) -> None:
        self.tables[name] = answer.out
        if answer.dead.num_rows:
            self.dead.append(answer.dead.cast(DEAD_SCHEMA))
        self.counts[name] = {
            **(logic.figures() if isinstance(logic, ColumnLatchLogic) else {}),
            "in": sum(_fed(table) for table in inputs),
            "out": answer.out.num_rows,
            "dead": answer.dead.num_rows,
        }
        if isinstance(logic, DiffusedJoin):
            self._take_report(name, logic.report)

    def _take_report(self, name: str, report: Report) -> None:
        """Record what a server of a diffused join did; a tuple sent to several counts once as input."""
        self.joins[name] = report.plain()
        self.counts[name] |= {
            "in": sum(report.owned),
            "received": sum(report.received),
            "operations": report.operations,
            "dropped": report.dropped + report.replaced,
            "replaced": report.replaced,
        }

    def _input(self, node: Node, index: int, name: str) -> pa.Table:
        table = self.entering.get((node.name, index))
        table = table if table is not None else self.tables[name]
        valves = self.task.valves.get((node.name, index))
        return table if valves is None else self._let_through(table, node.name, index, valves)

    def _let_through(self, table: pa.Table, box: str, index: int, valves: tuple[Valve, ...]) -> pa.Table:
        """What the valves on an arrow let pass."""
        left, shed = passed(valves, table, self.task.inputs[box][index].schema)
        known = self.valves.get(valves[0].at, ValveFlow())
        self.valves[valves[0].at] = known + ValveFlow(table.num_rows, shed)
        return left

    def _horizons(self, node: Node) -> tuple[int, ...]:
        """The ticket's horizons, or better ones proved by the newest tuple in this partition."""
        known = self.task.horizons[node.name]
        return tuple(
            max(horizon, self._proven.get((node.name, index), horizon)) for index, horizon in enumerate(known)
        )

    def _proven_horizons(self) -> dict[Entering, int]:
        # A tuple proves that its source has reached the tuple's time: later trains bring nothing older than
        # that, minus the lateness. So keys here need not wait for the next ticket.
        proven = {}
        for (entering, table), lateness in zip(self.entering.items(), self.task.lateness, strict=True):
            if lateness is None or not table.num_rows:
                continue
            newest = pc.max(table.column(STAMP)).as_py()
            if newest is not None:
                proven[entering] = newest - lateness
        return proven

    def _guard(self, node: Node, inputs: list[pa.Table], out: pa.Table) -> None:
        # What a latch releases may have come with an earlier train, so its keys are checked where its
        # function is called. Windows produce the keys themselves.
        if Trait.STATELESS in node.traits:
            for key in self.task.guards.get(node.name, ()):
                keeps_key(node, key, [chunk for table in inputs for chunk in table.column(key).chunks], out)


def _fed(table: pa.Table) -> int:
    """The number of tuples fed to a box: with partial aggregates, more than its rows."""
    return int(pc.sum(table.column(FED)).as_py() or 0) if FED in table.schema.names else int(table.num_rows)


def keeps_key(node: Node, key: str, known: list[Any], out: Any) -> None:
    """Refuse an answer with a key that did not come in: its tuples would be in the wrong partition."""
    had = pa.chunked_array(known, type=out.schema.field(key).type)
    if out.num_rows and pc.any(pc.invert(pc.is_in(out.column(key), value_set=pc.unique(had)))).as_py():
        raise PenstockError(
            f"{node.where}: box '{node.name}': its function produced a value of the key '{key}' "
            "that did not come in; "
            "a column with a group key's name must keep the key (give it another name, or group again)"
        )
