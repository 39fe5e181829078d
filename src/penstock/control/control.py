"""Control of a running network (A52-A54, A77-A92): one loop that looks, decides and applies.

Every quarter of a second it takes a picture of the run, lets pure functions decide (`loop/plan.py`), tells
the dispatcher of trains what counts now, and sets the valves. If it dies, its valves open and trains leave as
they would without it: control must never be worse than none.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from penstock.control.loop.cost_book import CostBook
from penstock.control.loop.decision_log import DecisionLog, LengthNews, MapNews
from penstock.control.loop.deployment import Admission, start_warnings, trains_of
from penstock.control.loop.dispatcher import Dispatcher, SubnetworkFacts
from penstock.control.loop.errors import ErrorBook
from penstock.control.loop.exactness import Exactness
from penstock.control.loop.left_behind import LeftBehind, is_recent, leave, left_behind
from penstock.control.loop.picture import Picture
from penstock.control.loop.plan import Memory, Plan, decide, load_nodes
from penstock.control.loop.reporting import ShedRates, achieved, output_reports, report_of, source_reports
from penstock.control.loop.sentences import differs, exhausted_decision, held_decision, share_decisions
from penstock.control.loop.structure import Structure
from penstock.control.loop.values import ValueBook
from penstock.control.loop.valves import Places, losing
from penstock.control.loop.watching import (
    candidates_of,
    coming_to_rated,
    facts_of,
    picture_of,
    rate_of_growth,
    spent_on_rated,
)
from penstock.control.optimizer.cycle import Optimizer
from penstock.control.priority import Ranking, priorities
from penstock.control.report import REPORT, ROAD_MAP, VALUES, QosReport
from penstock.control.roadmap import RoadMap
from penstock.control.semantic.bins import Cut
from penstock.control.shedder import QUICK, STEADY, Shedding
from penstock.engine.contract.train_done import TrainDone
from penstock.engine.contract.valve import Valve
from penstock.model.control_settings import ControlSettings, Scheme
from penstock.model.errors import ExpressionError, PenstockError, directly, on_line, one_line
from penstock.model.qos import QoS
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import SubNetwork
from penstock.runtime.runtime import Runtime
from penstock.store.catalog.decisions import Decisions
from penstock.store.catalog.record_types import Decision

_LOG = logging.getLogger("penstock.control")
_EVERY = 0.25  # seconds between two looks
_REPORT_EVERY = 1.0
_KEEP_VALUES_EVERY = 10.0
_BUSY = 0.5  # of the capacity: from here on values are looked at
_LOOKS = 21  # over which the load of the present is measured: five seconds


class Control:
    """Schedules trains and sheds tuples by the QoS of outputs: `Runtime(net, control=Control())`.

    `headroom`: the part of the capacity to plan with (A62). `priority`: 'state', 'feedback', 'round-robin' or
    'fifo'. `shed`: tuples may be dropped under overload. `optimize`: sub-networks are rewritten by measured
    costs. `observe`: decide and log, but apply nothing.
    """

    rates_outputs = True  # there is a QoS to tell

    def __init__(
        self,
        headroom: float = 0.9,
        priority: Scheme = "state",
        *,
        shed: bool = True,
        optimize: bool = False,
        observe: bool = False,
    ) -> None:
        try:
            self.settings = ControlSettings(headroom, priority, shed, optimize, observe)
        except ExpressionError as error:
            raise on_line(error, directly()) from None
        self.failure: BaseException | None = None
        self._silent = False  # the loop has not looked for too long, so all valves are open
        self.warnings: tuple[str, ...] = ()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.RLock()
        self._begun = False  # from `begin` on it has a runtime
        self._optimizer = Optimizer() if optimize and not observe else None

    @classmethod
    def of(cls, settings: ControlSettings) -> Control:
        """A control with these settings, such as those of a network's text."""
        return cls(
            settings.headroom,
            settings.priority,
            shed=settings.shed,
            optimize=settings.optimize,
            observe=settings.observe,
        )

    # -- begin and end

    def prepare(self, runtime: Runtime) -> None:
        """Choose the forms of sub-networks without state, before the checkpoint is claimed for them."""
        if self._optimizer is not None:
            self._optimizer.prepare(runtime)

    def begin(self, runtime: Runtime) -> None:
        """Take over a run that starts. Refuses an output whose delay no rate can meet."""
        if self._begun:
            raise PenstockError("this control has a run already", hint="make a Control for each Runtime")
        catalog = runtime.running_records().catalog
        trains, self._admission = trains_of(catalog, runtime.subs), Admission(catalog, self.settings)
        self._admission.must_fit(runtime.network, runtime.subs)
        cores = runtime.cores()
        self._begun, self._runtime, self._book = True, runtime, CostBook(trains, cores)
        self._log = DecisionLog(Decisions(catalog), observing=self.settings.observe)
        self._decisions = Decisions(catalog)
        self._began = time.monotonic()
        self._know(Structure(tuple(runtime.subs)))
        self._known: object = None  # with the network, what the structure was made of
        self._network: object = None
        self._rates, self._spent = ShedRates(), deque[tuple[float, float]](maxlen=_LOOKS)
        self._lengths, self._maps = LengthNews(), MapNews()
        self._plan, self._picture = Plan(), Picture(0.0, ())
        self._reported, self._exhausted = float("-inf"), False
        self._facts: Mapping[str, SubnetworkFacts] = {}
        restored = self._restore()
        self._begin_to_act(runtime, restored=restored)
        runtime.on_train(self._train_done)
        self._warn(start_warnings(runtime, trains, cores, self.settings))
        self._report(0.0)  # whoever asks in the first second is told, too
        if self._optimizer is not None:
            self._optimizer.begin(runtime)
        self._thread = threading.Thread(target=self._run, name="control", daemon=True)
        self._thread.start()  # the last step: a control that could not begin leaves nothing that runs

    def must_fit(self, network: Network, subs: Sequence[SubNetwork]) -> None:
        """Refuse a change of the run for what would have refused its start."""
        if self._begun and self.failure is None:
            self._admission.must_fit(network, subs)

    def _warn(self, warnings: Sequence[Decision]) -> None:
        self.warnings = tuple(each.sentence for each in warnings)
        for each in warnings:
            _LOG.warning("%s", each.sentence)
            self._log.tell(each)

    def _restore(self) -> bool:
        """Shares of a run that ended just now hold until the loop confirms or opens them: whether any do."""
        left = left_behind(self._decisions)
        acts = self.settings.shed and not self.settings.observe
        if not (acts and is_recent(self._decisions, time.time())):
            left = left.without_shares()
        self._decisions.end_all(time.time())
        for name in left.shut:
            self._log.tell(held_decision(name, left.shares[name], time.time()))
        self._exact = dict(left.exact)
        self._memory = Memory(Shedding(kept=left.kept, tightened=0.0))
        self._shares: Mapping[str, float] = left.shares
        values = self._decisions.state(VALUES)
        self._values, self._values_kept = ValueBook({} if values is None else values[1]), float("-inf")
        self._cuts: Mapping[str, Cut] = {}
        self._errors = ErrorBook()
        return left.kept < 1 or bool(left.shut)

    def _begin_to_act(self, runtime: Runtime, *, restored: bool) -> None:
        ranking = Ranking(self.settings.priority)
        self._dispatcher = Dispatcher(
            runtime.settings.policy, ranking, unrated=max(0.02, 1 - self.settings.headroom)
        )
        self._dispatcher.wake = self._wake
        self._dispatcher.on_silence = self._fall_silent
        self._dispatcher.on_error = self._fail
        if self.settings.observe:
            return
        runtime.use_policy(self._dispatcher)
        if restored:
            runtime.restore_valves()

    def _wake(self, subnetwork: str) -> None:
        query = self._runtime.queries.get(subnetwork)
        if query is not None:
            query.wake()

    def end(self) -> None:
        """Stop deciding; trains that still leave do so as without control. The last report stays."""
        if not self._begun or self._thread is None:
            return
        if self._optimizer is not None:
            self._optimizer.end()
        self._stop.set()
        self._dispatcher.end()
        self._thread.join(10)
        self._thread = None
        _surely(partial(self._decisions.end_all, time.time()))

    # -- the loop

    def _run(self) -> None:
        try:
            while self.failure is None and not self._stop.wait(_EVERY):
                self.look()
        except Exception as error:
            if not self._stop.is_set():
                self._fail(error)
        while not self._stop.wait(_REPORT_EVERY):  # it has failed, and tells how the run goes on without it
            _surely(self._tell)
        _surely(self._tell)

    @property
    def _acts(self) -> bool:
        """Whether shares are in force: not if they are only what would be done, or if the loop is dead."""
        return not (self.settings.observe or self._silent or self.failure is not None)

    def _fail(self, error: BaseException) -> None:
        """Control is worse than none if it is dead: open what it has shut, and say so."""
        with self._lock:
            if self.failure is not None:
                return
            self.failure = error
        self._dispatcher.end()
        self._memory = replace(self._memory, shedding=Shedding())
        self._let_all_pass(
            f"control has failed, all valves are open and trains leave as they come: {one_line(error)}", error
        )

    def _fall_silent(self) -> None:
        """The loop may be dead, or somebody has stopped it for a while: nobody would open its valves."""
        with self._lock:
            if self._silent or self.failure is not None:
                return
            self._silent = True
        self._let_all_pass(
            "control has not looked for ten seconds, all valves are open and trains leave as they come until "
            "it looks again"
        )

    def _let_all_pass(self, text: str, error: BaseException | None = None) -> None:
        """Open everything and say so; whatever goes wrong with one step, the others are taken."""
        _LOG.warning("%s", text, exc_info=error)
        names = [] if self.settings.observe else list(self._runtime.queries)
        _surely(*(partial(self._runtime.set_valves, name, ()) for name in names))
        shut = [name for name, share in self._shares.items() if share < 1]
        with self._lock:
            self._plan = replace(self._plan, shares={}, exhausted=False)
            self._shares, self._cuts = {}, {}
        _surely(
            partial(self._happened, text),
            *(partial(self._log.end, "shed", name, time.time()) for name in shut),
            partial(self._log.end, "exhausted", "network", time.time()),
            self._keep_memory,
            self._tell,
        )
        self._exhausted = False

    def _go_on(self) -> None:
        """The loop looks again. What it shuts now, it tells anew."""
        self._silent, self._shares, self._cuts = False, {}, {}
        text = "control looks again, and decides about trains and valves"
        _LOG.warning("%s", text)
        self._happened(text)

    def _happened(self, text: str) -> None:
        """Tell what has become of control itself: that concerns all outputs."""
        self._log.tell(Decision(time.time(), "control", "network", text, tuple(self._structure.qos)))

    def look(self) -> None:
        """One look: picture, plan, application."""
        now = time.monotonic() - self._began
        self._dispatcher.sync({name: not q.drained() for name, q in list(self._runtime.queries.items())})
        if self._silent:
            self._go_on()
        picture = self._take_picture(now)
        self._spent.append((now, spent_on_rated(self._structure, picture)))
        may = self._places.sheddable(self._structure.qos) if self.settings.shed else {}
        plan, self._memory = decide(
            self._structure,
            picture,
            self._memory,
            headroom=self.settings.headroom,
            sheddable=may,
            values=self._values.look(self._structure.subs, self._places, now, busy=self._busy(picture, may)),
            together=self._places.together(),
            decoded=self._decoded,
            tempo=STEADY if self._places.in_groups else QUICK,
        )
        road = self._maps.news(self._memory.map, plan.load, now)
        if road is not None:
            self._keep_map(road, plan.load or 0.0)
        self._apply(plan, picture, now)
        self._log.measure(now, self._realised)
        if now - self._reported >= _REPORT_EVERY:
            self._report(now)

    def _busy(self, picture: Picture, sheddable: Mapping[str, QoS]) -> bool:
        """Whether something may have to be shed soon."""
        load = sum(node.load for node in load_nodes(self._structure, picture)) if sheddable else 0.0
        return self._plan.shedding or load > _BUSY * (picture.capacity or 0.0)

    def _take_picture(self, now: float) -> Picture:
        self._refresh_structure()
        queries, seconds = dict(self._runtime.queries), self._runtime.running_records().output_seconds()
        return picture_of(queries, self._book, seconds, self._structure.qos, now)

    def _refresh_structure(self) -> None:
        """Queries come and go, views become part of the network, and graphs are drawn anew."""
        if self._known is None and any(sub.name not in self._runtime.queries for sub in self._runtime.subs):
            return  # they begin one after the other
        queries, network = tuple(self._runtime.queries.values()), self._runtime.network
        structure = Structure.running(network, [query.sub for query in queries])
        made_of = queries, structure.qos
        if made_of != self._known or network is not self._network:
            self._known, self._network = made_of, network
            self._know(structure)

    def _know(self, structure: Structure) -> None:
        self._structure, self._places = structure, Places.of(self._runtime.network, structure)
        self._decoded = self._places.decoded()

    def _apply(self, plan: Plan, picture: Picture, now: float) -> None:
        if self._silent or self.failure is not None:
            return  # given up meanwhile: this look has come too late
        with self._lock:
            self._plan, self._picture = plan, picture
        self._facts = facts_of(self._structure, picture, self._shares)
        self._dispatcher.facts = self._facts
        self._dispatcher.ranking = replace(self._dispatcher.ranking, boost=plan.boost)
        self._note_lengths(now)
        self._log.tell_out_of_reach(plan.out_of_reach, self._structure.qos)
        self._shares = self._log.end_gone(self._shares, self._structure.qos)
        if plan.usable is None:
            return  # nothing is known yet: what held before holds
        self._note_shares(plan, picture, now)
        if not self.settings.observe:
            for sub in self._structure.subs:
                self._set_valves(sub)

    def _set_valves(self, sub: SubNetwork) -> None:
        if not self._runs(sub) or not self._acts:
            return
        try:
            self._runtime.set_valves(sub.name, self.valves_for(sub))
        except PenstockError:
            if self._runs(sub):
                raise  # otherwise it was detached or replaced just now
        if not self._acts and self._runs(sub):  # given up meanwhile: this look has come too late
            self._runtime.set_valves(sub.name, ())

    def _runs(self, sub: SubNetwork) -> bool:
        """Whether a sub-network still runs as this look has seen it."""
        query = self._runtime.queries.get(sub.name)
        return query is not None and query.sub is sub

    def valves_for(self, sub: SubNetwork) -> tuple[Valve, ...]:
        """The valves that a sub-network is to have now."""
        mine = {name: cut for name, cut in self._cuts.items() if name in (*sub.outputs, *sub.points)}
        return self._places.valves(sub, self._shares, mine)

    @property
    def kept(self) -> float:
        """The part of the load that is kept, 0..1."""
        return self._memory.shedding.kept

    def _note_shares(self, plan: Plan, picture: Picture, now: float) -> None:
        coming = coming_to_rated(self._structure, picture)
        known = {name: self._shares.get(name, 1.0) for name in plan.shares}
        # Only what is told is applied: a share that creeps would end far from the last sentence about it.
        shares = {n: share if differs(known[n], share) else known[n] for n, share in plan.shares.items()}
        changes = shares != known
        now_kept = shares if changes else self._shares
        before, self._cuts = self._cuts, self._values.cuts(self._places, plan.by_value, now_kept)
        # An output that goes by value from now on, or no longer, gets a sentence although its share stays.
        other = before.keys() ^ self._cuts.keys()
        applied, qos = replace(plan, shares=shares), self._structure.qos
        for each in share_decisions(known, applied, qos, coming, time.time(), self._cuts, other=other):
            self._log.take(each, now)
        self._note_exhausted(plan, now)
        if changes:
            self._shares = shares
            self._keep_memory()

    def _note_exhausted(self, plan: Plan, now: float) -> None:
        """Tell when nothing is left to shed, and when that is over."""
        if plan.exhausted and not self._exhausted:
            self._log.take(exhausted_decision(plan, self._structure.qos, time.time()), now)
        if not plan.exhausted and self._exhausted:
            self._log.end("exhausted", "network", time.time())
        self._exhausted = plan.exhausted

    def _note_lengths(self, now: float) -> None:
        """Tell when the trains of a sub-network may become much longer or shorter."""
        if self.settings.priority not in ("round-robin", "fifo"):
            candidates = candidates_of(dict(self._runtime.queries), self._facts)
            for decision in self._lengths.news(candidates, self._dispatcher.ranking, now):
                self._log.take(decision, now)

    def _keep_map(self, road: RoadMap, load: float) -> None:
        kept = {"load": load, **road.plain(), "shed": self.settings.shed, "why": dict(self._places.closed)}
        self._decisions.keep_state(ROAD_MAP, time.time(), kept)

    def _keep_memory(self) -> None:
        # A copy: trains note theirs in other threads.
        left = LeftBehind(self._memory.shedding.kept, self._shares, self._exact.copy())
        leave(self._decisions, left if self._acts else left.without_shares(), time.time())

    # -- what trains tell

    def _train_done(self, done: TrainDone) -> None:
        """Called in the thread of the train: whatever goes wrong here must not become its failure.

        A control that has failed still notes from when on answers are exact.
        """
        try:
            if self.failure is None:
                self._note_train(done)
            self._note_loss(done)
        except Exception as error:
            self._fail(error)

    def _note_train(self, done: TrainDone) -> None:
        record = self._runtime.running_records().newest.get(done.subnetwork)
        took = (0, 0.0) if record is None else (record.rows_in, record.duration)
        self._dispatcher.ended(done.subnetwork, *took)
        if record is not None:
            self._book.note(record)
        query = self._runtime.queries.get(done.subnetwork)
        if query is not None:
            self._values.note(query.sub, done)
            self._errors.note(query.sub, done)

    def _note_loss(self, done: TrainDone) -> None:
        query = self._runtime.queries.get(done.subnetwork)
        if query is not None and (done.kept or done.ticket.valves or self._exact):
            self._note_exactness(query.sub, done)

    def _note_exactness(self, sub: SubNetwork, done: TrainDone) -> None:
        lose, changed = losing(sub, done.ticket.valves), False
        for name in (*sub.outputs, *sub.points):
            before, memory = self._exact.get(name, Exactness()), self._places.memory(sub, name)
            self._exact[name] = before.after(done, sub, name, memory, shut=name in lose)
            changed = changed or self._exact[name] != before
        if changed:
            self._keep_memory()

    # -- what it tells

    def _realised(self, decision: Decision) -> dict[str, float]:
        load, records = rate_of_growth(self._spent) or None, self._runtime.running_records()
        return achieved(decision, load, records.newest, records.output_seconds(), self._structure.qos)

    def _tell(self) -> None:
        """Report without deciding anything."""
        now = time.monotonic() - self._began
        picture = self._take_picture(now)
        with self._lock:
            self._picture = picture
        self._report(now)

    def _report(self, now: float) -> None:
        self._reported = now
        if now - self._values_kept >= _KEEP_VALUES_EVERY:
            self._values_kept = now
            values = self._values.plain()
            if values:
                self._decisions.keep_state(VALUES, time.time(), values)
        self._decisions.keep_state(REPORT, time.time(), self.qos().plain())

    def qos(self) -> QosReport:
        """How outputs, sources, valves and sub-networks stand."""
        with self._lock:
            plan, picture = self._plan, self._picture
        records, structure = self._runtime.running_records(), self._structure
        seconds, accounts = records.output_seconds(), records.accounts()
        shares = self._shares if self._acts else {}  # what an earlier run has left, too
        outputs = output_reports(structure, seconds, shares, self._exact, self._errors)
        rates = self._rates.note(time.monotonic() - self._began, accounts.values())
        names = [name for sub in structure.subs for name in sub.inputs if name in sub.network.sources]
        sources = source_reports(picture, accounts, rates, names)
        candidates = candidates_of(dict(self._runtime.queries), self._facts, self._dispatcher.granted())
        table = priorities(candidates, self._dispatcher.ranking)
        valves = {name: query.steering.valves for name, query in list(self._runtime.queries.items())}
        return report_of(outputs, sources, valves, table, picture, plan)


def _surely(*steps: Callable[[], object]) -> None:
    """Take all of these steps, whatever becomes of the others."""
    for step in steps:
        try:
            step()
        except Exception as error:
            _LOG.info("control: %s", one_line(error))
