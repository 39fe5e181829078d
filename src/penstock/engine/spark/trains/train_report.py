"""What is told of a committed train: for the catalog, for control, and for those who watch."""

from __future__ import annotations

import pyarrow as pa

from penstock.engine.arrow.value_samples import together
from penstock.engine.contract.commit import Commit
from penstock.engine.contract.kept_share import kept_shares, kept_worth
from penstock.engine.contract.ticket import Ticket
from penstock.engine.contract.train_done import TrainDone
from penstock.engine.spark.entry.points import kept_above
from penstock.engine.spark.outcome import Outcome
from penstock.model.boxes import Trait
from penstock.rewrite.subnetworks import SubNetwork, reaching


class TrainReports:
    """Reports of the trains of one sub-network."""

    def __init__(self, sub: SubNetwork) -> None:
        self._sub, nodes = sub, sub.network.nodes
        self._direct = frozenset(
            name
            for name in (*sub.outputs, *sub.points)
            if not any(Trait.STATEFUL in nodes[n].traits for n in reaching(sub.network, [name]))
        )

    @property
    def rated_points(self) -> tuple[str, ...]:
        """Its views and points with a QoS, which a view may get while it runs."""
        nodes = self._sub.network.nodes
        return tuple(name for name in self._sub.points if nodes[name].qos is not None)

    def report(
        self, ticket: Ticket, commit: Commit, outcome: Outcome, *, started: float, seconds: float, needed: int
    ) -> TrainDone:
        """The report of a train; see `TrainDone` for `started`, `seconds` and `needed`."""
        above = kept_above(ticket)
        return TrainDone(
            self._sub.name,
            ticket,
            commit,
            started=started,
            outputs=self._sub.outputs,
            delivered={**outcome.delivered, **self._rated(commit)},
            shown=tuple(outcome.shown),
            state_bytes=outcome.state_bytes,
            seconds=seconds,
            phases=outcome.phases,
            direct=self._direct,
            samples={name: pa.concat_tables(tables) for name, tables in outcome.samples.items()},
            needed=needed,
            kept=kept_shares(self._sub, commit.valves, ticket.valves, above),
            worth=kept_worth(self._sub, commit.valves, ticket.valves, above),
            values={name: together(samples) for name, samples in outcome.values.items()},
        )

    def _rated(self, commit: Commit) -> dict[str, int]:
        """Tuples that came to views and points with a QoS."""
        rows = {name: sum(file.rows for file in commit.points[name].files) for name in self.rated_points}
        return {name: count for name, count in rows.items() if count}
