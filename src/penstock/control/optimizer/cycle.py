"""The cycle that rewrites sub-networks while they run (A41, A42, A47), and queries before they start (A48).

Once a minute it looks at one sub-network after the other, at most one of them is swapped, and later measured:
a form that does not keep half of its promise is undone and not tried again. The written network is never
touched. It needs no QoS; with one, `Control` runs it.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, NoReturn

from penstock.control.costs import boxes_of, subnetwork_of
from penstock.control.optimizer.decide import Gain, Limits, cpu_used, gain, judged, objection
from penstock.control.optimizer.swap_conditions import reason_to_wait
from penstock.model.boxes import Source
from penstock.model.costs import Line
from penstock.model.errors import PenstockError, one_line
from penstock.model.json_types import JsonObject
from penstock.model.writing.network import Network
from penstock.rewrite.forms import Form
from penstock.rewrite.settling import stateful
from penstock.rewrite.subnetworks import SubNetwork
from penstock.runtime.box_facts import configuration
from penstock.runtime.checkpoint_identity import known_subnetworks
from penstock.runtime.runtime import Runtime
from penstock.store.catalog.decisions import FORM, Decisions
from penstock.store.catalog.record_types import Decision, InputLoad, TrainRecord

if TYPE_CHECKING:  # whoever has no PySpark is told so by the runtime, in one sentence
    from penstock.engine.spark.trains.query import SubnetworkQuery

_LOG = logging.getLogger("penstock.control")
_KIND = FORM
_BLIP = 3.0  # seconds, before one was measured: the longest that was seen
_LOOKED_AT = 1024  # trains
_RECENT = 300.0  # seconds of trains that tell what a sub-network uses


@dataclass
class Swap:
    """A swap that is still to be judged: what the sub-network cost before, and how to go back."""

    subnetwork: str
    decision: int
    at: float
    before: Line
    expected: float
    back: Form
    form: str


@dataclass
class Remembered:
    """What outlives a restart: the swap to be judged, when the last one was, forms that did not pay."""

    swap: Swap | None = None
    last: float | None = None
    refused: dict[str, list[str]] = field(default_factory=dict)

    def plain(self) -> JsonObject:
        swap = None if self.swap is None else {**asdict(self.swap), "back": self.swap.back.plain()}
        return {"swap": swap, "last": self.last, "refused": self.refused}

    @classmethod
    def of(cls, plain: JsonObject) -> Remembered:
        swap = plain["swap"]
        if swap is not None:
            swap = Swap(**{**swap, "before": Line(**swap["before"]), "back": Form.of_plain(swap["back"])})
        return cls(swap, plain["last"], plain["refused"])


class Optimizer:
    """Rewrites the sub-networks of a run: `Runtime(net, control=Optimizer())`, `penstock run --optimize`."""

    def __init__(self, limits: Limits | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self.limits, self._clock = limits or Limits(), clock
        self.failure: BaseException | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._said: dict[str, str] = {}  # the last objection about each sub-network
        self._turn = 0

    # -- begin and end

    def prepare(self, runtime: Runtime) -> None:
        """Before the first train: keep columns that nobody reads out of state; later it is too late."""
        known = known_subnetworks(runtime.checkpoint)
        form = Form(pruned=True)
        for sub in runtime.subs:
            if sub.name not in known and not _packed(sub) and form.of(sub) is not sub:
                runtime.forms.keep(sub, form)

    def begin(self, runtime: Runtime) -> None:
        """Begin to cycle through the sub-networks of a run that starts."""
        self._runtime, self._catalog = runtime, runtime.running_records().catalog
        self._decisions = Decisions(self._catalog)
        kept = self._decisions.state(_KIND)
        self._memory = Remembered() if kept is None else Remembered.of(kept[1])
        self._since = self._clock()
        runtime.first_form = self.first_form
        self._thread = threading.Thread(target=self._run, name="optimizer", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop. The forms stay as they are."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(60)
            self._thread = None

    def qos(self) -> NoReturn:
        """There is none to tell."""
        raise PenstockError("this run is optimized, but has no QoS control", hint="use `penstock run --qos`")

    def _run(self) -> None:
        while not self._stop.wait(self.limits.every):
            try:
                self.look()
            except Exception as error:
                self.failure = error
                _LOG.warning(
                    "the optimizer has stopped, the run goes on: %s", one_line(error), exc_info=error
                )
                self._tell("network", f"the optimizer has stopped: {one_line(error)}")
                return

    # -- one round

    def look(self) -> None:
        """One round: judge the last swap, or look for the next one."""
        now = self._clock()
        reason = "a run with `once` is not changed" if self._runtime.once else None
        reason = reason or reason_to_wait(self._runtime, self._catalog, now)
        if reason is not None:
            self._object("network", f"nothing is optimized now: {reason}")
        elif self._memory.swap is not None:
            self._judge(self._memory.swap, now)
        else:
            names = list(self._runtime.queries)
            order = names[self._turn % max(1, len(names)) :] + names[: self._turn % max(1, len(names))]
            self._turn += 1
            next((name for name in order if self._consider(name, now)), None)

    def _consider(self, name: str, now: float) -> bool:
        """Swap a sub-network if that pays; whether it was."""
        query = self._runtime.queries.get(name)
        if query is None or not _may_change(query):
            return False
        full = [train for train in self._trains(name, self._since) if train.rows_in > 0]
        recent = [train for train in full if train.start > now - _RECENT]
        used = cpu_used(recent, now)
        if len(full) < self.limits.trains or used is None:
            return False
        candidate = self._candidate(query, full, recent, now)
        other = candidate.of(_written(query.sub))
        if identity(other.network) == identity(query.sub.network):
            return False
        if identity(other.network) in self._memory.refused.get(name, ()):
            return False
        costs = candidate.costs(candidate.start(query.sub.as_written))
        offered = gain(costs.total(query.sub.network) / 1e6, costs.total(other.network) / 1e6, used)
        last = self._memory.last
        why = objection(offered, self._blip(name), None if last is None else now - last, self.limits)
        if why is not None:
            self._object(name, f"{name} stays in its form: another one {why}")
            return False
        return self._swap(query, candidate, other, offered, used, now)

    def _candidate(
        self, query: SubnetworkQuery, full: list[TrainRecord], recent: list[TrainRecord], now: float
    ) -> Form:
        form = self._runtime.forms.form(query.sub.name) or Form()
        ticket = query.log.ticket(query.last)
        if form.rewritten and ticket is not None and ticket.horizons:
            form = form.passed(query.sub, min(ticket.horizons.values()))
        loads = [load for load in self._catalog.loads(60) if load.subnetwork == query.sub.name]
        return replace(
            form,
            rewritten=True,
            # What runs as one box now was measured when it was two.
            boxes={**form.boxes, **boxes_of(full)},
            rates=rates_of(query.sub.inputs, loads, recent, now),
            in_use=stateful(query.sub.as_written),
            newest=None,
        )

    def _swap(
        self, query: SubnetworkQuery, form: Form, other: SubNetwork, offered: Gain, used: float, now: float
    ) -> bool:
        name = query.sub.name
        before = subnetwork_of(name, self._trains(name, self._since)).cpu
        back = self._runtime.forms.form(name) or Form()
        try:
            blip = self._runtime.rewrite(name, form)
        except PenstockError as error:
            self._memory.refused.setdefault(name, []).append(identity(other.network))
            self._tell(name, f"{name} stays in its form: {one_line(error)}")
            return False
        steps = [step.says for step in form.plan(query.sub.as_written).steps]
        sentence = (
            f"{name} runs in another form: {offered.saved:.3g} of {used:.3g} CPU-s a second to be saved, "
            f"{offered.share:.0%}; blip {blip:.2f} s; {'; '.join(steps)}"
        )
        numbers = {"saved": offered.saved, "used": used, "blip": blip, "steps": steps}
        number = self._tell(name, sentence, numbers, {"cpu_share": offered.share})
        form_id = identity(other.network)
        self._since = self._clock()
        self._memory.last = now
        if before is not None:
            self._memory.swap = Swap(name, number, self._since, before, offered.share, back, form_id)
        self._remember(now)
        return True

    def _judge(self, swap: Swap, now: float) -> None:
        """Undo a swap that did not keep its promise."""
        name = swap.subnetwork
        query = self._runtime.queries.get(name)
        if query is None or identity(query.sub.network) != swap.form:
            self._memory.swap = None  # somebody else has changed it since: nothing to compare
            self._remember(now)
            return
        verdict = judged(swap.before, self._trains(name, swap.at), swap.expected, self.limits)
        if verdict is None and now - swap.at <= self.limits.repaid:
            return
        self._memory.swap = None
        if verdict is not None:  # else nothing came, and nobody can say
            self._decisions.realised(swap.decision, {"cpu_share": verdict.realised})
            if verdict.undo:
                self._undo(swap, verdict.realised, now)
        self._remember(now)

    def _undo(self, swap: Swap, realised: float, now: float) -> None:
        name = swap.subnetwork
        self._memory.refused.setdefault(name, []).append(swap.form)
        said = f"saved {realised:.0%} of its CPU, not {swap.expected:.0%}; not tried again"
        try:
            self._runtime.rewrite(name, replace(swap.back, settled=frozenset()))
        except PenstockError as error:
            self._tell(name, f"{name} stays in its form, though it {said}: {one_line(error)}")
            return
        self._tell(name, f"{name} runs as before: the other form {said}", expected={"cpu_share": 0.0})
        self._memory.last = now
        self._since = self._clock()

    # -- queries before they start

    def first_form(self, sub: SubNetwork) -> Form | None:
        """The form of a query that is attached: the rules see it before any tuple does (A48, A50)."""
        counts = self._catalog.counts()
        rates = {name: float(counts[name].rows_out) for name in sub.inputs if name in counts}
        form = Form(rewritten=True, rates={name: max(1.0, rate) for name, rate in rates.items()})
        plan = form.plan(sub.network)
        if not plan.steps:
            return None
        steps = [step.says for step in plan.steps]
        share = 1 - plan.after / plan.before if plan.before else 0.0
        sentence = f"{sub.name} starts in another form, {share:.0%} less by rule of thumb: {'; '.join(steps)}"
        self._tell(sub.name, sentence, {"steps": steps}, {"cpu_share": share})
        return form

    # -- what is known and told

    def _trains(self, name: str, since: float) -> list[TrainRecord]:
        trains: list[TrainRecord] = self._catalog.trains(name, last=_LOOKED_AT)
        return [train for train in trains if train.start >= since]

    def _blip(self, name: str) -> float:
        events = [
            *self._catalog.events("replace", name, last=1),
            *self._catalog.events("rewrite", name, last=1),
        ]
        return float(events[-1].detail["blip"]) if events else _BLIP

    def _object(self, subject: str, sentence: str) -> None:
        """Tell why nothing is done; once, until the reason is another one."""
        reason = sentence.partition(":")[0]
        if self._said.get(subject) != reason:
            self._said[subject] = reason
            self._tell(subject, sentence)

    def _tell(
        self,
        subject: str,
        sentence: str,
        numbers: JsonObject | None = None,
        expected: dict[str, float] | None = None,
    ) -> int:
        sub = next((each for each in self._runtime.subs if each.name == subject), None)
        outputs = () if sub is None else sub.outputs
        decision = Decision(self._clock(), _KIND, subject, sentence, outputs, numbers or {}, expected or {})
        return self._decisions.record(decision).id

    def _remember(self, now: float) -> None:
        self._decisions.keep_state(_KIND, now, self._memory.plain())


def identity(network: Network) -> str:
    """Tell one form from another."""
    described = [
        (name, node.inputs, sorted(configuration(node).items(), key=str))
        for name, node in sorted(network.nodes.items())
        if node.is_box
    ]
    return hashlib.sha256(repr(described).encode()).hexdigest()[:16]


def rates_of(
    inputs: tuple[str, ...], loads: list[InputLoad], trains: list[TrainRecord], now: float
) -> dict[str, float]:
    """Tuples a second of each input: as offered, or as taken by the trains."""
    offered: dict[str, list[float]] = {}
    for load in loads:
        if load.offered_rate is not None:
            offered.setdefault(load.input, []).append(load.offered_rate)
    if all(name in offered for name in inputs):
        return {name: sum(offered[name]) / len(offered[name]) for name in inputs}
    rows = sum(train.rows_in for train in trains) / max(1e-9, now - trains[0].start) if trains else 1.0
    return {name: rows / len(inputs) for name in inputs}


def _written(sub: SubNetwork) -> SubNetwork:
    return replace(sub, network=sub.as_written, written=None)


def _packed(sub: SubNetwork) -> bool:
    """Whether its tuples come partitioned, and its boxes run where they lie."""
    nodes = [sub.network.nodes[name] for name in sub.inputs]
    return any(isinstance(node, Source) and node.format.partitioned_by is not None for node in nodes)


def _may_change(query: SubnetworkQuery) -> bool:
    """Not one that is held or watched arrow by arrow, nor one whose trains or inputs are of another kind."""
    watched = query.steering.held or query.steering.monitors
    return query.settings.usual and not watched and not _packed(query.sub)
