"""What `penstock qos show` tells, as gauges: from the same rows as the console's status, so all agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric

from penstock.model.json_types import JsonMapping
from penstock.runtime.records.train_records import Status
from penstock.web.look.status_json import controlled, output_rows, source_rows
from penstock.web.look.watched import Watched

# The metric, what it is, and where it stands: the kind of row, which is the label, and the key in it.
_OF_ROWS = (
    ("penstock_source_offered_rate", "Tuples a second that come, taken or not.", "source", "offered_rate"),
    ("penstock_source_waiting_tuples", "Tuples that wait.", "source", "waiting"),
    ("penstock_output_share_ratio", "What an output gets of what is due.", "output", "share"),
)
_OF_CONTROL = (
    ("penstock_load_cores", "CPU-seconds a second that the offered tuples need, unshed.", "load"),
    ("penstock_capacity_cores", "CPU-seconds a second that there are.", "capacity"),
)


def qos_figures(watched: Watched, status: Status) -> Iterator[Metric]:
    """The gauges of a network; those of valves, load and capacity have values only under control."""
    network, told = watched.name(), controlled(watched)
    rows = {"source": source_rows(status, told), "output": output_rows(watched, status, told)}
    for name, text, label, key in _OF_ROWS:
        yield _gauge(name, text, ("network", label), (((network, r["name"]), r[key]) for r in rows[label]))
    yield from _control(network, told or {})


def _control(network: str, told: JsonMapping) -> Iterator[Metric]:
    for name, text, key in _OF_CONTROL:
        yield _gauge(name, text, ("network",), [((network,), told.get(key))])
    # Two sub-networks that read one point have a valve each at the same place; a series may come only once.
    valves = {(network, valve["at"], valve["grain"]): valve["share"] for valve in told.get("valves", ())}
    yield _gauge(
        "penstock_valve_share_ratio",
        "What a valve keeps of its grains; those that are open are not listed.",
        ("network", "at", "grain"),
        valves.items(),
    )


def _gauge(
    name: str, text: str, labels: Sequence[str], values: Iterable[tuple[Sequence[str], float | None]]
) -> Metric:
    """What is unknown has no sample: 0 would be a figure."""
    family = GaugeMetricFamily(name, text, labels=labels)
    for names, value in values:
        if value is not None:
            family.add_metric(names, value)
    return family
