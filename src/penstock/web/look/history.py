"""The past of a network from its catalog: rates, delays, utilities, decisions, what people did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from penstock.control.utility import delay_at, utility
from penstock.model.json_types import JsonObject
from penstock.model.qos import QoS
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.decisions import Decisions
from penstock.store.catalog.record_types import OutputSecond

MOST_SECONDS = 7_200
_MOST_TRAINS = 500
_MOST_EVENTS = 200


def history_json(catalog: Catalog, seconds: int, qos: dict[str, QoS]) -> JsonObject:
    """What happened in the last seconds before the newest record."""
    loads = [asdict(load) for load in catalog.loads(seconds)]
    outputs = catalog.output_seconds(seconds)
    newest = max((load["time"] for load in loads), default=0.0)
    return {
        "seconds": seconds,
        "newest": newest or None,
        "inputs": _by_input(loads),
        "outputs": {name: seconds_json(each, qos.get(name)) for name, each in outputs.items()},
        "trains": {name: _trains(catalog, name, newest - seconds) for name in catalog.totals()},
        "latencies": {name: [asdict(each) for each in catalog.latencies(name, 300)] for name in outputs},
        "decisions": decisions_json(catalog, _MOST_EVENTS),
        "events": events_json(catalog, _MOST_EVENTS),
    }


def _by_input(loads: Sequence[JsonObject]) -> dict[str, list[JsonObject]]:
    inputs: dict[str, list[JsonObject]] = {}
    for load in loads:
        inputs.setdefault(load["input"], []).append(load)
    return inputs


def seconds_json(seconds: Sequence[OutputSecond], qos: QoS | None) -> list[JsonObject]:
    """An output second by second."""
    return [
        {
            "second": each.second,
            "tuples": each.tuples,
            "delay_p50": delay_at([each], 0.5),
            "delay_p99": delay_at([each], 0.99),
            "age": each.age,
            "share": each.share,
            "utility": None if qos is None else utility(qos, each),
        }
        for each in seconds
    ]


def _trains(catalog: Catalog, name: str, since: float) -> list[JsonObject]:
    trains = [train for train in catalog.trains(name, last=_MOST_TRAINS) if train.end >= since]
    keys = ("train", "start", "end", "rows_in", "cpu")
    return [{key: getattr(train, key) for key in keys} for train in trains]


def decisions_json(catalog: Catalog, most: int, after: int = 0) -> list[JsonObject]:
    """What control decided, oldest first, with what it expected and what came of it."""
    return [asdict(each) for each in Decisions(catalog).last(most, after=after)]


def events_json(catalog: Catalog, most: int) -> list[JsonObject]:
    """What people and the run itself did: attach, replace, hold and others."""
    return [asdict(each) for each in catalog.events(last=most)]
