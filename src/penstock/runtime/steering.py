"""Steering a running network: drop rates, masters of diffused joins, length of trains.

Each change takes effect with the next train.
"""

from __future__ import annotations

from penstock.engine.contract.policy import AsSoonAsPossible, TrainPolicy
from penstock.engine.contract.train_log import TrainLog
from penstock.model.boxes import Drop, Join
from penstock.model.errors import PenstockError, did_you_mean
from penstock.runtime.running_queries import RunningQueries


class Steered(RunningQueries):
    """The part of a runtime that schedulers and shedders use."""

    def set_drop_rate(self, box: str, rate: float) -> None:
        """Change the share of tuples that a Drop box drops."""
        nodes = [node for query in self.queries.values() for node in query.sub.network.nodes.values()]
        drops = [node.name for node in nodes if isinstance(node, Drop)]
        if box not in drops:
            raise PenstockError(f"no drop box '{box}'; {did_you_mean(box, drops)}")
        if not 0 <= rate <= 1:
            raise PenstockError(f"a drop rate of {rate} is out of range; expected 0 to 1")
        self.drop_rates[box] = float(rate)
        if self.records is not None:
            self.records.event("drop_rate", box, rate=rate)

    def set_master(self, join: str, scheme: str | None) -> None:
        """Set the master of a diffused join: 'left', 'right' or 'hash'.

        None lets measurements decide.
        """
        joins = {
            node.name: node for node in self.network.nodes.values() if isinstance(node, Join) and node.spread
        }
        if join not in joins:
            raise PenstockError(f"no diffused join '{join}'; {did_you_mean(join, joins)}")
        _check_scheme(joins[join], scheme)
        for steering in self._steering.values():
            if scheme is None:
                steering.schemes.pop(join, None)
            else:
                steering.schemes[join] = scheme
        if self.records is not None:
            self.records.event("master", join, scheme=scheme)

    def set_train(
        self,
        length: int | None = None,
        interval: float | None = None,
        *,
        policy: TrainPolicy | None = None,
        subnetwork: str | None = None,
    ) -> None:
        """Change the length of trains, the seconds between them, or the whole policy."""
        for name in [subnetwork] if subnetwork is not None else list(self._steering):
            steering = self._steering[self.running(name).sub.name]
            steering.policy = policy or _changed_policy(steering.policy, length, interval)
            if self.records is not None:
                self.records.event("train_length", name, length=length, interval=interval)

    def restore_drop_rates(self) -> None:
        """Restore the drop rates that were in force when the last run ended."""
        for sub in self.subs:
            log = TrainLog(self.checkpoint / "queries" / sub.name)
            ticket = log.ticket(log.last())
            if ticket is not None:
                for box, rate in ticket.drop_rates.items():
                    self.drop_rates.setdefault(box, rate)


def _check_scheme(join: Join, scheme: str | None) -> None:
    schemes = ("left", "right", *(["hash"] if join.on else []))
    if scheme is not None and scheme not in schemes:
        expected = f"expected one of: {', '.join(schemes)}"
        raise PenstockError(f"join '{join.name}' cannot be spread by '{scheme}'; {expected}")


def _changed_policy(policy: TrainPolicy, length: int | None, interval: float | None) -> TrainPolicy:
    """The policy with another length or interval; a policy that is not ours decides for itself."""
    if not isinstance(policy, AsSoonAsPossible):
        return policy
    return AsSoonAsPossible(length or policy.length, policy.interval if interval is None else interval)
