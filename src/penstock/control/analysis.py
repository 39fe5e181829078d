"""Static analysis (A59, A81, A82): can outputs be good at given rates? Pure functions of costs and rates.

Rates run through selectivities; costs give the load. Trains that leave as soon as possible take D = f/(1-rho)
seconds at utilisation rho, where f is what a train takes without tuples. The oldest tuple waits for one train
and rides in the next. With a fifth in reserve, 2D may be at most 0.8 of the threshold. So the usable part
of the capacity is u = 1 - f/(0.4 threshold), and at most the headroom (A62).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.model.costs import MeasuredCosts, MeasuredSubnetwork
from penstock.model.errors import PenstockError, did_you_mean
from penstock.model.qos import QoS
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import SubNetwork, split

PART = 0.4
"""A train may take this part of the threshold: a tuple waits for one and travels in the next. A fifth is
reserve."""
QUIET_PART = 0.25
"""While something is shed, a train should take only this part: then an odd one that takes longer is still in
time. To shed a little more costs little utility; a strict output that is late costs a lot."""
_LEAST_EFFICIENCY = 0.3
_LONG = 1e12  # from here on nobody counts the digits


@dataclass(frozen=True)
class BoxRate:
    """Tuples a second into and out of a node. `load`: CPU-seconds a second, None if it is not known.

    `assumed`: its selectivity is not known; it is taken to pass everything on.
    """

    box: str
    rate_in: float
    rate_out: float
    load: float | None = None
    assumed: bool = False


@dataclass(frozen=True)
class SubnetworkLoad:
    """The load of a sub-network: `load` in CPU-seconds a second, `utilisation` of the time of its trains."""

    name: str
    rate: float
    load: float
    utilisation: float
    fixed: float | None  # seconds that a train takes without tuples; None if it is not known


@dataclass(frozen=True)
class OutputCheck:
    """Whether an output can be good. `problem`: "" if it can.

    `fixed`: what trains take on its way; None if it is not known, and no reason to say that it cannot.
    """

    name: str
    threshold: float | None
    fixed: float | None
    usable: float  # of the capacity, 0..1
    problem: str = ""
    never: bool = False  # no rate at all can meet it


@dataclass(frozen=True)
class Analysis:
    """What the rates ask for, and what there is. `load` and `capacity` are CPU-seconds a second."""

    boxes: tuple[BoxRate, ...]
    subnetworks: tuple[SubnetworkLoad, ...]
    outputs: tuple[OutputCheck, ...]
    load: float
    capacity: float
    headroom: float
    notes: tuple[str, ...] = ()

    @property
    def feasible(self) -> bool:
        """Whether every output can be good."""
        return not any(output.problem for output in self.outputs)


def analyse(
    network: Network, costs: MeasuredCosts, rates: Mapping[str, float], *, cores: int, headroom: float = 0.9
) -> Analysis:
    """Check all outputs at these rates of the sources."""
    check_rates(network, rates)
    subs = split(network)
    flow = box_rates(network, costs, rates)
    loads = tuple(_subnetwork_load(sub, costs, flow) for sub in subs)
    load = sum(each.load for each in loads)
    capacity = capacity_of(costs.subnetworks.values(), cores)
    ways = _ways(subs, {each.name: each for each in loads})
    # The others get what is left, so they keep no rated output from being good.
    first = sum(each.load for each in loads if each.name in _works_for_rated(subs))
    checks = tuple(
        _check(name, qos, ways[sub.name], load if qos is None else first, capacity, headroom)
        for sub in subs
        for name, qos in _ends(sub)
    )
    notes = (*_not_known(loads), *_notes(network, flow.values(), load, capacity, headroom))
    return Analysis(tuple(flow.values()), loads, checks, load, capacity, headroom, notes)


def check_rates(network: Network, rates: Mapping[str, float]) -> None:
    """Refuse the rate of an unknown source, and a source without a rate."""
    for name in rates:
        if name not in network.sources:
            raise PenstockError(f"no source '{name}'", hint=did_you_mean(name, network.sources))
    missing = [name for name in network.sources if name not in rates]
    if missing:
        raise PenstockError(
            f"the rate of source '{missing[0]}' is missing", hint=f"--rate {missing[0]}=TUPLES_PER_SECOND"
        )


def box_rates(network: Network, costs: MeasuredCosts, rates: Mapping[str, float]) -> dict[str, BoxRate]:
    """Rates through the network, node by node (A81)."""
    flow: dict[str, BoxRate] = {}
    for name, node in network.nodes.items():
        rate = rates[name] if name in network.sources else sum(flow[up].rate_out for up in node.inputs)
        measured = costs.boxes.get(name)
        passed = measured.selectivity if measured is not None and node.is_box else None
        load = measured.cpu.per_tuple * rate if measured is not None and measured.cpu is not None else None
        share = 1.0 if passed is None else passed
        flow[name] = BoxRate(name, rate, rate * share, load, node.is_box and passed is None)
    return flow


def _subnetwork_load(sub: SubNetwork, costs: MeasuredCosts, flow: Mapping[str, BoxRate]) -> SubnetworkLoad:
    measured = costs.subnetworks.get(sub.name)
    if measured is None or measured.wall is None:
        raise PenstockError(
            f"what sub-network '{sub.name}' costs is not known",
            hint="give a checkpoint of a run (--checkpoint DIR), or measure now (--calibrate)",
        )
    rate = sum(flow[name].rate_out for name in sub.inputs)
    fixed = costs.fixed_seconds(sub.name) if measured.fixed_known else None
    in_boxes = sum(flow[name].load or 0.0 for name in sub.network.nodes)
    if not measured.by_parts or measured.around is None or measured.spread is None:
        cpu = measured.wall if measured.cpu is None else measured.cpu
        load = max(rate * cpu.per_tuple, in_boxes)  # two lines may differ; no box costs more than the whole
        return SubnetworkLoad(sub.name, rate, load, rate * measured.wall.per_tuple, fixed)
    # Part by part: what was shed in some of the trains does not make the whole look cheaper.
    load = rate * measured.around.per_tuple + in_boxes
    return SubnetworkLoad(sub.name, rate, load, load * measured.spread.per_tuple, fixed)


def capacity_of(measured: Iterable[MeasuredSubnetwork], cores: int) -> float:
    """CPU-seconds a second that trains can use: the cores, by how well trains spread over them."""
    known = [each for each in map(_cores_at_work, measured) if each is not None]
    return min(float(cores), max(_LEAST_EFFICIENCY * cores, max(known, default=float(cores))))


def _cores_at_work(measured: MeasuredSubnetwork) -> float | None:
    """How many cores work for each further second of a train."""
    if measured.by_parts and measured.spread is not None:
        return 1 / measured.spread.per_tuple if measured.spread.per_tuple > 0 else None
    if measured.cpu is None or measured.wall is None or measured.wall.per_tuple <= 0:
        return None
    return measured.cpu.per_tuple / measured.wall.per_tuple


def usable_share(fixed: float, threshold: float, headroom: float) -> float:
    """The part of the capacity that may be used so that a train stays short enough; at or below 0: none.

    >>> [round(usable_share(f, 2.0, 0.9), 2) for f in (0.0, 0.22, 0.27, 0.49, 1.0)]
    [0.9, 0.73, 0.66, 0.39, -0.25]
    """
    return min(headroom, 1 - fixed / (PART * threshold)) if threshold > 0 else -1.0


def quiet_share(fixed: float, threshold: float, headroom: float) -> float:
    """The same while something is shed: trains are shorter, unless half of each would then be its fixed part.

    >>> [round(quiet_share(f, 2.0, 0.9), 2) for f in (0.0, 0.12, 0.27, 0.49, 1.0)]
    [0.9, 0.76, 0.5, 0.39, -0.25]
    """
    takes = max(QUIET_PART * threshold, min(PART * threshold, 2 * fixed))
    return min(headroom, 1 - fixed / takes) if threshold > 0 else -1.0


def _ways(
    subs: Sequence[SubNetwork], loads: Mapping[str, SubnetworkLoad]
) -> dict[str, tuple[SubnetworkLoad, ...]]:
    """For each sub-network, the way with the largest fixed time that leads through it (A59)."""
    writers = {point: sub.name for sub in subs for point in sub.points}
    ways: dict[str, tuple[SubnetworkLoad, ...]] = {}
    for sub in subs:  # each comes after those whose points it reads
        above = [ways[writers[name]] for name in sub.inputs if name in writers]
        longest = max(above, key=lambda way: sum(each.fixed or 0.0 for each in way), default=())
        ways[sub.name] = (*longest, loads[sub.name])
    return ways


def short_number(value: float, decimals: int = 0) -> str:
    """A number to be read.

    >>> short_number(1234.4), short_number(0.456, 2), short_number(1e300, 2)
    ('1,234', '0.46', '1e+300')
    """
    return f"{value:,.{decimals}f}" if abs(value) < _LONG else f"{value:.3g}"


def _works_for_rated(subs: Sequence[SubNetwork]) -> frozenset[str]:
    """The sub-networks that work for an output or view with a QoS, through points too."""
    names: set[str] = set()
    read: set[str] = set()  # points that lead to one
    for sub in reversed(subs):  # each comes before those whose points it reads
        if read & set(sub.points) or any(qos is not None for _, qos in _ends(sub)):
            names.add(sub.name)
            read |= set(sub.inputs)
    return frozenset(names)


def _ends(sub: SubNetwork) -> list[tuple[str, QoS | None]]:
    rated = {name: getattr(sub.network.nodes[name], "qos", None) for name in (*sub.points, *sub.outputs)}
    return [(name, qos) for name, qos in rated.items() if qos is not None or name in sub.outputs]


def _check(
    name: str,
    qos: QoS | None,
    way: Sequence[SubnetworkLoad],
    load: float,
    capacity: float,
    headroom: float,
) -> OutputCheck:
    known = all(each.fixed is not None for each in way)
    fixed = sum(each.fixed or 0.0 for each in way)
    threshold = None if qos is None else qos.threshold
    usable = headroom if threshold is None or not known else usable_share(fixed, threshold, headroom)
    never = usable <= 0
    problem = _problem(name, threshold, fixed, usable, way=way, load=load, capacity=capacity)
    return OutputCheck(name, threshold, fixed if known else None, max(0.0, usable), problem, never)


def _problem(
    name: str,
    threshold: float | None,
    fixed: float,
    usable: float,
    *,
    way: Sequence[SubnetworkLoad],
    load: float,
    capacity: float,
) -> str:
    if usable <= 0 and threshold is not None:
        return (
            f"{name} cannot be good at any rate: trains on its way take {fixed:.2f} s without any tuples, "
            f"so a delay of {fixed / PART:.2f} s is the least that can be promised, not {threshold:g} s"
        )
    goal = "keep up" if threshold is None else f"be good up to {threshold:g} s"
    busiest = max(way, key=lambda each: each.utilisation)
    if busiest.utilisation > usable:
        return (
            f"{name} cannot {goal}: the trains of '{busiest.name}' would take "
            f"{short_number(busiest.utilisation, 2)} s for each second of input, {usable:.2f} s may be used"
        )
    if load > usable * capacity:
        return (
            f"{name} cannot {goal}: these rates need {short_number(load, 2)} CPU-s a second, "
            f"{usable * capacity:.2f} of {capacity:.2f} may be used"
        )
    return ""


def _not_known(loads: Iterable[SubnetworkLoad]) -> list[str]:
    return [
        f"what a train of '{each.name}' takes without tuples is not known: there were too few, or all of one "
        "length; so whether a delay can be met at all is not checked"
        for each in loads
        if each.fixed is None
    ]


def _notes(
    network: Network, flow: Iterable[BoxRate], load: float, capacity: float, headroom: float
) -> tuple[str, ...]:
    notes = [
        f"the selectivity of '{each.box}' is not known; it is taken to pass everything on"
        for each in flow
        if each.assumed
    ]
    if headroom * capacity < load <= capacity:
        notes.append("ad-hoc queries would find no room: the load is above the headroom")
    for name, node in network.nodes.items():
        qos: QoS | None = getattr(node, "qos", None)
        if qos is not None and qos.given_up_from is not None:
            notes.append(
                f"the delay graph of '{name}' is flatter beyond {qos.given_up_from:g} s: "
                "answers later than that are served after others"
            )
    if load > headroom * capacity:
        notes.append(_what_helps(network))
    return tuple(notes)


def _what_helps(network: Network) -> str:
    rated = {name: node.qos for name, node in network.nodes.items() if node.qos is not None}
    unshed = [name for name, qos in rated.items() if not qos.may_be_shed]
    of = f"a loss graph for {', '.join(unshed)}, so that tuples may be shed; " if unshed else ""
    larger = "a larger threshold; " if rated else ""
    return f"what helps: {of}{larger}a lower rate; cheaper boxes; more cores"
