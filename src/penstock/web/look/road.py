"""Linear Road as the console shows it: segments with speed, cars and toll, answers against their limits.

The figures of segments come from the network's connection point. Accidents, and what concerns one vehicle,
are watched on arrows while somebody looks: the network keeps no table of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from penstock.control.utility import delay_at
from penstock.linear_road.network.road import DELAYS
from penstock.model.json_types import JsonMapping, JsonObject
from penstock.model.writing.network import Network
from penstock.store.catalog.record_types import OutputSecond, Topology
from penstock.store.errors import StoreError
from penstock.store.points.point import PointReader

POINT = "figures"
_COLUMNS = {"XWay", "Dir", "Seg", "Lav", "Cars"}
_SLOW, _CROWDED = 40, 50  # a toll is due below this speed, above so many cars
_ENTRIES = 60  # newest entries of the point that are read


def is_road(network: Network | None) -> bool:
    """Whether a network is Linear Road's."""
    if network is None or POINT not in network.points or not set(DELAYS) <= set(network.outputs):
        return False
    return set(network.types[POINT].schema.names) >= _COLUMNS


def is_recorded_road(topology: Topology | None) -> bool:
    """The same of a checkpoint, which knows the names of nodes only."""
    names = {node.name for node in topology.nodes} if topology is not None else set()
    return names >= {POINT, *DELAYS}


def toll_of(speed: int, cars: int, *, accident: bool) -> int:
    """The toll of a segment in a minute.

    >>> toll_of(35, 61, accident=False), toll_of(35, 61, accident=True), toll_of(40, 61, accident=False)
    (242, 0, 0)
    """
    due = 0 <= speed < _SLOW and cars > _CROWDED and not accident
    return 2 * (cars - _CROWDED) ** 2 if due else 0


def why_toll(speed: int, cars: int | None, toll: int) -> str:
    """Why a vehicle was told this toll. `cars`: in its segment now.

    >>> why_toll(35, None, 242)
    'cars went 35 mph on average, below 40, and 61 cars are more than 50: 2 x (61 - 50)^2 = 242'
    >>> why_toll(55, 61, 0)
    'no toll: cars went 55 mph on average, not below 40'
    """
    if toll:
        # Those of the minute that counted; the segment may have more or fewer by now.
        then = _CROWDED + math.isqrt(toll // 2)
        return (
            f"cars went {speed} mph on average, below {_SLOW}, and {then} cars are more than {_CROWDED}: "
            f"2 x ({then} - {_CROWDED})^2 = {toll}"
        )
    if speed >= _SLOW:
        return f"no toll: cars went {speed} mph on average, not below {_SLOW}"
    if cars is not None and cars <= _CROWDED:
        return f"no toll: {cars} cars are not more than {_CROWDED}"
    return "no toll: an accident is near, or there are too few cars"


def road_json(
    checkpoint: Path,
    expressway: int | None,
    direction: int,
    wrecks: Iterable[tuple[int, int, int]] | None,
    seconds: Mapping[str, Sequence[OutputSecond]],
) -> JsonObject:
    """One direction of an expressway. `wrecks`: expressway, direction and segment of accidents, if known."""
    rows = _newest(checkpoint)
    roads = sorted({row["XWay"] for row in rows})
    chosen = expressway if expressway is not None else next(iter(roads), 0)
    here = None if wrecks is None else {seg for way, to, seg in wrecks if (way, to) == (chosen, direction)}
    mine = {r["Seg"]: r for r in rows if (r["XWay"], r["Dir"]) == (chosen, direction)}
    return {
        "expressways": roads,
        "expressway": chosen,
        "direction": direction,
        "minute": max((int(row["Second"].timestamp()) // 60 for row in rows), default=None),
        "segments": [
            _segment(row, None if here is None else seg in here) for seg, row in sorted(mine.items())
        ],
        "answers": {name: _answers(seconds.get(name, ()), limit) for name, limit in DELAYS.items()},
    }


def _newest(checkpoint: Path) -> list[JsonObject]:
    """The rows of the newest minutes; a later row of a segment comes after an earlier one."""
    try:
        reader = PointReader(checkpoint, POINT)
        entries = [entry for entry in reader.entries() if entry.rows][-_ENTRIES:]
        if not entries:
            return []
        table = reader.read(entries[0].number, entries[-1].number)
    except (StoreError, OSError):
        return []  # nothing is written yet
    rows: list[JsonObject] = table.select(["Second", *sorted(_COLUMNS)]).to_pylist()
    return rows


def _segment(row: JsonMapping, accident: bool | None) -> JsonObject:
    """A segment in its last minute. An accident takes the toll away: without it the toll is unknown, too."""
    speed, cars = row["Lav"], row["Cars"]
    toll = toll_of(speed if speed is not None else _SLOW, cars or 0, accident=bool(accident))
    return {
        "segment": row["Seg"],
        "speed": speed if speed is not None and speed >= 0 else None,
        "vehicles": cars,
        "toll": None if accident is None and toll else toll,
        "accident": accident,
    }


def _answers(seconds: Sequence[OutputSecond], limit: float) -> JsonObject:
    late = sum(tuples for second in seconds for delay, tuples in second.delays if delay > limit)
    return {
        "answers": sum(second.tuples for second in seconds),
        "p50": delay_at(seconds, 0.5),
        "p99": delay_at(seconds, 0.99),
        "limit": float(limit),
        "late": late,
        "waiting": seconds[-1].age if seconds else None,
    }


def vehicle_json(
    vid: int, seen: Sequence[JsonObject], told: Sequence[JsonObject], segments: Sequence[JsonObject]
) -> JsonObject:
    """Where a vehicle was last seen, and what it was told and charged since it is watched."""
    last = seen[-1] if seen else None
    notices = [row for row in told if row["Kind"] == 0]
    charges = [row for row in told if row["Kind"] == 2]
    cars = {each["segment"]: each["vehicles"] for each in segments}
    notice = notices[-1] if notices else None
    inside = None if last is None else cars.get(last["Seg"])
    why = None if notice is None else why_toll(notice["Lav"], inside, notice["Toll"])
    of_position = {"XWay", "Dir", "Lane", "Seg", "Pos", "Spd", "Second"}
    return {
        "vid": vid,
        "position": None if last is None else {key: last[key] for key in sorted(of_position)},
        "account": sum(row["Toll"] for row in charges),
        "tolls": [{key: row[key] for key in ("Time", "Lav", "Toll")} for row in notices[-20:]],
        "alerts": [row["Seg"] for row in told if row["Kind"] == 1][-5:],
        "why": why,
        "since": "the console began to watch it",
    }
