"""Life on the arrows: rate, what waits, selectivity, and the utility of what lies behind (A37, A39)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.model.json_types import JsonMapping, JsonObject
from penstock.runtime.records.train_records import Status
from penstock.store.catalog.record_types import InputLoad
from penstock.web.look.network_json import arrow_id

ArrowKey = tuple[str, str, int]


@dataclass(frozen=True)
class Reach:
    """Which rated outputs and views lie behind each arrow."""

    arrows: tuple[ArrowKey, ...]
    behind: Mapping[str, tuple[str, ...]]  # node -> ends

    @staticmethod
    def of(arrows: Iterable[ArrowKey], ends: Iterable[str]) -> Reach:
        """From all arrows of a network.

        >>> Reach.of([("a", "b", 0), ("b", "out", 0)], ["out"]).behind["a"]
        ('out',)
        """
        known = tuple(arrows)
        readers: dict[str, list[str]] = {}
        for tail, head, _ in known:
            readers.setdefault(tail, []).append(head)
        names = dict.fromkeys([*(tail for tail, _, _ in known), *(head for _, head, _ in known)])
        rated = set(ends)
        return Reach(known, {name: tuple(sorted(_reached(name, readers) & rated)) for name in names})


def _reached(name: str, readers: Mapping[str, Sequence[str]]) -> set[str]:
    seen, todo = {name}, [name]
    while todo:
        for reader in readers.get(todo.pop(), ()):
            if reader not in seen:
                seen.add(reader)
                todo.append(reader)
    return seen


def arrow_figures(
    reach: Reach, status: Status, homes: Mapping[str, str], utilities: Mapping[str, float | None]
) -> dict[str, JsonObject]:
    """The figures of every arrow; what is not measured is None, never 0."""
    loads = {(load.input, load.subnetwork): load for load in status.inputs}
    return {
        arrow_id(*key): _figures(key, reach, status, loads.get((key[0], homes.get(key[1], ""))), utilities)
        for key in reach.arrows
    }


def _figures(
    key: ArrowKey,
    reach: Reach,
    status: Status,
    load: InputLoad | None,
    utilities: Mapping[str, float | None],
) -> JsonObject:
    tail, head, _ = key
    flow, count = status.flows.get(tail), status.boxes.get(tail)
    ends = reach.behind.get(head, ())
    known = [utility for utility in (utilities.get(end) for end in ends) if utility is not None]
    return {
        "rate": None if flow is None else round(flow.rate_out, 3),
        "train": None if flow is None else flow.train_out,
        "tuples": None if count is None else count.rows_out,
        "estimated": count is not None and count.estimated,
        "waiting": None if load is None else load.waiting,
        "waiting_bytes": None if load is None else load.waiting_bytes,
        "age": None if load is None or load.age is None else round(load.age, 3),
        "selectivity": None if count is None else count.selectivity,
        "utility": min(known) if known else None,
        "serves": list(ends),
    }


def worst(figures: Mapping[str, JsonMapping], most: int = 20) -> list[str]:
    """The arrows that matter most now: lowest utility behind them, then the oldest that waits.

    >>> worst({"a:b:0": {"utility": 0.9, "age": None}, "c:d:0": {"utility": 0.2, "age": None},
    ...        "e:f:0": {"utility": None, "age": None}})
    ['c:d:0', 'a:b:0']
    """
    judged = [name for name, arrow in figures.items() if arrow["utility"] is not None or arrow["age"]]
    return sorted(judged, key=lambda name: _badness(figures[name]))[:most]


def _badness(arrow: JsonMapping) -> tuple[float, float]:
    return 1.0 if arrow["utility"] is None else arrow["utility"], -(arrow["age"] or 0.0)
