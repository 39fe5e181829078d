"""One dispatcher grants trains to all sub-networks (A54, A67, A78, A79): the policy of every conductor.

Spark takes the earlier job and never stops a task that runs. So a train that is not granted does not exist:
its ticket is not written, and its input is not taken. A few trains run at a time: one plans while the tasks
of another run. What is to run next is decided by `priority.choose`; here is only who asks, who runs and who
has to be woken.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf

from penstock.control.priority import Candidate, Grant, Ranking, RatedEnd, choose, priorities, train_length
from penstock.engine.contract.policy import DEFAULT_BYTES, LONG_JOB_BYTES, LONG_JOB_TUPLES, TrainPolicy
from penstock.engine.contract.situation import InputSituation, Situation
from penstock.model.costs import Line

AT_ONCE = 2
"""Trains that run at the same time."""
_ASKS = 0.5  # seconds: who has not asked for so long cannot leave now
_LOST = 1.0  # seconds after which a grant without a train is void
_ENOUGH_CREDIT, _MOST_DEBT = 1.0, 30.0  # seconds
_SHORT = 0.1  # of the threshold of a stricter sub-network: a train so short is in nobody's way
_PATIENT = 0.5  # of its own threshold: who is older by the end of its train does not wait for stricter ones
_DEAD = 10.0  # seconds without a beat after which the loop counts as dead
_STOOD_STILL, _GRACE = 5.0, 1.0  # seconds without any question: all stood still, and the loop may look again


@dataclass(frozen=True)
class SubnetworkFacts:
    """What the loop tells the dispatcher about a sub-network."""

    wall: Line | None = None
    cpu: Line | None = None
    ends: tuple[RatedEnd, ...] = ()


class Dispatcher:
    """Grants trains; all threads may use it.

    `given` is the policy of the run without control: its lengths, bytes and pauses are upper limits here too.
    `unrated`: the part of the time that sub-networks without QoS get even if others always have work.
    """

    wakes = True

    def __init__(
        self,
        given: TrainPolicy,
        ranking: Ranking,
        *,
        at_once: int = AT_ONCE,
        unrated: float = 0.1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._given, self._at_once, self._unrated, self._clock = given, at_once, unrated, clock
        self.ranking = ranking
        self.facts: Mapping[str, SubnetworkFacts] = {}
        self.wake: Callable[[str], None] = lambda _: None
        self.on_silence: Callable[[], None] = lambda: None
        self.on_error: Callable[[BaseException], None] = lambda _: None
        self._lock = threading.RLock()
        self._candidates: dict[str, Candidate] = {}
        self._asked: dict[str, float] = {}
        self._running: dict[str, float] = {}  # since when
        self._last: dict[str, tuple[int, float]] = {}  # tuples and seconds of the last train
        self._granted: dict[str, float] = {}
        self._credit = 0.0  # seconds that sub-networks without QoS may take before others
        self._beat: float | None = None
        self._asked_last: float | None = None  # when, whoever
        self._told = False  # that the loop is silent
        self._over = False
        self._job_tuples = 0

    @property
    def max_bytes(self) -> int:
        """The most bytes of each input in a train."""
        given = int(getattr(self._given, "max_bytes", DEFAULT_BYTES))
        return min(given, LONG_JOB_BYTES) if self.job_tuples == LONG_JOB_TUPLES else given

    @property
    def _longest_job(self) -> int:
        return max(LONG_JOB_TUPLES, int(getattr(self._given, "job_tuples", 0)))

    @property
    def job_tuples(self) -> int:
        """Trains up to this length are jobs. Where outputs have a QoS, none is longer.

        A train of DataFrames is planned and compiled anew, which takes longer than strict outputs can wait.
        """
        return 0 if self._over else self._job_tuples

    # -- the conductors ask

    def next_train(self, situation: Situation) -> int | None:
        """The length of a train that may leave now; None: not now. Who is granted one later is woken."""
        cap = self._given.next_train(situation)
        if cap is None or self._over:
            return cap
        try:
            return cap if self._loop_is_silent() else self._next_train(situation, cap)
        except Exception as error:
            self._fail(error)
            return cap

    def _fail(self, error: BaseException) -> None:
        """A fault of ours must not become one of a train."""
        self.end()
        self.on_error(error)

    def _next_train(self, situation: Situation, cap: int) -> int | None:
        with self._lock:
            name, now = situation.subnetwork, self._clock()
            by_qos = self.ranking.scheme in ("state", "feedback")
            rated = by_qos and any(facts.ends for facts in self.facts.values())
            self._job_tuples = self._longest_job if rated else 0
            cap = min(cap, self._longest_job) if rated else cap
            self._running.pop(name, None)  # who asks has no train
            self._candidates[name] = self._candidate(situation)
            self._asked[name] = now
            if len(self._running) >= self._at_once:
                return None
            grant = self._choice(cap, now)
            if grant is None and self._candidates[name].waiting == 0:
                return self._let_look(name, cap, now)
            if grant is None or grant.name != name:
                self._wake(grant)
                return None
            return self._let_go(grant, now)

    def _let_look(self, name: str, cap: int, now: float) -> int:
        """Nothing is known to wait, but something may have come just now, or a window has to be closed."""
        length = self._length(name, cap)
        self._running[name] = now
        return length

    def _let_go(self, grant: Grant, now: float) -> int:
        self._running[grant.name] = self._granted[grant.name] = now
        self._account(grant)
        return grant.length

    def declined(self, subnetwork: str) -> None:
        """The train that was granted does not leave: there was nothing to take.

        An input that cannot tell what waits would be granted the next one again and again, so that nobody
        else gets any. Until it asks again, it counts as empty.
        """
        try:
            with self._lock:
                self._running.pop(subnetwork, None)
                if subnetwork in self._candidates:
                    self._candidates[subnetwork] = replace(self._candidates[subnetwork], waiting=0)
                if not self._over:
                    self._wake(self._choice(None, self._clock()))
        except Exception as error:
            self._fail(error)

    def ended(self, subnetwork: str, tuples: int = 0, seconds: float = 0.0) -> None:
        """A train is done, of so many tuples and seconds; the next one is woken."""
        with self._lock:
            if tuples:
                self._last[subnetwork] = tuples, seconds
            self._running.pop(subnetwork, None)
            if not self._over:
                self._wake(self._choice(None, self._clock()))

    # -- the loop tells

    def sync(self, running: Mapping[str, bool]) -> None:
        """Forget grants whose train is gone: `running` tells of each sub-network whether one runs."""
        with self._lock:
            now = self._clock()
            self._beat, self._told = now, False
            for name, since in list(self._running.items()):
                if not running.get(name, False) and now - since > _LOST:
                    del self._running[name]
            for name in set(self._candidates) - set(running):
                del self._candidates[name]
                self._asked.pop(name, None)
            self._wake(self._choice(None, now))

    def end(self) -> None:
        """From now on trains leave as they would without control."""
        with self._lock:
            self._over = True

    def granted(self) -> dict[str, float]:
        """When each sub-network last got a train, on the clock of intervals."""
        with self._lock:
            return dict(self._granted)

    def table(self) -> dict[str, tuple[float, int | None, bool]]:
        """By sub-network: priority, waiting tuples, whether a train runs (A67)."""
        with self._lock:
            known = [self._known(each) for each in self._candidates.values()]
            ranks = priorities(known, self.ranking)
            return {each.name: (ranks[each.name], each.waiting, each.name in self._running) for each in known}

    # -- inside

    def _loop_is_silent(self) -> bool:
        """If the loop has died, nobody would open its valves. Whoever asks for a train finds out.

        Trains then leave as they come until it looks again. If the whole process stood still, it can.
        """
        now = self._clock()
        with self._lock:
            still = self._asked_last is not None and now - self._asked_last > _STOOD_STILL
            self._asked_last = now
            if self._beat is not None and still:
                self._beat = max(self._beat, now - _DEAD + _GRACE)
            silent = self._beat is not None and now - self._beat > _DEAD
            tell, self._told = silent and not self._told, silent
        if tell:
            self.on_silence()
        return silent

    def _candidate(self, situation: Situation) -> Candidate:
        inputs = situation.inputs.values()
        return Candidate(situation.subnetwork, waiting_of(inputs), age_of(inputs))

    def _known(self, candidate: Candidate) -> Candidate:
        """With what is known about its costs and its ends."""
        name = candidate.name
        facts = self.facts.get(name, SubnetworkFacts())
        return replace(
            candidate,
            wall=facts.wall,
            cpu=facts.cpu,
            ends=facts.ends,
            last_length=self._last.get(name, (0, 0.0))[0],
            last_seconds=self._last[name][1] if name in self._last else None,
            granted=self._granted.get(name, float("-inf")),
        )

    def _may_leave(self, name: str, now: float) -> bool:
        return name not in self._running and now - self._asked.get(name, float("-inf")) <= _ASKS

    def _anybody(self, now: float) -> bool:
        """Whether any train could leave; conductors without input ask often, so this must be quick."""
        return any(each.waiting != 0 and self._may_leave(n, now) for n, each in self._candidates.items())

    def _all(self, now: float) -> list[Candidate]:
        """All sub-networks. Who runs or does not ask has nothing to take now, but must not be blocked."""
        asking = {name for name, at in self._asked.items() if now - at <= _ASKS and name not in self._running}
        return [
            self._known(each if name in asking else replace(each, waiting=0))
            for name, each in self._candidates.items()
        ]

    def _choice(self, cap: int | None, now: float) -> Grant | None:
        if len(self._running) >= self._at_once or not self._anybody(now):
            return None
        ranking = self.ranking if cap is None else replace(self.ranking, cap=cap)
        candidates = self._all(now)
        if ranking.scheme not in ("state", "feedback"):
            return choose(candidates, ranking)
        if self._credit >= _ENOUGH_CREDIT:
            unrated = [each for each in candidates if not each.ends and each.waiting != 0]
            rated = [replace(each, waiting=0) for each in candidates if each.ends]
            first = choose([*unrated, *rated], ranking) if unrated else None
            if first is not None:
                return first
        return choose([self._unless_in_the_way(each, ranking.cap) for each in candidates], ranking)

    def _unless_in_the_way(self, candidate: Candidate, cap: int) -> Candidate:
        """Nothing to take, if its train would hold up the next one of a stricter sub-network that runs now.

        Tasks are never stopped, and a long train has tasks on all cores. What comes while the strict one runs
        would wait for it, and then for a whole long train. Who is soon late does not wait.
        """
        thresholds = [self._threshold(name) for name in self._running if name != candidate.name]
        strictest, own = min(thresholds, default=inf), self._threshold(candidate.name)
        if candidate.waiting == 0 or strictest >= own:
            return candidate
        takes = candidate.seconds(self._length(candidate.name, cap))
        patient = (candidate.age or 0.0) + takes < _PATIENT * own
        return replace(candidate, waiting=0) if patient and takes > _SHORT * strictest else candidate

    def _threshold(self, name: str) -> float:
        """The least delay that an end of a sub-network finds good; without a QoS any is."""
        threshold = self._known(self._candidates[name]).threshold if name in self._candidates else None
        return inf if threshold is None else threshold

    def _account(self, grant: Grant) -> None:
        """Sub-networks without QoS earn their part of the time while others run, and spend it themselves."""
        candidate = self._known(self._candidates[grant.name])
        seconds = candidate.seconds(grant.length)
        if candidate.ends:
            earned = seconds * self._unrated / max(1e-9, 1 - self._unrated)
            self._credit = min(2 * _ENOUGH_CREDIT, self._credit + earned)
        else:
            self._credit = max(-_MOST_DEBT, self._credit - seconds)

    def _length(self, name: str, cap: int) -> int:
        if self.ranking.scheme in ("round-robin", "fifo"):
            return cap
        others = [self._known(each) for other, each in self._candidates.items() if other != name]
        return train_length(self._known(self._candidates[name]), others, cap)

    def _wake(self, grant: Grant | None) -> None:
        if grant is not None:
            self.wake(grant.name)


def waiting_of(inputs: Iterable[InputSituation]) -> int | None:
    """Tuples that wait at all inputs; None if nothing is known to wait but something may."""
    known = [each.waiting_tuples for each in inputs]
    total = sum(tuples for tuples in known if tuples is not None)
    return None if None in known and not total else total


def age_of(inputs: Iterable[InputSituation]) -> float | None:
    """The age of the oldest tuple that waits."""
    ages = [each.oldest_age for each in inputs if each.oldest_age is not None]
    return max(ages, default=None)
