"""Takes the picture of a running network: what waits, what it costs, how good its outputs are."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.control.loop.cost_book import CostBook
from penstock.control.loop.dispatcher import SubnetworkFacts, age_of, waiting_of
from penstock.control.loop.picture import Coming, Picture, SubnetworkPicture
from penstock.control.loop.plan import cpu_per_tuple
from penstock.control.loop.structure import Structure, by_name
from penstock.control.priority import Candidate
from penstock.control.utility import in_good_zone
from penstock.model.costs import Line, MeasuredCosts
from penstock.model.qos import QoS
from penstock.rewrite.subnetworks import SubNetwork
from penstock.runtime.measuring import loads_of
from penstock.store.catalog.record_types import OutputSecond

if TYPE_CHECKING:  # whoever has no PySpark is told so by the runtime, in one sentence
    from penstock.engine.spark.trains.query import SubnetworkQuery

RECENT = 5
"""Seconds: what an output did longer ago does not tell how it is now."""


def picture_of(
    queries: Mapping[str, SubnetworkQuery],
    book: CostBook,
    seconds: Mapping[str, Sequence[OutputSecond]],
    qos: Mapping[str, QoS],
    now: float,
) -> Picture:
    """The picture at this moment; `now`: seconds since control began."""
    costs, wall = book.costs(now), time.time()
    used = book.used()
    return Picture(
        now,
        tuple(_subnetwork(query, book, wall) for query in queries.values()),
        costs,
        book.capacity,
        None if used is None else used[0],
        None if used is None else used[1],
        {name: zone_now(graphs, seconds.get(name, ()), wall) for name, graphs in qos.items()},
        book.worked,
        dict(book.spent),
        book.floors,
    )


def spent_on_rated(structure: Structure, picture: Picture) -> float:
    """CPU-seconds that trains spent so far on tuples for outputs with a QoS: what a plan calls load."""
    rated_subs = [sub.name for sub in structure.subs if structure.ends(sub, picture.costs)]
    return sum(picture.spent.get(name, 0.0) for name in rated_subs)


def rate_of_growth(seen: Sequence[tuple[float, float]]) -> float:
    """By how much a figure grew a second, from looks at it: (when, figure).

    >>> rate_of_growth([(10.0, 3.0), (12.0, 4.0), (14.0, 7.0)]), rate_of_growth([(10.0, 3.0)])
    (1.0, 0.0)
    """
    if not seen or seen[-1][0] <= seen[0][0]:
        return 0.0
    (began, before), (ended, after) = seen[0], seen[-1]
    return (after - before) / (ended - began)


def coming_to_rated(structure: Structure, picture: Picture) -> Coming:
    """What comes from outside for outputs with a QoS, and waits. A point's tuples came before."""
    subs, points = by_name(structure.subs), {name for sub in structure.subs for name in sub.points}
    loads = {  # a source that several sub-networks read counts once
        load.input: load
        for seen in picture.subnetworks
        if seen.name in subs and not seen.held and structure.ends(subs[seen.name], picture.costs)
        for load in seen.inputs
        if load.input not in points
    }
    return Coming(
        sum(load.offered_rate or 0.0 for load in loads.values()),
        sum(load.waiting or 0 for load in loads.values()),
        max((load.age or 0.0 for load in loads.values()), default=0.0),
    )


def _subnetwork(query: SubnetworkQuery, book: CostBook, wall: float) -> SubnetworkPicture:
    inputs = tuple(loads_of(query, wall))
    name, situation = query.sub.name, query.situation()
    departed = None if situation.departed is None else situation.now - situation.departed
    return SubnetworkPicture(
        name, inputs, bool(query.steering.held), not query.drained(), book.trains(name), departed
    )


def last_second(seconds: Sequence[OutputSecond], wall: float) -> OutputSecond | None:
    """The newest second of an output in which something was due, unless that is long ago."""
    recent = [each for each in seconds[-1:] if each.second >= wall - RECENT]
    return recent[0] if recent else None


def zone_now(qos: QoS, seconds: Sequence[OutputSecond], wall: float) -> bool | None:
    """Whether an output was good in the last second; None if nothing was due."""
    newest = last_second(seconds, wall)
    return None if newest is None else in_good_zone(qos, newest)


def facts_of(
    structure: Structure, picture: Picture, shares: Mapping[str, float]
) -> dict[str, SubnetworkFacts]:
    """What the dispatcher needs to know of each sub-network. What is shed makes its tuples cheaper."""
    seen = {each.name: each for each in picture.subnetworks}
    facts = {}
    for sub in structure.subs:
        known = seen.get(sub.name, SubnetworkPicture(sub.name))
        wall, cpu = _lines(structure, sub, known, picture.costs, shares)
        facts[sub.name] = SubnetworkFacts(wall, cpu, structure.ends(sub, picture.costs))
    return facts


def _lines(
    structure: Structure,
    sub: SubNetwork,
    seen: SubnetworkPicture,
    costs: MeasuredCosts,
    shares: Mapping[str, float],
) -> tuple[Line | None, Line | None]:
    """Time and CPU of a train by its tuples, while outputs keep these shares."""
    measured = costs.subnetworks.get(sub.name)
    if measured is None:
        return None, None
    each = cpu_per_tuple(structure, sub, seen, costs, shares)
    if each is None or measured.cpu is None or measured.spread is None:
        return measured.wall, measured.cpu
    wall = Line(costs.fixed_seconds(sub.name), each * measured.spread.per_tuple)
    return wall, Line(costs.fixed_cpu(sub.name), each)


def candidates_of(
    queries: Mapping[str, SubnetworkQuery],
    facts: Mapping[str, SubnetworkFacts],
    granted: Mapping[str, float] | None = None,
) -> list[Candidate]:
    """The sub-networks as candidates for the next train. `granted`: when each last got one."""
    candidates = []
    for query in queries.values():
        name, known = query.sub.name, facts.get(query.sub.name, SubnetworkFacts())
        inputs = list(query.situation().inputs.values())
        asked = Candidate(name, waiting_of(inputs), age_of(inputs), known.wall, known.cpu, known.ends)
        candidates.append(replace(asked, granted=(granted or {}).get(name, asked.granted)))
    return candidates
