"""The bare logic of Linear Road: one compiled loop over columns in memory, on one core.

    python -m benchmarks.peers.kernel --input DIR|FILE --out answers.csv [--history DIR]

Idea: vehicles and road segments are rows of arrays; a report touches one of each. Timed is the loop alone: no
reading, no text, no persistence; answers are numbers in arrays, written to the file afterwards so that they
can be validated. Requests of types 3 and 4 are looked up afterwards too, and are not in the figure. A vehicle
has one latest report here, so one that drives two roads at once (the golden data has such) is beyond it.
Arasu et al., "Linear Road", VLDB 2004, section 3.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

from benchmarks.peers.feed import Answers, Feed, feed_of, options, report
from benchmarks.peers.history_sql import History
from penstock.linear_road.rows.inputs import open_input
from penstock.linear_road.rows.read_blocks import seconds_of

SEGMENTS = 100
Array = np.ndarray[Any, Any]
TIME, ROAD, LANE, POS, TOLL, STILL, BALANCE, SPEED, COUNT, STOP = range(10)
"""What is kept of a vehicle: its latest report, toll, balance, speeds of this minute, and its stop."""
STOP_VID, STOP_ROAD, STOP_LANE, STOP_POS, SINCE, UNTIL = range(6)


@njit(cache=True)
def close_minute(
    minute: int,
    cars: Array,
    sums: Array,
    lavs: Array,
    stops: Array,
    n_stops: int,
    lav: Array,
    toll: Array,
    accident: Array,
) -> None:
    """Minute `minute` is whole: statistics, accidents, and the quotes of the next minute."""
    begin, end, roads = (minute - 1) * 60, minute * 60, len(cars)
    accident[:] = -1
    for i in range(n_stops):
        if stops[i, UNTIL] <= begin or stops[i, SINCE] >= end:
            continue
        for j in range(i):
            same = True
            for k in range(1, 4):
                same = same and stops[i, k] == stops[j, k]
            since = max(stops[i, SINCE], stops[j, SINCE], begin)
            if same and stops[i, 0] != stops[j, 0] and since < min(stops[i, UNTIL], stops[j, UNTIL], end):
                warn(stops[i, STOP_ROAD], accident)
    for road in range(roads):
        lavs[minute % 5, road] = sums[road] / cars[road] if cars[road] else -1.0
        total, known = 0.0, 0
        for k in range(5):
            if lavs[k, road] >= 0:
                total += lavs[k, road]
                known += 1
        lav[road] = int(np.floor(total / known + 1e-9)) if known else -1
        free = lav[road] >= 40 or cars[road] <= 50 or accident[road] >= 0
        toll[road] = 0 if free else 2 * (cars[road] - 50) ** 2
        cars[road], sums[road] = 0, 0.0


@njit(cache=True)
def warn(road: int, accident: Array) -> None:
    """Tell the road segments from which an accident is 0..4 downstream; the nearest one counts."""
    seg, way = road % SEGMENTS, road // SEGMENTS % 2
    for i in range(5):
        behind = seg - i if way == 0 else seg + i
        if 0 <= behind < SEGMENTS:
            at = road - seg + behind
            if accident[at] < 0 or abs(accident[at] - behind) > i:
                accident[at] = seg


@njit(cache=True)
def answer(
    rows: Array,
    vehicles: Array,
    cars: Array,
    sums: Array,
    lav: Array,
    toll: Array,
    accident: Array,
    stops: Array,
    n_stops: int,
    out: Array,
    counts: Array,
) -> int:
    """Answer the rows of one minute into `out[kind]`, `counts[kind]` of them; returns the number of stops."""
    for i in range(rows.shape[1]):
        kind, t, vid = rows[0, i], rows[1, i], rows[2, i]
        v = vehicles[vid]
        if kind == 2:
            n = counts[2]
            out[2, n, 0], out[2, n, 1], out[2, n, 2] = t, rows[9, i], v[BALANCE]
            counts[2] += 1
        if kind != 0:
            continue
        lane, pos = rows[5, i], rows[8, i]
        road = (rows[4, i] * 2 + rows[6, i]) * SEGMENTS + rows[7, i]
        known = v[TIME] == t - 30 and v[ROAD] // SEGMENTS == road // SEGMENTS
        first = not known or (v[LANE] == 4 and lane != 4)
        moved = known and v[ROAD] != road
        if moved and not first and v[TOLL] > 0:
            v[BALANCE] += v[TOLL]
        if v[STOP] >= 0:
            stops[v[STOP], UNTIL] = min(stops[v[STOP], UNTIL], t)
            v[STOP] = -1
        same = known and not moved and v[LANE] == lane and v[POS] == pos and 1 <= lane <= 3
        v[STILL] = v[STILL] + 1 if same else 1
        if v[STILL] >= 4:
            stops[n_stops, 0], stops[n_stops, 1], stops[n_stops, 2], stops[n_stops, 3] = vid, road, lane, pos
            stops[n_stops, SINCE], stops[n_stops, UNTIL] = t, t + 30
            v[STOP] = n_stops
            n_stops += 1
        # The mean over vehicles of each one's mean speed, kept up to date as a vehicle reports again.
        if v[ROAD] == road and v[TIME] >= 0 and v[TIME] // 60 == t // 60:
            before = v[SPEED] / v[COUNT]
            v[SPEED] += rows[3, i]
            v[COUNT] += 1
            sums[road] += v[SPEED] / v[COUNT] - before
        else:
            v[SPEED], v[COUNT] = rows[3, i], 1
            cars[road] += 1
            sums[road] += rows[3, i]
        if first or moved:
            v[TOLL] = -1
            if lane != 4:
                n = counts[0]
                v[TOLL] = toll[road]
                out[0, n, 0], out[0, n, 1], out[0, n, 2], out[0, n, 3] = vid, t, lav[road], toll[road]
                counts[0] += 1
                if accident[road] >= 0:
                    n = counts[1]
                    out[1, n, 0], out[1, n, 1], out[1, n, 2] = t, vid, accident[road]
                    counts[1] += 1
        v[TIME], v[ROAD], v[LANE], v[POS] = t, road, lane, pos
    return n_stops


class Road:
    """All state, as arrays, for so many vehicles and expressways."""

    def __init__(self, vehicles: int, xways: int) -> None:
        self.vehicles = np.zeros((vehicles, 10), np.int32)
        self.vehicles[:, [TIME, ROAD, STOP]] = -1
        roads = xways * 2 * SEGMENTS
        self.cars, self.sums = np.zeros(roads, np.int64), np.zeros(roads)
        self.lavs = np.full((5, roads), -1.0)
        self.lav, self.toll = np.full(roads, -1), np.zeros(roads, np.int64)
        self.accident = np.full(roads, -1)
        self.stops, self.n_stops, self.minute = np.zeros((100_000, 6), np.int64), 0, 0

    def take(self, rows: np.ndarray) -> list[np.ndarray]:
        """Answer the rows [field, row] of one minute: notices, alerts, balances."""
        minute = int(rows[1, 0]) // 60 + 1
        while self.minute < minute:
            if self.minute:
                quotes = (self.lav, self.toll, self.accident)
                close_minute(self.minute, self.cars, self.sums, self.lavs, self.stops, self.n_stops, *quotes)
            self.minute = self.minute + 1 if self.minute else minute
        out, counts = np.empty((3, rows.shape[1], 4), np.int32), np.zeros(3, np.int64)
        state = (self.vehicles, self.cars, self.sums, self.lav, self.toll, self.accident, self.stops)
        self.n_stops = answer(rows, *state, self.n_stops, out, counts)
        return [out[kind, : counts[kind]] for kind in range(3)]


def minutes_of(source: Path) -> list[np.ndarray]:
    """The accepted rows as columns, a minute at a time."""
    rows = np.concatenate([block.accepted() for block in seconds_of(open_input(source))])
    cuts = np.flatnonzero(np.diff(rows[:, 1] // 60)) + 1
    return [np.ascontiguousarray(part.T) for part in np.split(rows, cuts)]


def write(answers: Answers, arrays: list[np.ndarray]) -> None:
    notices, alerts, balances = arrays
    answers.write(0, _table(("vid", "time", "lav", "toll"), notices))
    answers.write(1, _table(("time", "vid", "seg"), alerts))
    columns = np.stack([balances[:, 0], balances[:, 0], balances[:, 1], balances[:, 2]], axis=1)
    answers.write(2, _table(("time", "result", "qid", "bal"), columns))


def _table(names: tuple[str, ...], rows: np.ndarray) -> pa.Table:
    return pa.table({name: pa.array(np.ascontiguousarray(rows[:, i])) for i, name in enumerate(names)})


def look_up(answers: Answers, history: History, minute: np.ndarray) -> None:
    daily, travel = [], []
    for row in minute[:, minute[0] > 2].T.tolist():
        if row[0] == 3:
            daily.append((row[1], row[9], history.spent(row[2], row[4], row[14])))
        else:
            travel.append((row[1], row[9], *history.travel(row[4], *row[10:14])))
    answers.write(3, _table(("time", "qid", "bal"), np.array(daily, np.int64).reshape(-1, 3)))
    answers.write(4, _table(("time", "qid", "travel", "toll"), np.array(travel, np.int64).reshape(-1, 4)))


def main() -> None:
    chosen: Any = options(__doc__)
    feed: Feed = feed_of(chosen)
    minutes = minutes_of(feed.source)
    most = [max(int(minute[field].max()) for minute in minutes) + 1 for field in (2, 4)]
    # Compiled or loaded from numba's cache before the clock starts.
    Road(*most).take(np.ascontiguousarray(minutes[0][:, :1]))
    close_minute(
        1,
        *(np.zeros(1, np.int64), np.zeros(1), np.zeros((5, 1)), np.zeros((1, 6), np.int64), 0),
        *np.zeros((3, 1), np.int64),
    )
    road = Road(*most)
    feed.first_wall, began = time.perf_counter(), time.process_time()
    answered = [road.take(minute) for minute in minutes]
    feed.rows, used = sum(minute.shape[1] for minute in minutes), time.process_time() - began
    with chosen.out.open("wb") as out:
        answers, history = Answers(out, feed), History(chosen.history)
        for minute, arrays in zip(minutes, answered, strict=True):
            write(answers, arrays)
            look_up(answers, history, minute)
    report(chosen, feed, answers.rows, used)


if __name__ == "__main__":
    main()
