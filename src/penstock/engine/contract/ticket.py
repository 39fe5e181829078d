"""The ticket of a train: everything that steers one micro-batch, on disk before the train runs (A76).

Spark's own offset is only the train's number. What the train reads, which horizons hold, at which rates boxes
drop, what valves shed: all of it is in the ticket. So a train that is replayed after a crash is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from penstock.connectors.contract import Arrival, Position, RefusedInput, TicketPart
from penstock.engine.contract.steering import Monitor
from penstock.engine.contract.valve import LeftOut, Valve
from penstock.model.diffused.roles import Roles
from penstock.model.json_types import JsonMapping, JsonObject
from penstock.store.points.manifest import NO_HORIZON

# The horizon of an input about which nothing is promised yet.
UNKNOWN = NO_HORIZON


@dataclass(frozen=True)
class Ticket:
    """One train: what it reads of each input, where each input stands afterwards, and what steers it."""

    train: int
    arrival: float
    slices: dict[str, Sequence[TicketPart]] = field(default_factory=dict)
    positions: dict[str, Position | None] = field(default_factory=dict)
    horizons: dict[str, int] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)  # largest _ts of earlier trains, by source
    drop_rates: dict[str, float] = field(default_factory=dict)
    joins: dict[str, Roles] = field(default_factory=dict)  # how diffused joins are spread
    idle: list[str] = field(default_factory=list)
    final: bool = False
    rows: int = 0
    since: float | None = None  # when the oldest tuple that this train is about came to the network
    # Files that cannot be read, by source.
    refused: dict[str, Sequence[RefusedInput]] = field(default_factory=dict)
    epoch: int = 0  # of the owner that wrote it
    # What the train could not read when it ran, by source: the ticket was written again without it.
    left_out: dict[str, Sequence[RefusedInput]] = field(default_factory=dict)
    amended: str = ""  # the name of its amendment, if it is one
    arrivals: Sequence[Arrival] = ()  # when its tuples came, earliest first (A03)
    valves: tuple[Valve, ...] = ()  # what is shed; none is open
    shed: dict[str, LeftOut] = field(default_factory=dict)  # by source: slices that a valve left out unread
    job_tuples: int = 0  # up to so many tuples it is a job, although others of its length are not
    one_task_tuples: int = 0  # up to so many it is one task

    # By box that goes on without an idle input: the horizons in front of it, beyond what was promised.
    lifted: dict[str, tuple[int, ...]] = field(default_factory=dict)
    late_at: list[str] = field(default_factory=list)  # boxes that may find tuples of the train late
    monitors: Mapping[str, Monitor] = field(default_factory=dict)  # what somebody watches, by its own name

    @property
    def empty(self) -> bool:
        """True for a train that only moves horizons or closes windows."""
        return not any(self.slices.values())

    def plain(self) -> JsonObject:
        """For the disk."""
        return {
            **vars(self),
            "slices": {name: [piece.plain() for piece in slices] for name, slices in self.slices.items()},
            "positions": {name: at and at.plain() for name, at in self.positions.items()},
            "joins": {name: roles.plain() for name, roles in self.joins.items()},
            "monitors": {name: monitor.plain() for name, monitor in self.monitors.items()},
            "valves": [valve.plain() for valve in self.valves],
            "shed": {name: asdict(left) for name, left in self.shed.items()},
        }

    @classmethod
    def of(cls, plain: JsonMapping) -> Ticket:
        """From the disk."""
        read = {
            "slices": {name: [TicketPart.of(s) for s in slices] for name, slices in plain["slices"].items()},
            "positions": {name: at and Position.of(at) for name, at in plain["positions"].items()},
            "joins": {name: Roles.of(roles) for name, roles in plain["joins"].items()},
            "arrivals": tuple((at, tuples) for at, tuples in plain["arrivals"]),
            "monitors": {name: Monitor.of(each) for name, each in plain.get("monitors", {}).items()},
            # A ticket of an older version has none.
            "valves": tuple(map(Valve.of, plain.get("valves", ()))),
            "shed": {name: LeftOut.of(left) for name, left in plain.get("shed", {}).items()},
            "lifted": {name: tuple(arrows) for name, arrows in plain.get("lifted", {}).items()},
        }
        return cls(**{**plain, **read})
