"""Before a run under control starts: a delay that no rate can meet is refused (A59, A81, A82).

One that the rate measured last cannot meet is only warned of: the rate may have been a peak.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from penstock.control.analysis import PART, analyse
from penstock.control.costs import costs_of
from penstock.control.loop.structure import Structure, rated
from penstock.model.costs import Line, MeasuredCosts, MeasuredSubnetwork
from penstock.model.errors import PenstockError
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import SubNetwork
from penstock.store.catalog.record_types import InputLoad, TrainRecord

LEAST_TRAIN = 0.05
"""Seconds that no train on Spark stays below, however few its tuples are."""


def must_be_possible(subs: Sequence[SubNetwork], trains: Mapping[str, Sequence[TrainRecord]]) -> None:
    """Refuse outputs whose delay no rate can meet, as far as earlier trains tell."""
    floors = {sub.name: _floor(trains.get(sub.name, ())) for sub in subs}
    lines = {name: MeasuredSubnetwork(name, wall=Line(seconds)) for name, seconds in floors.items()}
    structure = Structure(tuple(subs))
    for sub in subs:
        fixed = structure.fixed_on_the_way(sub, MeasuredCosts(subnetworks=lines))
        for name, qos in rated(sub).items():
            if qos.threshold < fixed / PART:
                raise _impossible(name, qos.threshold, fixed)


def _floor(trains: Iterable[TrainRecord]) -> float:
    """What the shortest train took: a line through trains of a busy hour may say more."""
    return max(LEAST_TRAIN, min((train.duration for train in trains if train.rows_in), default=0.0))


def _impossible(name: str, threshold: float, fixed: float) -> PenstockError:
    return PenstockError(
        f"{name} cannot be good at any rate",
        found=f"a delay graph that is good up to {threshold:g} s; trains on its way take {fixed:.2f} s even "
        "without tuples, one is waited for and one is ridden in",
        expected=f"a delay of at least {fixed / PART:.2f} s",
        hint="draw a longer good zone, or run without control (without --qos)",
    )


def warnings_about(
    network: Network,
    trains: Mapping[str, Sequence[TrainRecord]],
    loads: Iterable[InputLoad],
    cores: int,
    headroom: float,
) -> list[str]:
    """A sentence for each output that cannot be good at the rates measured last; none if they are unknown."""
    rates: dict[str, list[float]] = {name: [] for name in network.sources}
    for load in loads:
        if load.input in rates and load.offered_rate is not None:
            rates[load.input].append(load.offered_rate)
    if not all(rates.values()):
        return []
    means = {name: sum(seen) / len(seen) for name, seen in rates.items()}
    with suppress(PenstockError):  # some costs are not known
        analysis = analyse(network, costs_of(trains, jobs=True), means, cores=cores, headroom=headroom)
        return [output.problem for output in analysis.outputs if output.problem]
    return []
