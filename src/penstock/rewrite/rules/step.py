"""One step of the optimizer: the network after it, and a sentence that says what changed and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from penstock.model.writing.network import Network
from penstock.rewrite.cost_model import CostModel


@dataclass(frozen=True)
class Step:
    """A network that means the same as the one before, and what a person reads about the change."""

    network: Network
    says: str


Steps = Callable[[Network, CostModel], Iterator[Step]]
"""All single steps that a rule could take now; none of them if the network has its form already."""


@dataclass(frozen=True)
class Rule:
    """A rule by its name in texts, what it does in one line, and its steps."""

    name: str
    about: str
    steps: Steps

    def __call__(self, network: Network, costs: CostModel | None = None) -> Network:
        """The network after every step that this rule can take and that does not cost more."""
        chosen = costs or CostModel()
        while (step := self.first_step(network, chosen)) is not None:
            network = step.network
        return network

    def first_step(self, network: Network, costs: CostModel) -> Step | None:
        """The first step after which the network costs no more than before."""
        # Equal costs pass, because a step may pay only with the next one. The tolerance is for sums of floats
        # that come in another order.
        before = costs.total(network)
        for step in self.steps(network, costs):
            if costs.total(step.network) <= before * (1 + 1e-9):
                return step
        return None
