"""Before a run under control starts or changes: a delay that no rate can meet is refused (A59, A81, A82).

One that the rate measured last cannot meet is only warned of: the rate may have been a peak. So is a run in
which control can do nothing.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.control.analysis import PART, analyse, short_number
from penstock.control.costs import costs_of, entered
from penstock.control.line_fit import TRAINS, fit_line
from penstock.control.loop.structure import Structure, rated
from penstock.control.valve_places import check_grains
from penstock.engine.contract.policy import LIMITS, form_group
from penstock.model.control_settings import ControlSettings
from penstock.model.costs import Line, MeasuredCosts, MeasuredSubnetwork
from penstock.model.errors import PenstockError
from penstock.model.qos import QoS
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import SubNetwork
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.record_types import Decision, InputLoad, TrainRecord

if TYPE_CHECKING:  # whoever has no PySpark is told so by the runtime, in one sentence
    from penstock.runtime.runtime import Runtime

LEAST_TRAIN = 0.05
"""Seconds that no train on Spark stays below, however few its tuples are."""
_SHORT = form_group(LIMITS.job_tuples)
_ENOUGH_TRAINS = 16  # before earlier trains may be a reason to refuse a run

_NO_CPU = (
    "the CPU of trains cannot be measured here, only on one Linux machine with a local master: control does "
    "not know the load, and sheds nothing"
)


class ImpossibleQosError(PenstockError):
    """An output is to be better than any rate lets it be."""


class Admission:
    """Refuses what control cannot serve: at the start of a run, and before each change of it."""

    def __init__(self, catalog: Catalog, settings: ControlSettings) -> None:
        self._catalog, self._settings = catalog, settings
        self._accepted: set[tuple[str, QoS]] = set()

    def must_fit(self, network: Network, subs: Sequence[SubNetwork]) -> None:
        """Refuse this network, or an output of these sub-networks, if control could do nothing for it.

        What has been accepted once in this run stays so: trains that took longer since are no reason to
        refuse a change elsewhere, or the way back to the network before.
        """
        if self._settings.observe:
            return
        if self._settings.shed:
            check_grains(network, [sub for sub in subs if sub.network is network] or None)
        must_be_possible(subs, trains_of(self._catalog, subs), self._accepted)
        self._accepted.update(item for sub in subs for item in rated(sub).items())


def trains_of(catalog: Catalog, subs: Iterable[SubNetwork]) -> dict[str, list[TrainRecord]]:
    """The last trains of sub-networks, as many as figures are made of."""
    return {sub.name: catalog.trains(sub.name, last=4 * TRAINS) for sub in subs}


def must_be_possible(
    subs: Sequence[SubNetwork],
    trains: Mapping[str, Sequence[TrainRecord]],
    accepted: Container[tuple[str, QoS]] = (),
) -> None:
    """Refuse outputs whose delay no rate can meet, as far as earlier trains tell; not those `accepted`."""
    floors = {sub.name: train_floor(trains.get(sub.name, ())) for sub in subs}
    lines = {name: MeasuredSubnetwork(name, wall=Line(seconds)) for name, seconds in floors.items()}
    structure = Structure(tuple(subs))
    for sub in subs:
        fixed = structure.fixed_on_the_way(sub, MeasuredCosts(subnetworks=lines))
        for name, qos in rated(sub).items():
            if qos.threshold < fixed / PART and (name, qos) not in accepted:
                raise _impossible(name, qos.threshold, fixed)


def train_floor(trains: Iterable[TrainRecord]) -> float:
    """What a train takes at least without tuples. Never too much: who is refused cannot find out more.

    Only short trains count, which run alike with control and without, and only if there are enough of them:
    the first ones of a run take many times as long. What their tuples took is left out.
    """
    short = [train for train in trains if train.rows_in and form_group(train.rows_in) <= _SHORT]
    if len(short) < _ENOUGH_TRAINS:
        return LEAST_TRAIN
    tuples, seconds = [entered(each) for each in short], [each.duration for each in short]
    # Where all are of one length, all of their time may be that of their tuples.
    line = fit_line(tuples, seconds, [form_group(each.rows_in) for each in short])
    per_tuple = 0.0 if line is None else line.per_tuple
    without = [took - per_tuple * n for n, took in zip(tuples, seconds, strict=True)]
    return max(LEAST_TRAIN, min(without))


def _impossible(name: str, threshold: float, fixed: float) -> ImpossibleQosError:
    return ImpossibleQosError(
        f"{name} cannot be good at any rate",
        found=f"a delay graph that is good up to {threshold:g} s; trains on its way take {fixed:.2f} s even "
        "without tuples, one is waited for and one is ridden in",
        expected=f"a delay of at least {fixed / PART:.2f} s",
        hint="draw a longer good zone, or run without control (without --qos)",
    )


def start_warnings(
    runtime: Runtime, trains: Mapping[str, Sequence[TrainRecord]], cores: int, settings: ControlSettings
) -> list[Decision]:
    """What whoever starts it should know: which outputs will be late, and whether control can do nothing."""
    network, loads = runtime.network, runtime.running_records().catalog.loads(60)
    late = late_outputs(network, trains, loads, cores, settings.headroom)
    warnings: list[tuple[str, str, tuple[str, ...]]] = [(name, text, (name,)) for name, text in late.items()]
    known = tuple(name for name, node in network.nodes.items() if node.qos is not None)
    if not known:
        warnings.append(("network", _nothing_to_go_by(network), ()))
    elif settings.shed and not runtime.measures_cpu:
        warnings.append(("network", _NO_CPU, known))
    return [Decision(time.time(), "warning", subject, text, outputs) for subject, text, outputs in warnings]


def _nothing_to_go_by(network: Network) -> str:
    return (
        f"no output of network '{network.name}' has a qos, so control can tell neither which train is urgent "
        "nor what may be shed"
    )


def late_outputs(
    network: Network,
    trains: Mapping[str, Sequence[TrainRecord]],
    loads: Iterable[InputLoad],
    cores: int,
    headroom: float,
) -> dict[str, str]:
    """A sentence for each output that cannot be good at the rates measured last; none if they are unknown."""
    rates: dict[str, list[float]] = {name: [] for name in network.sources}
    for load in loads:
        if load.input in rates and load.offered_rate is not None:
            rates[load.input].append(load.offered_rate)
    if not all(rates.values()):
        return {}
    means = {name: sum(seen) / len(seen) for name, seen in rates.items()}
    with suppress(PenstockError):  # some costs are not known
        analysis = analyse(network, costs_of(trains, jobs=True), means, cores=cores, headroom=headroom)
        assumed = ", ".join(f"{name} {short_number(rate)}/s" for name, rate in means.items())
        at = f"; so at the rates that were measured last: {assumed}"
        # What no rate lets be good needs none to be assumed.
        bad = [output for output in analysis.outputs if output.problem]
        return {each.name: each.problem + ("" if each.never else at) for each in bad}
    return {}
