"""A form in which a sub-network runs in place of the one as written, by the figures that led to it.

Not the boxes are kept but the figures: functions have no text. The rules are pure, so the same figures give
the same boxes again, after a restart too. The network as written stays the truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from penstock.model.costs import Line, MeasuredBox, MeasuredCosts
from penstock.model.json_types import JsonMapping, JsonObject
from penstock.model.writing.network import Network
from penstock.rewrite.cost_model import CostModel, cost_model
from penstock.rewrite.optimize import RULES, Plan, PlanStep, optimize
from penstock.rewrite.settling import lacking, settled
from penstock.rewrite.subnetworks import SubNetwork

_PRUNE = tuple(rule for rule in RULES if rule.name == "prune columns")


@dataclass(frozen=True)
class Form:
    """What the rules were told.

    `pruned`: columns that nobody reads were left out before the first train, so the state never had them.
    `rewritten`: all rules were applied, by the figures `boxes` and `rates`; boxes `in_use` had state already.
    `newest`: the time of the newest tuple that had come before, in microseconds. `settled`: see `CostModel`.
    """

    pruned: bool = False
    rewritten: bool = False
    boxes: Mapping[str, MeasuredBox] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    in_use: frozenset[str] = frozenset()
    newest: int | None = None
    settled: frozenset[tuple[str, str]] = frozenset()

    def start(self, written: Network) -> Network:
        """The form before the first train."""
        return optimize(written, rules=_PRUNE).network if self.pruned else written

    def costs(self, start: Network) -> CostModel:
        """The figures for a network in its first form."""
        return cost_model(start, MeasuredCosts(self.boxes), self.rates, self.in_use, self.settled)

    def plan(self, written: Network) -> Plan:
        """How the rules come from the network as written to this form."""
        start = self.start(written)
        return optimize(start, self.costs(start), rules=RULES if self.rewritten else ())

    def steps(self, written: Network) -> tuple[PlanStep, ...]:
        """What the rules did, from the network as written on."""
        first = optimize(written, rules=_PRUNE).steps if self.pruned else ()
        return (*first, *self.plan(written).steps)

    def of(self, sub: SubNetwork) -> SubNetwork:
        """The sub-network in this form."""
        network = self.plan(sub.as_written).network
        return sub if network is sub.as_written else replace(sub, network=network, written=sub.as_written)

    def passed(self, running: SubNetwork, horizon: int) -> Form:
        """The same after the horizon has moved: filters leave that stayed for the sake of older tuples.

        `running`: the sub-network in this form. A filter that it no longer has in front of a box counts no
        more: the state has taken tuples again that the filter would have kept out.
        """
        in_front = lacking(running.network, running.as_written)
        kept = self.settled & in_front
        if self.newest is not None:
            kept |= settled(running.network, in_front, self.in_use, self.newest, horizon)
        return replace(self, settled=frozenset(kept))

    def plain(self) -> JsonObject:
        """For the disk."""
        return {
            **asdict(self),
            "in_use": sorted(self.in_use),
            "settled": sorted(self.settled),
            "rates": dict(self.rates),
            "boxes": {name: asdict(box) for name, box in self.boxes.items()},
        }

    @classmethod
    def of_plain(cls, plain: JsonMapping) -> Form:
        """From the disk."""
        boxes = {name: _box(box) for name, box in plain["boxes"].items()}
        pairs = frozenset((one, other) for one, other in plain["settled"])
        return cls(**{**plain, "boxes": boxes, "in_use": frozenset(plain["in_use"]), "settled": pairs})


def _box(plain: JsonMapping) -> MeasuredBox:
    cpu = plain["cpu"]
    return MeasuredBox(**{**plain, "cpu": None if cpu is None else Line(**cpu)})
