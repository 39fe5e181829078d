"""Plans the next train of a sub-network: what it takes, which horizons hold, which inputs are idle.

The planner remembers what the tickets so far have said. It writes nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.connectors.contract import Input, Position, Taken, TicketPart
from penstock.engine.arrow.valves import by_place, choosing
from penstock.engine.contract.arrivals import arrivals_of
from penstock.engine.contract.backlog import InputBacklog
from penstock.engine.contract.commit import Commit
from penstock.engine.contract.situation import RecentCost, Situation, TrainCost
from penstock.engine.contract.steering import Steering
from penstock.engine.contract.ticket import UNKNOWN, Ticket
from penstock.engine.contract.valve import LeftOut, Progress, Valve, next_valves
from penstock.engine.spark.entry.points import asleep
from penstock.engine.spark.entry.slice_entry import left_out
from penstock.engine.spark.layout.horizons import HorizonPlan, Reached
from penstock.model.boxes import Join, Source, Trait
from penstock.model.diffused.roles import Report, Roles, first_roles, fits, step
from penstock.model.errors import PenstockError
from penstock.model.qos import QoS
from penstock.rewrite.subnetworks import SubNetwork

_RECENT_TRAINS = 32  # the cost of a sub-network covers this many trains
_NO_TUPLE = 2**63 - 1  # a time behind all others


@dataclass(frozen=True)
class TakenInput:
    """What all inputs gave at one look, and what follows from it."""

    taken: Mapping[str, Taken]
    horizons: dict[str, int]
    idle: list[str]
    now: float  # seconds, on the clock of intervals
    reached: Reached

    @property
    def fresh(self) -> bool:
        """Whether there is anything new to process."""
        return any(part.slices or part.more or part.refused for part in self.taken.values())

    @property
    def waiting(self) -> bool:
        """Whether input is still being written."""
        return any(part.waiting for part in self.taken.values())


@dataclass
class _Memory:
    """What the tickets and commits so far have said."""

    newest: dict[str, int] = field(default_factory=dict)
    horizons: dict[str, int] = field(default_factory=dict)
    positions: dict[str, Position | None] = field(default_factory=dict)
    idle: list[str] = field(default_factory=list)
    since: float | None = None
    final: bool = False
    joins: dict[str, Roles] = field(default_factory=dict)
    reports: dict[str, tuple[Report, ...]] = field(default_factory=dict)
    valves: tuple[Valve, ...] = ()
    reached: Reached = field(default_factory=lambda: Reached({}, {}, {}))


class TicketPlanner:
    """Looks at the inputs of one sub-network and plans its trains, one after the other."""

    def __init__(
        self, sub: SubNetwork, inputs: Mapping[str, Input[Any]], steering: Steering, partitions: int
    ) -> None:
        self._sub, self._inputs, self._steering, self._partitions = sub, inputs, steering, partitions
        self._horizon_plan = HorizonPlan.of(sub.network.nodes.values())
        self._spread = [n for n in sub.network.nodes.values() if isinstance(n, Join) and n.spread]
        self._stateful = any(Trait.STATEFUL in n.traits for n in sub.network.nodes.values())
        self._qos = _qos(sub)
        self._memory = _Memory()
        self._taken: Mapping[str, Taken] = {}  # by the last look, until the next one goes on behind it
        self._seen: dict[str, float] = {}  # when each input last gave anything, on the clock of intervals
        self._departed: float | None = None
        self._backlog = InputBacklog(inputs, steering.clock, steering.wall)
        self._costs: deque[TrainCost] = deque(maxlen=_RECENT_TRAINS)
        self._recent = RecentCost()

    @property
    def final(self) -> bool:
        """Whether the last ticket closes all windows."""
        return self._memory.final

    def resume(self, ticket: Ticket) -> None:
        """Remember what the last ticket of an earlier run said."""
        self._memory = _Memory(
            newest=dict(ticket.newest),
            horizons=dict(ticket.horizons),
            positions=dict(ticket.positions),
            idle=list(ticket.idle),
            since=ticket.since,
            final=ticket.final,
            joins=dict(ticket.joins),
            valves=ticket.valves,
            reached=self._horizon_plan.reached(ticket.horizons, ticket.idle, ticket.lifted),
        )

    def learn(self, commit: Commit) -> None:
        """Remember what a train reported."""
        known = self._memory.newest
        for name, newest in commit.newest.items():
            known[name] = max(newest, known.get(name, UNKNOWN))
        self._memory.reports = commit.joins

    def note_cost(self, cost: TrainCost) -> None:
        """Remember what a train cost."""
        self._costs.append(cost)
        self._recent = RecentCost.of(self._costs)

    def situation(self, train: int, now: float) -> Situation:
        """What the policy may look at."""
        inputs = {name: self._backlog.situation(name) for name in self._inputs}
        return Situation(self._sub.name, train, now, self._departed, inputs, self._recent, self._qos)

    def look_ahead(self) -> None:
        """Look at what waits, without taking it."""
        self._backlog.look(self._memory.positions)

    def look(self, length: int, now: float) -> TakenInput:
        """Take up to `length` tuples of each input.

        Until `passed` or `written` follows, the next look begins at the same place: nothing is lost with a
        ticket that could not be written, or with an input that could not be read.
        """
        positions = self._memory.positions
        for source in self._inputs.values():
            source.max_bytes = self._steering.max_bytes
        taken = {name: self._inputs[name].take(positions.get(name), length) for name in self._inputs}
        self._taken = taken
        for name, part in taken.items():
            if part.slices:
                self._seen[name] = now
            else:
                self._seen.setdefault(name, now)
        if self.final:
            _must_be_used_up(taken)
        horizons, idle = self._horizons(taken, now)
        return TakenInput(taken, horizons, idle, now, self._reached(horizons, idle))

    def passed(self) -> None:
        """Go on behind the last look: it gave no reason for a train, or its ticket is on disk."""
        for name, part in self._taken.items():
            self._memory.positions[name] = part.position
            self._backlog.took(name, part)
        self._taken = {}

    def must_run(self, looked: TakenInput) -> bool:
        """Whether what the inputs gave, or no longer give, is a reason for a train."""
        memory = self._memory
        changed = (looked.horizons, looked.reached.before) != (memory.horizons, memory.reached.before)
        passing = bool(self._sub.points) and (changed or self._dozing(looked.idle))
        return looked.fresh or passing or (self._stateful and changed)

    def _dozing(self, idle: list[str]) -> bool:
        """Whether to tell readers of a point that nothing comes for now.

        When it wakes up, its tuples tell them.
        """
        if not idle:
            return False
        newly = asleep(self._sub.network, idle) - asleep(self._sub.network, self._memory.idle)
        return not newly.isdisjoint(self._sub.points)

    def ticket(self, train: int, looked: TakenInput, *, final: bool, epoch: int) -> Ticket:
        """The ticket of the next train."""
        arrival, taken, valves = self._steering.wall(), looked.taken, self._valves(looked)
        slices, shed = self._let_through(taken, valves)
        return Ticket(
            train=train,
            arrival=arrival,
            slices=slices,
            positions={name: part.position for name, part in taken.items()},
            horizons=looked.horizons,
            newest=dict(self._memory.newest),
            drop_rates=dict(self._steering.drop_rates),
            joins=self._roles(),
            idle=looked.idle,
            final=final,
            rows=sum(part.rows for part in taken.values()),
            since=self._oldest(taken, arrival),
            refused={name: part.refused for name, part in taken.items() if part.refused},
            epoch=epoch,
            arrivals=arrivals_of(taken.values(), arrival),
            valves=valves,
            shed=shed,
            monitors=dict(self._steering.monitors),
            job_tuples=self._steering.job_tuples,
            one_task_tuples=self._steering.one_task_tuples,
            lifted=looked.reached.lifted,
            late_at=self._late_at(taken),
        )

    def _let_through(
        self, taken: Mapping[str, Taken], valves: tuple[Valve, ...]
    ) -> tuple[dict[str, Sequence[TicketPart]], dict[str, LeftOut]]:
        """The slices of each input, and what valves leave out unread."""
        slices = {name: part.slices for name, part in taken.items()}
        shed: dict[str, LeftOut] = {}
        for name, mine in by_place(valves).items():
            node = self._sub.network.nodes.get(name)
            if isinstance(node, Source) and name in taken:
                slices[name], gone = left_out(node, taken[name], mine)
                shed |= {name: gone} if gone.tuples else {}
        return slices, shed

    def _valves(self, looked: TakenInput) -> tuple[Valve, ...]:
        """What is shed in the coming train."""
        memory, wanted = self._memory, self._steering.valves
        if not (wanted or memory.valves):
            return ()
        return next_valves(wanted, memory.valves, lambda valve: self._progress(valve, looked))

    def _progress(self, valve: Valve, looked: TakenInput) -> Progress:
        """How far the windows are among which a valve chooses.

        Their boxes may be further than an input: nobody waits for one that is idle. Or not as far, behind
        others that hold tuples back.
        """
        memory, boxes = self._memory, choosing(self._sub.network, [valve])
        closed = _least_before(boxes, memory.reached, memory.horizons)
        complete = _least_before(boxes, looked.reached, looked.horizons)
        return Progress(closed, complete, max(memory.newest.values(), default=None))

    def written(self, ticket: Ticket, now: float) -> None:
        """Remember the ticket of the last look, which is on disk."""
        self.passed()
        memory = self._memory
        memory.horizons, memory.idle, memory.since = ticket.horizons, ticket.idle, ticket.since
        memory.joins, memory.final, memory.valves = ticket.joins, ticket.final, ticket.valves
        memory.reached = self._horizon_plan.reached(ticket.horizons, ticket.idle, ticket.lifted)
        self._departed = now

    def _roles(self) -> dict[str, Roles]:
        """The roles of diffused joins in the coming train.

        They follow from the train before and from what its servers reported. So do the horizons: those of the
        train before hold for every tuple of the coming one. Its own may hold only after it, for example
        behind windows that it closes.
        """
        if not self._spread:
            return {}
        return {node.name: self._next_roles(node) for node in self._spread}

    def _next_roles(self, node: Join) -> Roles:
        memory, first = self._memory, first_roles(node, self._partitions)
        before = memory.joins.get(node.name)
        if before is None:
            return first
        if not fits(before, node, first.servers):
            # A join that was replaced had this name. Its state is void, but its epochs have been told.
            return replace(first, epoch=before.epoch + 1)
        left, right = memory.reached.before.get(node.name, (UNKNOWN, UNKNOWN))
        reports, forced = memory.reports.get(node.name, ()), self._steering.schemes.get(node.name)
        return step(node, before, reports, (left, right), forced)

    def _oldest(self, taken: Mapping[str, Taken], arrival: float) -> float | None:
        """Since when the oldest tuple of this train has been waiting.

        If there are no tuples, use those that have moved the horizons.
        """
        full = [part for part in taken.values() if part.slices]
        known = [part.arrived for part in full or taken.values() if part.arrived is not None]
        if known:
            return min(known)
        return arrival if full else self._memory.since

    def _horizons(self, taken: Mapping[str, Taken], now: float) -> tuple[dict[str, int], list[str]]:
        """What is promised about each input before this train, and which inputs nobody waits for."""
        horizons, idle = {}, []
        for name, part in taken.items():
            node = self._sub.network.nodes[name]
            if isinstance(node, Source):
                horizons[name] = self._source_horizon(node, part)
                silent = node.idle is not None and now - self._seen.get(name, now) >= node.idle / 1e6
            else:
                horizons[name] = UNKNOWN if part.horizon is None else part.horizon
                # The writer says so: it knows the sources, however far up they are.
                silent = part.idle and not part.more
            if silent and not part.slices:
                idle.append(name)
        # A horizon never goes back. That of an idle input stays: others pass it where it meets them.
        return {n: max(h, self._memory.horizons.get(n, UNKNOWN)) for n, h in horizons.items()}, idle

    def _reached(self, horizons: dict[str, int], idle: list[str]) -> Reached:
        """How far the boxes are then. Looks are frequent, and most find what the last train has found."""
        memory = self._memory
        if (horizons, idle) == (memory.horizons, memory.idle):
            return memory.reached
        return self._horizon_plan.reached(horizons, idle, memory.reached.lifted)

    def _late_at(self, taken: Mapping[str, Taken]) -> list[str]:
        """Boxes that went on without an idle input, which now brings tuples from behind their horizons."""
        memory = self._memory
        least = self._horizon_plan.reached({n: self._least(n, part) for n, part in taken.items()}).before
        return [
            box
            for box, acted in memory.reached.before.items()
            if any(low < horizon for low, horizon in zip(least[box], acted, strict=True))
        ]

    def _least(self, name: str, part: Taken) -> int:
        """No tuple of the coming train is older than this."""
        if not part.slices:
            return _NO_TUPLE
        promised = self._memory.horizons.get(name, UNKNOWN)
        return promised if part.oldest is None else min(promised, part.oldest)

    def _source_horizon(self, node: Source, part: Taken) -> int:
        newest = self._memory.newest.get(node.name, UNKNOWN)
        if node.format.in_order and part.newest is not None:
            newest = max(newest, part.newest)  # deliveries tell their time before they are read
        return newest - node.lateness + (1 if node.whole else 0) if newest != UNKNOWN else UNKNOWN


def _least_before(boxes: Iterable[str], reached: Reached, horizons: Mapping[str, int]) -> int:
    """The least horizon in front of these boxes; without any, that of the inputs."""
    before = [horizon for box in boxes for horizon in reached.before.get(box, (UNKNOWN,))]
    return min(before or horizons.values(), default=UNKNOWN)


def _must_be_used_up(taken: Mapping[str, Taken]) -> None:
    """Refuse new tuples: every window is closed, and one more tuple would open it a second time."""
    for name, part in taken.items():
        if part.slices or part.more or part.refused:
            raise PenstockError(
                f"this checkpoint is closed: a run with `close` ended its windows, "
                f"and '{name}' has new input",
                hint="use another checkpoint, or leave out `close` (`--close`) when more input will come",
            )


def _qos(sub: SubNetwork) -> dict[str, QoS]:
    """The QoS of the outputs and views that have one."""
    return {name: node.qos for name, node in sub.network.nodes.items() if node.qos is not None}
