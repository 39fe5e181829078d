"""When to shed and how much (A85, A87, A89, A92): tighten at once, loosen slowly, never swing.

The offered rate is measured in front of the valves. So shedding does not change what decides about it, and
the plan follows from demand and capacity alone.

A backlog is no overload as long as it shrinks: a run that starts has one, and so has one that was stopped
for a moment. Where the load is too large anyway, it adds to the demand: it has to be worked off. So does what
waits when the load has fallen again: valves stay shut until that is nearly gone. A backlog that keeps outputs
late for long, and will for longer, is an overload too, however little comes.

While every train leaves something behind, trains do what they can. If that is less than what should be
usable, say because others use the machine, the *strain* says by how much.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.control.analysis import PART

_MOST_CATCH_UP = 4.0  # times the load, or what fits: no small backlog is a reason to shed more
_WORK_OFF = 10.0  # seconds: a backlog that would take longer even so is a reason, however little comes
_BAND = 0.03  # tighten by less than this only if something is late
_LAST_TENTH = 0.9
_SURE, _LONG_CALM = 0.85, 10.0  # all is kept if it takes this part, or has fitted for so many seconds
_NEARLY = 0.95  # till then
_STEP = 0.1  # of the way, while only a part fits
_GAIN, _LEAST_ERROR, _MOST_ERROR = 0.05, 0.9, 1.6
_MARKS, _SPAN, _MOST_SPAN = 4, 2.5, 6.0  # so many trains, over so many seconds, tell what they can do
_MUCH = 2.0  # times what can be done: then nobody waits until something is late
_LEFT = 0.1  # seconds: what came so shortly before a train left is not left behind
_RESERVE = 0.95  # of what trains can do at most: nothing that waits would ever get younger
_MOST_STRAIN, _RELAX = 2.0, 0.01  # strain goes away by this part a second when nothing is left behind
_MOST_PATIENCE = 16.0


@dataclass(frozen=True)
class Tempo:
    """How fast shares move.

    `catch_up`: seconds in which a backlog is to be worked off that is older than its part of the threshold.
    `calm`: seconds without tightening before valves open. `every`: seconds between two steps of opening.
    `worth`: valves open only for a share that is so many times as large. `patience`: if they had to close
    again after opening, the wait before the next opening grows by this factor, unless all fits. `long_late`:
    seconds after which a backlog is an overload, however little comes: a run that starts, or was stopped for
    a moment, has worked it off by then.
    """

    catch_up: float = 2.0
    calm: float = 2.0
    every: float = 1.0
    worth: float = 1.0
    patience: float = 1.0
    long_late: float = 15.0


QUICK = Tempo()
STEADY = Tempo(catch_up=10.0, calm=20.0, every=2.0, worth=1.15, patience=2.0, long_late=60.0)
"""Where what comes back is not exact for long: no more goes than must, nothing comes back for a moment."""


@dataclass(frozen=True)
class Pressure:
    """What decides, at one moment. `load`: CPU-seconds a second that the offered tuples need, unshed.

    `usable`: CPU-seconds a second that may be used while something is shed. `most`: before that, with trains
    as long as they may be. `age`: of the oldest waiting tuple; `threshold`: of the strictest governed
    output. `measured` and `predicted`: CPU of recent trains, as used and as the cost lines say; None if no
    train ran. `trains`: how many have run so far. `least`: the part of the load that remains if everything is
    shed that may be. `worked`: CPU-seconds that trains have spent on tuples so far, as the cost lines say.
    `left`: how long the oldest waiting tuple had waited when the last train left without it; 0 if it came
    later. `owed`: CPU-seconds that all waiting tuples need, unshed; None if nobody knows how many wait.
    """

    now: float
    load: float
    usable: float
    age: float
    threshold: float
    measured: float | None = None
    predicted: float | None = None
    trains: int = 0
    least: float = 0.0
    worked: float = 0.0
    left: float = 0.0
    most: float = 0.0
    owed: float | None = 0.0

    @property
    def overdue(self) -> float:
        """CPU-seconds of what waits beyond what may wait for one train while this load comes."""
        return max(0.0, (self.owed or 0.0) - PART * self.threshold * self.load) if self.backlog else 0.0

    @property
    def backlog(self) -> float:
        """By how much the oldest is older than a tuple may be that waits for one train.

        What the last train took with it is none, and what came since rides in the next one.
        """
        return max(0.0, self.age - PART * self.threshold) if self.left > _LEFT else 0.0


@dataclass(frozen=True)
class Mark:
    """A train has ended: whether the last one left something behind, and what all had done by then."""

    now: float
    full: bool
    trains: int
    worked: float


@dataclass(frozen=True)
class Shedding:
    """How much of the load is kept, 0..1, and what is remembered for the next look.

    `error`: measured CPU by predicted CPU, smoothed. `strain`: what should be usable by what really is.
    `late`: since when something has been late without a break.
    """

    kept: float = 1.0
    tightened: float = float("-inf")  # when
    opened: float = float("-inf")  # when, last
    error: float = 1.0
    strain: float = 1.0
    strained: float = float("-inf")  # when it was last changed
    waits: float = 1.0  # times as long as usual before valves open: what came back had to go again
    marks: tuple[Mark, ...] = ()
    late: float = float("inf")


def demand(
    load: float, backlog: float, tempo: Tempo = QUICK, *, overdue: float = 0.0, usable: float = 0.0
) -> float:
    """The load with what has to be worked off: by its age, or by the CPU that it needs if that is more.

    Where little comes now, only the CPU tells how much an overload has left behind.

    >>> demand(1.0, backlog=0.0), demand(1.0, backlog=2.0)
    (1.0, 2.0)
    >>> [demand(0.1, backlog=30.0, overdue=cpu, usable=1.0) for cpu in (2.0, 20.0, 99.0)]
    [1.1, 4.0, 10.0]
    """
    by_age = load * min(_MOST_CATCH_UP, 1 + backlog / tempo.catch_up)
    by_work = min(_MOST_CATCH_UP * max(load, usable), load + overdue / tempo.catch_up)
    return max(by_age, by_work, load + overdue / _WORK_OFF)


def next_shedding(state: Shedding, seen: Pressure, tempo: Tempo = QUICK) -> Shedding:
    """The decision of one look, a few times a second."""
    state = _with_marks(replace(state, error=_error(state.error, seen)), seen)
    state = _with_strain(state, seen)
    state = replace(state, late=min(state.late, seen.now) if seen.backlog else float("inf"))
    target = _target(state, seen, tempo)
    late = seen.backlog > 0
    if target < state.kept * (1 - _BAND) or (late and target < state.kept):
        return replace(state, kept=target, tightened=seen.now, waits=_waits(state, tempo))
    if target > state.kept and _may_open(state, target, seen.now, tempo):
        return replace(state, kept=_opened(state.kept, target), opened=seen.now)
    return state


def too_much(state: Shedding, seen: Pressure, tempo: Tempo = QUICK) -> bool:
    """Whether less would be kept if all might be shed.

    >>> seen = Pressure(20.0, load=3.0, usable=1.0, age=3.0, threshold=2.0, least=1.0, left=1.0)
    >>> next_shedding(Shedding(), seen).kept, too_much(Shedding(), seen)
    (1.0, True)
    """
    return _target(state, replace(seen, least=0.0), tempo) < 1


def _target(state: Shedding, seen: Pressure, tempo: Tempo) -> float:
    """The part of the load that fits."""
    wrong = state.error * state.strain
    needed = wrong * seen.load
    if needed <= 0 and (state.kept >= 1 or not seen.overdue):
        return 1.0
    asked = demand(needed, seen.backlog, tempo, overdue=wrong * seen.overdue, usable=seen.usable)
    if state.kept >= 1 and _may_wait(state, seen, needed, asked, tempo):
        return 1.0
    if state.kept < 1 and needed <= seen.usable and not seen.backlog:
        # What an overload has left behind has to go first, and one look may err.
        sure = needed <= _SURE * seen.usable or seen.now - state.tightened >= _LONG_CALM
        return 1.0 if sure else max(state.kept, _NEARLY)
    target = min(1.0, max(seen.least, seen.usable / asked))
    # Nobody knows how much has to be worked off: as long as anything is late, nothing comes back.
    return min(target, state.kept) if seen.owed is None and seen.backlog and state.kept < 1 else target


def _may_wait(state: Shedding, seen: Pressure, needed: float, asked: float, tempo: Tempo) -> bool:
    """Whether nothing has to be shed yet.

    It fits, or the last train has taken all, or the excess is small and nothing is late. But what has been
    late for long, and is too much to be made up for soon, does not wait for ever.
    """
    if seen.overdue and asked > seen.usable and seen.now - state.late >= tempo.long_late:
        return False
    fits = needed <= max(seen.usable, seen.most)
    return fits or seen.left <= _LEFT or (not seen.backlog and needed < _MUCH * seen.most)


def _error(before: float, seen: Pressure) -> float:
    if not seen.measured or not seen.predicted:
        return before
    now = seen.measured / seen.predicted
    return min(_MOST_ERROR, max(_LEAST_ERROR, before + _GAIN * (now - before)))


def _with_marks(state: Shedding, seen: Pressure) -> Shedding:
    """Remember what trains had done when one ended. While none ends, nothing is known about their speed."""
    if state.marks and state.marks[-1].trains >= seen.trains:
        return state
    recent = [mark for mark in state.marks if mark.now >= seen.now - _MOST_SPAN]
    return replace(state, marks=(*recent, Mark(seen.now, seen.left > _LEFT, seen.trains, seen.worked)))


def _with_strain(state: Shedding, seen: Pressure) -> Shedding:
    """While every train leaves something behind, trains do all that they can: so much is really usable.

    Where nothing is left to shed, that is known, and no more can be learnt from it.
    """
    if seen.left <= _LEFT:
        return _relaxed(state, seen.now)
    full = _since_full(state.marks)
    span = full[-1].now - full[0].now if len(full) >= _MARKS else 0.0
    if span < _SPAN or state.kept <= seen.least:
        return state
    done = state.error * (full[-1].worked - full[0].worked) / span
    told = min(_MOST_STRAIN, max(1.0, seen.usable / (_RESERVE * done))) if done > 0 else state.strain
    strain = (state.strain + told) / 2  # a few trains may be odd
    return replace(state, strain=strain, strained=seen.now, marks=full[1:])


def _since_full(marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
    """The last marks without a break at which something was left behind."""
    ready = next((index for index, mark in enumerate(reversed(marks)) if not mark.full), len(marks))
    return marks[len(marks) - ready :]


def _relaxed(state: Shedding, now: float) -> Shedding:
    if state.strain <= 1 or now - state.strained < 1.0:
        return state
    return replace(state, strain=max(1.0, state.strain * (1 - _RELAX)), strained=now)


def _waits(state: Shedding, tempo: Tempo) -> float:
    """How much longer valves stay shut the next time."""
    if state.kept >= 1:
        return 1.0
    again = state.opened > state.tightened
    return min(_MOST_PATIENCE, state.waits * tempo.patience) if again else state.waits


def _may_open(state: Shedding, target: float, now: float, tempo: Tempo) -> bool:
    if now - state.opened < tempo.every:
        return False
    if target >= 1:
        return now - state.tightened >= tempo.calm
    return target >= tempo.worth * state.kept and now - state.tightened >= tempo.calm * state.waits


def _opened(kept: float, target: float) -> float:
    """Half of the way where everything fits; the last tenth in one step, or no valve would ever be open.

    While there is overload, a little at a time: to keep too little costs far less than to be late again.
    """
    if target < 1:
        return kept + _STEP * (target - kept)
    half = kept + (target - kept) / 2
    return 1.0 if half > _LAST_TENTH else half
