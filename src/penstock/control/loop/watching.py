"""Takes the picture of a running network: what waits, what it costs, how good its outputs are."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from penstock.control.loop.cost_book import CostBook
from penstock.control.loop.dispatcher import SubnetworkFacts, age_of, waiting_of
from penstock.control.loop.picture import Picture, SubnetworkPicture
from penstock.control.loop.structure import Structure, scaled
from penstock.control.priority import Candidate
from penstock.control.utility import in_good_zone
from penstock.engine.contract.valve import Valve
from penstock.engine.spark.trains.query import SubnetworkQuery
from penstock.model.costs import MeasuredCosts
from penstock.model.qos import QoS
from penstock.runtime.measuring import loads_of
from penstock.store.catalog.record_types import OutputSecond

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
    )


def _subnetwork(query: SubnetworkQuery, book: CostBook, wall: float) -> SubnetworkPicture:
    inputs = tuple(loads_of(query, wall))
    name = query.sub.name
    return SubnetworkPicture(name, inputs, bool(query.steering.held), not query.drained(), book.trains(name))


def last_second(seconds: Sequence[OutputSecond], wall: float) -> OutputSecond | None:
    """The newest second of an output in which something was due, unless that is long ago."""
    recent = [each for each in seconds[-1:] if each.second >= wall - RECENT]
    return recent[0] if recent else None


def zone_now(qos: QoS, seconds: Sequence[OutputSecond], wall: float) -> bool | None:
    """Whether an output was good in the last second; None if nothing was due."""
    newest = last_second(seconds, wall)
    return None if newest is None else in_good_zone(qos, newest)


def facts_of(
    structure: Structure, costs: MeasuredCosts, valves: Mapping[str, Sequence[Valve]]
) -> dict[str, SubnetworkFacts]:
    """What the dispatcher needs to know of each sub-network. A valve at an input makes tuples cheaper."""
    facts = {}
    for sub in structure.subs:
        measured = costs.subnetworks.get(sub.name)
        closed = [valve.share for valve in valves.get(sub.name, ()) if valve.arrow is None]
        share = max(0.01, min(closed, default=1.0))
        lines = (None, None) if measured is None else (measured.wall, measured.cpu)
        facts[sub.name] = SubnetworkFacts(
            scaled(lines[0], share), scaled(lines[1], share), structure.ends(sub, costs)
        )
    return facts


def candidates_of(
    queries: Mapping[str, SubnetworkQuery], facts: Mapping[str, SubnetworkFacts]
) -> list[Candidate]:
    """The sub-networks as candidates for the next train."""
    candidates = []
    for query in queries.values():
        known = facts.get(query.sub.name, SubnetworkFacts())
        inputs = list(query.situation().inputs.values())
        candidates.append(
            Candidate(query.sub.name, waiting_of(inputs), age_of(inputs), known.wall, known.cpu, known.ends)
        )
    return candidates
