"""Steering a running network: drop rates, valves, masters of diffused joins, length of trains.

Each change takes effect with the next train.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any, Protocol

from penstock.engine.contract.policy import AsSoonAsPossible, TrainPolicy
from penstock.engine.contract.train_log import TrainLog
from penstock.engine.contract.valve import Valve, valve_places
from penstock.model.boxes import Drop, Join, Output, View
from penstock.model.errors import PenstockError, did_you_mean
from penstock.model.qos import QoS
from penstock.rewrite.subnetworks import SubNetwork, with_qos
from penstock.runtime.running_queries import RunningQueries


class Controller(Protocol):
    """What steers a whole run: `penstock.Control`, or anything else with these methods.

    The runtime does not know the room of control; it is told what to begin and to end.
    """

    def begin(self, runtime: Any) -> None:
        """Called when the run starts, before its first query. May refuse the run by an error.

        Then it has begun nothing, and it may be busy with another run: `end` is not called.
        """

    # It may also have `prepare(runtime)`, see `Runtime._start`, and `must_fit`, see `RunningQueries`.

    def end(self) -> None:
        """Called when the run stops, before its queries do. May be called more than once."""

    def qos(self) -> Any:
        """How the run stands, for `Runtime.qos()`."""


class Steered(RunningQueries):
    """The part of a runtime that schedulers and shedders use."""

    def use_policy(self, policy: TrainPolicy) -> None:
        """Let this policy decide about the trains of all sub-networks, also of those that start later."""
        self.settings = replace(self.settings, policy=policy)
        for steering in list(self._steering.values()):
            steering.policy = policy

    def set_drop_rate(self, box: str, rate: float) -> None:
        """Change the share of tuples that a Drop box drops."""
        nodes = [node for query in list(self.queries.values()) for node in query.sub.network.nodes.values()]
        drops = [node.name for node in nodes if isinstance(node, Drop)]
        if box not in drops:
            raise PenstockError(f"no drop box '{box}'", hint=did_you_mean(box, drops))
        if not 0 <= rate <= 1:
            raise PenstockError(f"a drop rate of {rate} is out of range", expected="0 to 1")
        self.drop_rates[box] = float(rate)
        if self.records is not None:
            self.records.event("drop_rate", box, rate=rate)

    def set_valves(self, subnetwork: str, valves: Iterable[Valve]) -> None:
        """Shed as these valves say and no others: they replace all valves of the sub-network."""
        sub, wanted = self.running(subnetwork).sub, tuple(valves)
        _check_places(sub, wanted)
        steering = self._steering[sub.name]
        if wanted == steering.valves:
            return
        steering.valves = wanted
        self.running_records().event("valves", sub.name, valves=[valve.plain() for valve in wanted])

    def valves(self, subnetwork: str) -> tuple[Valve, ...]:
        """What a sub-network is told to shed."""
        return self._steering[self.running(subnetwork).sub.name].valves

    def restore_valves(self) -> None:
        """Let the valves of the last run hold until they are set again. Call it before the trains start.

        Only a run whose control looks after them may do so: nobody else would ever open them.
        """
        for sub in self.subs:
            log = TrainLog(self.checkpoint / "queries" / sub.name)
            ticket = log.ticket(log.last())
            if ticket is not None:
                self.first_valves[sub.name] = ticket.valves

    def set_master(self, join: str, scheme: str | None) -> None:
        """Set the master of a diffused join: 'left', 'right' or 'hash'.

        None lets the join choose again: by hash if it is written so, else by what it measures.
        """
        joins = {
            node.name: node for node in self.network.nodes.values() if isinstance(node, Join) and node.spread
        }
        if join not in joins:
            raise PenstockError(f"no diffused join '{join}'", hint=did_you_mean(join, joins))
        _check_scheme(joins[join], scheme)
        for steering in list(self._steering.values()):
            if scheme is None:
                steering.schemes.pop(join, None)
            else:
                steering.schemes[join] = scheme
        if self.records is not None:
            self.records.event("master", join, scheme=scheme)

    def set_qos(self, output: str, qos: QoS) -> None:
        """Change the QoS of an output or view. No train is disturbed; the catalog gets a new version."""
        rated = [name for name, node in self.network.nodes.items() if isinstance(node, Output | View)]
        if output not in rated:
            raise PenstockError(f"no output or view '{output}'", hint=did_you_mean(output, rated))
        with self._lock:
            self._must_fit_with(output, qos)
            # The network first: an output has the same columns in all of them, so a refusal changes none.
            networks = (self.network, *(query.sub.network for query in list(self.queries.values())))
            for network in {id(each): each for each in networks}.values():
                if output in network.nodes:
                    network.set_qos(output, qos)
            self.running_records().network(self.network, self.subs)
            self.running_records().event("qos", output, **asdict(qos))

    def _must_fit_with(self, output: str, qos: QoS) -> None:
        """Refuse a QoS that the controller cannot serve; nothing has changed yet."""
        subs = [query.sub for query in list(self.queries.values()) if output in query.sub.network.nodes]
        changed = [replace(sub, network=with_qos(sub.network, output, qos)) for sub in subs]
        self.must_fit(with_qos(self.network, output, qos), changed)

    def set_train(
        self,
        length: int | None = None,
        interval: float | None = None,
        *,
        max_bytes: int | None = None,
        policy: TrainPolicy | None = None,
        subnetwork: str | None = None,
    ) -> None:
        """Change the most tuples or bytes of a train, the seconds between trains, or the whole policy."""
        changes = {"length": length, "interval": interval, "max_bytes": max_bytes}
        queries = list(self.queries.values()) if subnetwork is None else [self.running(subnetwork)]
        for query in queries:
            query.steering.policy = policy or _changed_policy(query.steering.policy, changes)
            if self.records is not None:
                self.records.event("train_length", query.sub.name, **changes)

    def hold(self, subnetwork: str) -> None:
        """Let no further train of a sub-network leave; its input waits. The others go on (A38, A42)."""
        steering = self.running(subnetwork).steering
        steering.steps, steering.step_length, steering.held = 0, None, True
        self.running_records().event("hold", subnetwork)

    def release(self, subnetwork: str) -> None:
        """Let the trains of a held sub-network leave again."""
        steering = self.running(subnetwork).steering
        steering.held, steering.steps, steering.step_length = False, 0, None
        self.running_records().event("release", subnetwork)

    def step(self, subnetwork: str, tuples: int | None = None) -> None:
        """Let one train of a held sub-network leave, with at most so many tuples of each input (A38).

        It counts as any other train. Without input, it leaves as soon as there is some.
        """
        steering = self.running(subnetwork).steering
        if not steering.held:
            raise PenstockError(
                f"'{subnetwork}' is not held, so its trains run by themselves", hint="hold it"
            )
        if tuples is not None and tuples < 1:
            raise PenstockError(f"a step of {tuples} tuples", expected="at least 1")
        steering.step_length, steering.steps = tuples, 1

    def restore_drop_rates(self) -> None:
        """Restore the drop rates that were in force when the last run ended."""
        for sub in self.subs:
            log = TrainLog(self.checkpoint / "queries" / sub.name)
            ticket = log.ticket(log.last())
            if ticket is not None:
                for box, rate in ticket.drop_rates.items():
                    self.drop_rates.setdefault(box, rate)


def _check_places(sub: SubNetwork, valves: Iterable[Valve]) -> None:
    places = valve_places(sub)
    for valve in valves:
        if valve.at not in places:
            raise PenstockError(
                f"sub-network '{sub.name}' has no place '{valve.at}' for a valve",
                expected="the name of an input, or 'tail->head' of an arrow from a split to a box",
                hint=did_you_mean(valve.at, places),
            )


def _check_scheme(join: Join, scheme: str | None) -> None:
    schemes = ("left", "right", *(["hash"] if join.on else []))
    if scheme is not None and scheme not in schemes:
        expected = f"one of: {', '.join(schemes)}"
        raise PenstockError(f"join '{join.name}' cannot be spread by '{scheme}'", expected=expected)


def _changed_policy(policy: TrainPolicy, changes: Mapping[str, float | None]) -> TrainPolicy:
    """The policy with other limits or interval; a policy that is not ours decides for itself."""
    if not isinstance(policy, AsSoonAsPossible):
        return policy
    given = {name: value for name, value in changes.items() if value is not None}
    return replace(policy, **given)  # type: ignore[arg-type]  # by name, as its fields are
