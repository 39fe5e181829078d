"""The figures now, as JSON: `status()`, the keys of `penstock qos show`, and what each arrow carries."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence

from penstock.control.report import REPORT
from penstock.control.utility import delay_at, in_good_zone, mean_utility, utility
from penstock.model.json_types import JsonMapping, JsonObject
from penstock.model.qos import QoS
from penstock.runtime import Runtime
from penstock.runtime.records.train_records import Status, SubnetworkStatus
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.decisions import Decisions
from penstock.web.look.arrow_figures import Reach, arrow_figures, worst
from penstock.web.look.point_figures import PointFigures
from penstock.web.look.second_rows import SecondRows
from penstock.web.look.watched import LOOKING_ONLY, Watched

_OLD = 5.0  # seconds: under control there is a report more often
More = Callable[[], JsonObject]
"""What other parts of the console add to a status, such as who holds what."""


class StatusLook:
    """Makes the status of a network. All clients share one look: `web/app.py` publishes it once a second."""

    def __init__(self, watched: Watched, more: More = dict) -> None:
        self._watched, self._more = watched, more
        self._points = PointFigures(watched.checkpoint)
        self._seconds = SecondRows()
        self._reach: tuple[int, Reach] | None = None
        self._lock = threading.Lock()

    def status(self) -> JsonObject:
        """All of it."""
        with self._lock:
            return self._status()

    def _status(self) -> JsonObject:
        watched = self._watched
        status, version = watched.status(), watched.catalog.version()
        state, error = watched.state()
        told, homes = controlled(watched), watched.homes()
        outputs = _outputs(watched, status)
        utilities = {output["name"]: output["utility_minute"] for output in outputs}
        arrows = arrow_figures(self._reach_of(version), status, homes, utilities)
        return {
            "network": watched.name(),
            "version": version,
            "time": time.time(),
            "state": state,
            "error": error or None,
            "changeable": watched.runtime is not None and state == "running",
            "why_not": _why_not(watched, state),
            **_plain(status),
            "seconds": self._seconds.rows(status.seconds),
            "subnetworks": [
                {**_subnetwork(each, watched.runtime), **_priority(each.name, told)}
                for each in status.subnetworks
            ],
            "boxes": _boxes(status),
            "outputs": _with_control("outputs", outputs, told),
            "sources": source_rows(status, told),
            "arrows": arrows,
            "worst": worst(arrows),
            "points": self._points.figures(points_of(watched)),
            "qos": told,
            **_control_keys(told),
            **self._more(),
        }

    def _reach_of(self, version: int) -> Reach:
        """Which outputs lie behind each arrow; it changes with the network only."""
        network = self._watched.network()
        key = hash((version, None if network is None else len(network.nodes)))
        if self._reach is None or self._reach[0] != key:
            self._reach = key, Reach.of(arrows_of(self._watched), _ends(self._watched))
        return self._reach[1]


def _why_not(watched: Watched, state: str) -> str | None:
    """Why nothing can be changed; None while it can."""
    if watched.runtime is None:
        return LOOKING_ONLY
    return None if state == "running" else f"the run has {state}: start it again to change it"


def _plain(status: Status) -> JsonObject:
    """The parts of `status()` that need no more than their fields."""
    return {
        "latency": {name: _fields(latency) for name, latency in status.latency.items()},
        "dead": status.dead,
        "flows": {name: _fields(flow) for name, flow in status.flows.items()},
        "accounts": {name: _fields(account) for name, account in status.accounts.items()},
        "inputs": [_fields(load) for load in status.inputs],
        "this_run": _fields(status.this_run),
    }


def _fields(record: object) -> JsonObject:
    """The fields of a record whose values are plain: `dataclasses.asdict` would copy each of them."""
    return dict(vars(record))


def _boxes(status: Status) -> JsonObject:
    return {
        name: {**_fields(count), "selectivity": count.selectivity, **_flow(status, name)}
        for name, count in status.boxes.items()
    }


def _flow(status: Status, name: str) -> JsonObject:
    flow = status.flows.get(name)
    keys = ("rate_in", "rate_out", "train_in", "train_out")
    return dict.fromkeys(keys) if flow is None else {key: getattr(flow, key) for key in keys}


def _subnetwork(sub: SubnetworkStatus, runtime: Runtime | None) -> JsonObject:
    shown = {**_fields(sub), "held": False, "running": None, "since": None, "waiting": None, "priority": None}
    query = None if runtime is None else runtime.queries.get(sub.name)
    if query is None:
        return shown
    inputs = query.situation().inputs.values()
    waiting = [known.waiting_tuples for known in inputs]
    return {
        **shown,
        "held": query.steering.held,
        "running": not query.drained(),
        "since": query.running_since,
        "waiting": None if None in waiting else sum(each or 0 for each in waiting),
        "inputs": list(query.sub.inputs),
        "points": list(query.sub.points),
        "outputs": list(query.sub.outputs),
    }


def output_rows(watched: Watched, status: Status, told: JsonMapping | None) -> list[JsonObject]:
    """All outputs, and views with a QoS, as `penstock qos show` names their figures. `told`: by control."""
    return _with_control("outputs", _outputs(watched, status), told)


def source_rows(status: Status, told: JsonMapping | None) -> list[JsonObject]:
    """All sources in the same way."""
    return _with_control("sources", _sources(status), told)


def _outputs(watched: Watched, status: Status) -> list[JsonObject]:
    qos = graphs_of(watched)
    return [_output(name, qos.get(name), status) for name in _ends(watched)]


def _output(name: str, qos: QoS | None, status: Status) -> JsonObject:
    """An output under the keys of `penstock qos show`; without a QoS its utility is unknown."""
    seconds = status.seconds.get(name, ())
    due = next((second for second in reversed(seconds) if second.due), None)
    rated = qos is not None and due is not None
    return {
        "name": name,
        "weight": None if qos is None else qos.weight,
        "utility": utility(qos, due) if qos is not None and due is not None else None,
        "utility_minute": None if qos is None else mean_utility(qos, seconds),
        "delay_p50": delay_at(seconds, 0.5),
        "delay_p99": delay_at(seconds, 0.99),
        "share": None if due is None else due.share,
        "in_zone": in_good_zone(qos, due) if rated and qos is not None and due is not None else None,
        "exact_since": None,
    }


def _sources(status: Status) -> list[JsonObject]:
    loads = {load.input: load for load in status.inputs}
    return [
        {
            "name": name,
            "offered": account.offered,
            "let_in": account.let_in,
            "shed": account.shed,
            "dead": account.dead,
            "late": account.late,
            "offered_rate": loads[name].offered_rate if name in loads else None,
            "shed_rate": None,
            "waiting": loads[name].waiting if name in loads else None,
            "age": loads[name].age if name in loads else None,
        }
        for name, account in status.accounts.items()
    ]


def controlled(watched: Watched) -> JsonObject | None:
    """What `penstock qos show` tells; None while no control runs."""
    runtime = watched.runtime
    if runtime is not None:
        # The optimizer alone is a control, too, but it rates no outputs.
        rates = getattr(runtime.control, "rates_outputs", False)
        return dict(runtime.qos().plain()) if rates else None
    kept = Decisions(watched.catalog).state(REPORT)
    return None if kept is None or _outlived(kept[0], watched.catalog) else kept[1]


def _outlived(made_at: float, catalog: Catalog) -> bool:
    """Whether a report is that of an earlier run, and a run without control has come since.

    A run that ends measures its inputs on after its last report, for as long as its last trains take.
    """
    newest = max((load.time for load in catalog.loads()), default=0.0)
    began = max((each.time for each in catalog.locations() if each.kind == "query"), default=math.inf)
    return newest > made_at + _OLD and began > made_at


def _priority(name: str, told: JsonMapping | None) -> JsonObject:
    rows = {} if told is None else {row["name"]: row for row in told["subnetworks"]}
    return {"priority": rows[name]["priority"]} if name in rows else {}


def _control_keys(told: JsonMapping | None) -> JsonObject:
    """What only control knows."""
    nothing: JsonObject = {"valves": [], "load": None, "capacity": None}
    return nothing if told is None else {key: told.get(key, nothing[key]) for key in nothing}


def _with_control(key: str, ours: list[JsonObject], told: JsonMapping | None) -> list[JsonObject]:
    """Control's own figures of outputs and sources are better than ours, but it does not know all of them."""
    better = {} if told is None else {row["name"]: row for row in told.get(key, ())}
    return [{**row, **better.get(row["name"], {})} for row in ours]


def graphs_of(watched: Watched) -> dict[str, QoS]:
    """The QoS of each output and view that has one."""
    network = watched.network()
    if network is not None:
        return {name: node.qos for name, node in network.nodes.items() if node.qos is not None}
    topology = watched.catalog.topology()
    records = () if topology is None else topology.nodes
    return {node.name: node.qos for node in records if node.qos is not None}


def _ends(watched: Watched) -> Sequence[str]:
    """Outputs, and views with a QoS."""
    network = watched.network()
    if network is not None:
        rated = [name for name, node in network.points.items() if node.qos is not None]
        return [*network.outputs, *rated]
    topology = watched.catalog.topology()
    return [node.name for node in (topology.nodes if topology else ()) if node.kind == "output" or node.qos]


def points_of(watched: Watched) -> Sequence[str]:
    """Connection points and views."""
    network = watched.network()
    if network is not None:
        return list(network.points)
    topology = watched.catalog.topology()
    kinds = ("connection_point", "view")
    return [node.name for node in (topology.nodes if topology else ()) if node.kind in kinds]


def arrows_of(watched: Watched) -> list[tuple[str, str, int]]:
    """All arrows of a network."""
    network = watched.network()
    if network is not None:
        return [(arrow.tail, arrow.head, arrow.index) for arrow in network.arrows]
    topology = watched.catalog.topology()
    return [(arrow.tail, arrow.head, arrow.index) for arrow in (topology.arrows if topology else ())]
