"""Decisions as sentences with their numbers (`penstock qos why`): what changed, why, and what it is to do."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace

from penstock.control.analysis import PART
from penstock.control.loop.picture import Coming
from penstock.control.loop.plan import Plan
from penstock.control.priority import (
    LEAST_LENGTH,
    OWN_PART,
    Candidate,
    Limit,
    Ranking,
    strictest_limit,
    train_length,
)
from penstock.control.semantic.bins import Cut
from penstock.model.qos import QoS
from penstock.store.catalog.record_types import Decision

_FAR_BELOW = 0.95  # of what a train may take: it is not that limit that decides
_LEAST_CHANGE = 0.02  # of a share: for smaller steps valves stay as they are


def share_decisions(
    before: Mapping[str, float],
    plan: Plan,
    qos: Mapping[str, QoS],
    coming: Coming,
    now: float,
    cuts: Mapping[str, Cut] | None = None,
    *,
    other: Container[str] = (),
) -> list[Decision]:
    """A decision for each output whose share changes. `cuts`: of those that lose tuples by value.

    `other`: those that lose other tuples from now on, though their share may stay.
    """
    changed = [
        (name, before.get(name, 1.0), share)
        for name, share in plan.shares.items()
        if name in qos and (differs(before.get(name, 1.0), share) or (name in other and share < 1))
    ]
    return [
        _by_value(_share_decision((name, old, new), plan, qos[name], coming, now), qos[name], cuts or {})
        for name, old, new in changed
    ]


def differs(old: float, new: float) -> bool:
    """Whether a share changes by so much that valves are set anew.

    >>> differs(0.5, 0.51), differs(0.5, 0.6), differs(0.99, 1.0)
    (False, True, True)
    """
    return abs(old - new) >= _LEAST_CHANGE or (old < 1) != (new < 1)


def _share_decision(
    change: tuple[str, float, float], plan: Plan, qos: QoS, coming: Coming, now: float
) -> Decision:
    name, old, new = change
    usable, load, left = plan.usable or 0.0, plan.load or 0.0, plan.remaining or 0.0
    lost = qos.weight * (qos.at_share(1.0) - qos.at_share(new))
    what = "open again" if new >= 1 else f"{_way(old, new)} {100 * new:.0f} %"
    sentence = (
        f"{name} {what}: {coming.rate:,.0f}/s offered need {load:.2f} CPU-s a second, {usable:.2f} fit; "
        f"with all shares {left:.2f} remain"
    )
    if new < 1:
        sentence += f"; costs {lost:.3g} utility"
    if new < 1 and load <= usable:  # so that is not why
        sentence += _why_shut_though_it_fits(coming, opens=new > old)
    if new < 1 and load <= usable and plan.owed:
        sentence += f"; what waits needs {plan.owed:.1f} CPU-s"
    if plan.late:
        sentence += f"; {plan.late} waits {plan.age:.1f} s, good to {plan.threshold:g} s"
    numbers = {
        "share": round(new, 4),
        "before": round(old, 4),
        "offered_rate": round(coming.rate, 1),
        "load": round(load, 4),
        "usable": round(usable, 4),
        "utility_lost": round(lost, 4),
        "age": round(plan.age, 3),
        "threshold": plan.threshold,
    }
    kind = "open" if new >= 1 else "shed"
    expected = {"load": round(left, 3), "utility": round(qos.at_share(new), 3)}
    return Decision(now, kind, name, sentence, (name,), numbers, expected)


def _why_shut_though_it_fits(coming: Coming, *, opens: bool) -> str:
    if coming.waiting and coming.age >= 1:
        return f"; {coming.waiting:,} tuples wait for up to {coming.age:.0f} s, and have to be worked off"
    return "; it opens step by step" if opens else ""


def _way(old: float, new: float) -> str:
    if f"{100 * new:.0f}" == f"{100 * old:.0f}":
        return "stays at"
    return "to" if new < old else "back to"


def _by_value(decision: Decision, qos: QoS, cuts: Mapping[str, Cut]) -> Decision:
    """The same with what goes by value, and what that costs instead."""
    cut, share = cuts.get(decision.subject), decision.numbers["share"]
    if cut is None or share >= 1:
        return decision
    above = share / cut.share if cut.share else 1.0  # what valves above keep, at random
    value = min(1.0, above * cut.value)
    utility, random = qos.at_share(value), qos.at_share(share)
    lost = qos.weight * (qos.at_share(1.0) - utility)
    which = " or ".join(interval.text() for interval in cut.dropped)
    partly = "" if cut.partly is None else f"{100 * (1 - cut.part):.0f} % of those with {cut.partly.text()}"
    goes = " and ".join(filter(None, [f"those with {which}" if which else "", partly]))
    sentence = (
        f"{decision.sentence.replace('; costs ', '; at random that would cost ')}; by value at {cut.at}: "
        f"{goes} go, {100 * (1 - cut.share):.0f} % of the tuples with {100 * (1 - cut.value):.1f} % of the "
        f"value, which costs {lost:.3g} utility"
    )
    numbers = {
        **decision.numbers,
        "utility_lost": round(lost, 4),
        "utility_lost_at_random": round(qos.weight * (qos.at_share(1.0) - random), 4),
        "value_kept": round(value, 4),
        "predicate": cut.valve().predicate,
    }
    return replace(
        decision,
        sentence=sentence,
        numbers=numbers,
        expected={**decision.expected, "utility": round(utility, 3)},
    )


def length_decision(
    candidate: Candidate, others: Iterable[Candidate], ranking: Ranking, now: float
) -> Decision:
    """How long the trains of a sub-network may be, and for whose sake."""
    rivals = [each for each in others if each.threshold is not None]
    length = train_length(candidate, rivals, ranking.cap)
    takes = replace(candidate, waiting=None).seconds(length)
    reason = _length_reason(length, takes, candidate, strictest_limit(candidate, rivals))
    cost = "its cost is not known yet" if candidate.wall is None else f"about {takes:.2f} s"
    sentence = f"{candidate.name}: trains of at most {length:,} tuples, {cost}: {reason}"
    outputs = tuple(end.name for end in candidate.ends)
    numbers = {"length": length, "seconds": round(takes, 3)}
    expected = {"seconds": round(takes, 3), "tuples": float(length)}
    return Decision(now, "train", candidate.name, sentence, outputs, numbers, expected)


def _length_reason(length: int, takes: float, candidate: Candidate, limit: Limit | None) -> str:
    if limit is None:
        return "no output is strict"
    good = f"{limit.end} is good to {limit.threshold:.3g} s"
    if length == LEAST_LENGTH and takes > limit.seconds:
        return f"{good}, but shorter ones would get next to nothing done"
    if takes < _FAR_BELOW * limit.seconds:
        return "no train is ever longer"
    if limit.why == "fixed":
        fixed = 0.0 if candidate.wall is None else candidate.wall.fixed
        return f"{good}, but they take {fixed:.2f} s even without tuples, so shorter ones would get less done"
    if limit.why == "own":
        return f"{good}, and its own trains may take no more than {OWN_PART:g} of that"
    return f"{good}, and trains of others may take no more than {PART:g} of that"


def held_decision(name: str, share: float, now: float) -> Decision:
    """A share that the run before has left, and that the loop has still to confirm."""
    sentence = f"{name} stays at {100 * share:.0f} %: so the run before has left it a moment ago"
    return Decision(now, "shed", name, sentence, (name,), {"share": round(share, 4)})


def exhausted_decision(plan: Plan, outputs: Iterable[str], now: float) -> Decision:
    """Nothing more may be shed, or nothing at all, and the load is still too large (A82)."""
    left, usable = plan.remaining or 0.0, plan.usable or 0.0
    sentence = (
        f"nothing is left to shed: {left:.2f} CPU-s a second remain, {usable:.2f} fit; what may not be "
        "shed will be late, if trains cost as much as they did"
        if plan.shedding
        else f"nothing may be shed: {left:.2f} CPU-s a second are needed, {usable:.2f} fit; outputs will "
        "be late, if trains cost as much as they did"
    )
    numbers = {"remaining": round(left, 4), "usable": round(usable, 4)}
    return Decision(now, "exhausted", "network", sentence, tuple(outputs), numbers)


def out_of_reach_decision(name: str, threshold: float, least: float, now: float) -> Decision:
    """No rate lets an output be good, so nothing else is shed for its sake (A59)."""
    sentence = (
        f"{name} cannot be good at any rate: trains on its way take {PART * least:.2f} s even without "
        f"tuples, so {least:.2f} s is the least that can be promised, not {threshold:g} s; nothing is shed "
        "for its sake"
    )
    numbers = {"least": round(least, 3), "threshold": threshold}
    return Decision(now, "warning", name, sentence, (name,), numbers)


def would(decision: Decision) -> Decision:
    """The same, of a control that only observes."""
    return replace(
        decision, kind=f"would-{decision.kind}", sentence=f"would do: {decision.sentence}", expected={}
    )
