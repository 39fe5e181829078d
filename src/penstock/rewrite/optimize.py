"""The optimizer: rules applied to a network until none of them finds a cheaper form (Aurora, Sect. 3.1).

A rule takes a network, and costs if it needs them, and offers steps. Whatever their order, they come to an
end. The network as written stays the truth: each box of the result knows the names under which its work was
written (`origin`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.model.writing.network import Network
from penstock.rewrite.cost_model import CostModel, cost_model
from penstock.rewrite.rules.fuse_map_into_filter import fuse_map_into_filter
from penstock.rewrite.rules.look_up import look_up
from penstock.rewrite.rules.merge_filters import merge_filters
from penstock.rewrite.rules.merge_maps import merge_maps
from penstock.rewrite.rules.order_boxes import order_boxes
from penstock.rewrite.rules.prune_columns import prune_columns
from penstock.rewrite.rules.push_filters import push_filters
from penstock.rewrite.rules.share_prefixes import share_prefixes
from penstock.rewrite.rules.step import Rule

RULES = (
    Rule("share prefixes", "equal boxes that read the same stream become one", share_prefixes),
    Rule("push filters", "filters move towards the sources", push_filters),
    Rule("look up", "a join with history reads only the keys that can meet", look_up),
    Rule("order boxes", "boxes that commute go by (1 - selectivity) / cost", order_boxes),
    Rule("merge filters", "two filters become one", merge_filters),
    Rule("fuse map into filter", "a map that only a filter reads goes into it", fuse_map_into_filter),
    Rule("merge maps", "two maps become one", merge_maps),
    Rule("prune columns", "no column travels further than it is read", prune_columns),
)
MOST_STEPS = 10_000
"""More steps than any network needs; a rule that undid another would be found here."""


@dataclass(frozen=True)
class PlanStep:
    """One step that was taken: by which rule, what it did, and what the network cost before and after."""

    rule: str
    says: str
    before: float
    after: float


@dataclass(frozen=True)
class Plan:
    """The network as written, the form that was chosen, and the steps from one to the other."""

    written: Network
    network: Network
    costs: CostModel
    steps: tuple[PlanStep, ...]

    @property
    def before(self) -> float:
        """Microseconds of CPU a second as written, by the figures that were given."""
        return self.costs.total(self.written)

    @property
    def after(self) -> float:
        """The same in the form that was chosen."""
        return self.costs.total(self.network)


def optimize(network: Network, costs: CostModel | None = None, *, rules: Sequence[Rule] = RULES) -> Plan:
    """The cheapest form that the rules find, with every step on the way.

    >>> import penstock as ps
    >>> net = ps.Network("n")
    >>> cars = net.source("cars", ps.csv("in/", "time TIMESTAMP, seg INT, spd INT"), timestamp="time")
    >>> minutes = cars.group_by("seg").tumble("1 minute", speed="avg(spd)", name="minutes")
    >>> end = net.output("here", minutes.filter("seg = 7", name="seventh"), to=ps.console())
    >>> plan = optimize(net)
    >>> print(plan.steps[0].says)
    filter 'seventh' moves in front of tumble 'minutes'
    >>> plan.after < plan.before
    True
    """
    chosen = costs or cost_model(network)
    steps: list[PlanStep] = []
    now, rule_at = network, 0
    while rule_at < len(rules) and len(steps) < MOST_STEPS:
        rule = rules[rule_at]
        step = rule.first_step(now, chosen)
        if step is None:
            rule_at += 1
            continue
        steps.append(PlanStep(rule.name, step.says, chosen.total(now), chosen.total(step.network)))
        now, rule_at = step.network, 0  # a step may open the way for the rules before
    return Plan(network, now, chosen, tuple(steps))
