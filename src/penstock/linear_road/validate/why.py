"""The oracle's reasoning: which vehicles, minutes and accidents an answer rests on.

Idea: nobody believes a validator that only says "wrong". Each answer can be traced back through the oracle's
own tables, in lines that a person can check by hand against the input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from penstock.linear_road.validate.comparison import Fault
from penstock.linear_road.validate.oracle import Oracle
from penstock.linear_road.validate.rules.travel import Leg, legs

_DIRECTIONS = ("east", "west")
_LISTED = 1000
_WIDTH = 240


@dataclass(frozen=True)
class Report:
    """One accepted position report and its previous one, if any."""

    xway: int
    time: int
    vid: int
    spd: int
    lane: int
    dir: int
    seg: int
    pos: int
    previous: tuple[int, int, int] | None

    @property
    def minute(self) -> int:
        return self.time // 60 + 1

    @property
    def is_first(self) -> bool:
        return self.previous is None or (self.previous[0] == 4 and self.lane != 4)

    @property
    def crosses(self) -> bool:
        return self.previous is not None and self.previous[1] != self.seg


def why(oracle: Oracle, vid: int, time: int) -> list[str]:
    """Everything the oracle knows of a vehicle at a time: its reports then and its requests."""
    lines = why_report(oracle, vid, time)
    asked = oracle.con.execute(
        "SELECT type, time, qid FROM requests WHERE vid = ? AND time = ? ORDER BY type, qid", [vid, time]
    ).fetchall()
    for kind, at, qid in asked:
        lines += ["", *why_request(oracle, kind, at, qid)]
    return lines


def working(oracle: Oracle, kind: int, fault: Fault, most: int = 8) -> list[str]:
    """The working for one fault, cut to `most` lines."""
    if kind in (0, 1):
        lines = why_report(oracle, fault.key["vid"], fault.key["time"])
    else:
        lines = why_request(oracle, kind, fault.key["time"], fault.key["qid"])
    if len(lines) > most:
        lines = [*lines[: most - 1], f"... {len(lines) - most + 1} more lines: use --why"]
    return [line if len(line) <= _WIDTH else f"{line[:_WIDTH]} ..." for line in lines]


def why_report(oracle: Oracle, vid: int, time: int) -> list[str]:
    """The working of the notices, alerts and charges of a vehicle's reports at a time."""
    reports = _reports(oracle, vid, time)
    if not reports:
        return [f"Vehicle {vid} has no accepted report at {time}{_nearby(oracle, vid, time)}."]
    lines: list[str] = []
    for report in reports:
        lines += [_where(report), _trigger(report), *_charge(oracle, report)]
        if report.lane != 4 and (report.is_first or report.crosses):
            lines += _quote(oracle, report)
    return lines


def _reports(oracle: Oracle, vid: int, time: int) -> list[Report]:
    reports = []
    for xway in oracle.xways:
        rows = oracle.con.execute(
            f"""SELECT q.time, q.vid, q.spd, q.lane, q.dir, q.seg, q.pos,
                       CASE WHEN p.time IS NOT NULL THEN (p.lane, p.seg, p.pos) END
                FROM (SELECT * FROM reports_{xway} WHERE vid = $vid AND time = $time) q
                LEFT JOIN (SELECT * FROM reports_{xway} WHERE vid = $vid
                    AND time = $time - 30) p ON p.dir = q.dir
                ORDER BY q.dir""",
            {"vid": vid, "time": time},
        ).fetchall()
        reports += [Report(xway, *row) for row in rows]
    return reports


def _nearby(oracle: Oracle, vid: int, time: int) -> str:
    times: list[int] = []
    for xway in oracle.xways:
        rows = oracle.con.execute(
            f"SELECT time FROM reports_{xway} WHERE vid = ? AND time BETWEEN ? AND ?",
            [vid, time - 60, time + 60],
        ).fetchall()
        times += [row[0] for row in rows]
    return f" (within a minute of it: {', '.join(map(str, sorted(times)))})" if times else ""


def _where(q: Report) -> str:
    return (
        f"Vehicle {q.vid} at {q.time} (minute {q.minute}): expressway {q.xway} {_DIRECTIONS[q.dir]}, "
        f"segment {q.seg}, lane {q.lane}, position {q.pos}, speed {q.spd}."
    )


def _trigger(q: Report) -> str:
    if q.previous is None:
        why = f"No report at {q.time - 30} on this expressway and direction: the first of a trip"
    elif q.is_first:
        why = f"Previous report at {q.time - 30} was in lane 4: the first of a trip"
    elif q.crosses:
        why = f"Previous report at {q.time - 30} was in segment {q.previous[1]}: a crossing"
    else:
        return f"Previous report at {q.time - 30} was in segment {q.seg} too: no notice."
    return f"{why}, but in lane 4: no notice." if q.lane == 4 else f"{why}: a notice."


def _charge(oracle: Oracle, q: Report) -> list[str]:
    rows = oracle.con.execute(
        "SELECT toll, seg, quoted FROM charges WHERE vid = ? AND time = ? AND xway = ? AND dir = ?",
        [q.vid, q.time, q.xway, q.dir],
    ).fetchall()
    return [f"Charged here: {toll}, quoted for segment {seg} at {quoted}." for toll, seg, quoted in rows]


def _quote(oracle: Oracle, q: Report) -> list[str]:
    lav, cars, accident, toll = oracle.con.execute(
        "SELECT lav, cars, accident, toll FROM quotes WHERE xway = ? AND dir = ? AND seg = ? AND minute = ?",
        [q.xway, q.dir, q.seg, q.minute],
    ).fetchall()[0]
    lines = [_lav(oracle, q, lav), _cars(oracle, q, cars), *_accidents(oracle, q, accident)]
    return [*lines, _toll(lav, cars, accident, toll)]


def _lav(oracle: Oracle, q: Report, lav: int) -> str:
    rows = dict(
        oracle.con.execute(
            "SELECT minute, (avgs, cars) FROM statistics WHERE xway = ? AND dir = ? AND seg = ? AND minute "
            "BETWEEN ? AND ?",
            [q.xway, q.dir, q.seg, q.minute - 5, q.minute - 1],
        ).fetchall()
    )
    minutes = [minute for minute in range(q.minute - 5, q.minute) if minute >= 1]
    if not rows:
        return f"Lav -1: none of the minutes {q.minute - 5}..{q.minute - 1} has data."
    parts = [f"{m}: {rows[m][0]:.4f} ({rows[m][1]} cars)" if m in rows else f"{m}: no data" for m in minutes]
    mean = sum(avgs for avgs, _ in rows.values()) / len(rows)
    return f"Lav {lav} = floor({mean:.4f}), the mean of the minutes {'; '.join(parts)}."


def _cars(oracle: Oracle, q: Report, cars: int) -> str:
    rows = oracle.con.execute(
        f"""SELECT DISTINCT vid FROM reports_{q.xway} WHERE dir = ? AND seg = ? AND time BETWEEN ? AND ?
            ORDER BY vid LIMIT {_LISTED + 1}""",
        [q.dir, q.seg, (q.minute - 2) * 60, (q.minute - 1) * 60 - 1],
    ).fetchall()
    listed = ", ".join(str(row[0]) for row in rows[:_LISTED])
    return f"Cars in minute {q.minute - 1}: {cars}{f' (vehicles {listed}{_more(rows)})' if rows else ''}."


def _more(rows: Sequence[object]) -> str:
    return ", ..." if len(rows) > _LISTED else ""


def _accidents(oracle: Oracle, q: Report, accident: int | None) -> list[str]:
    last = min(q.seg + 4, 99) if q.dir == 0 else max(q.seg - 4, 0)
    if accident is None:
        return [f"No accident in minute {q.minute - 1} in segments {q.seg}..{last}."]
    # Each report of a stopped vehicle is a span of its own, so one accident is many rows.
    begin, end = (q.minute - 2) * 60, (q.minute - 1) * 60
    rows = oracle.con.execute(
        """SELECT lane, pos, vid1, vid2, min(since), max(until) FROM accidents
           WHERE xway = ? AND dir = ? AND seg = ? AND since < ? AND until > ?
           GROUP BY ALL ORDER BY ALL LIMIT 5""",
        [q.xway, q.dir, accident, end, begin],
    ).fetchall()
    return [
        f"Accident in minute {q.minute - 1} in segment {accident}, the nearest of {q.seg}..{last}: lane "
        f"{lane}, position {pos}, vehicles {a} and {b}, stopped together in {since}..{until - 1}."
        for lane, pos, a, b, since, until in rows
    ]


def _toll(lav: int, cars: int, accident: int | None, toll: int) -> str:
    if accident is not None:
        return "Toll 0: there is an accident downstream; an alert is sent as well."
    if lav >= 40:
        return f"Toll 0: Lav {lav} is not below 40."
    if cars <= 50:
        return f"Toll 0: {cars} cars are not above 50."
    return f"Toll {toll} = 2 * ({cars} - 50)^2."


class _Request(NamedTuple):
    """What a request asks."""

    vid: int
    xway: int
    sinit: int
    send: int
    dow: int
    tod: int
    day: int


def why_request(oracle: Oracle, kind: int, time: int, qid: int) -> list[str]:
    """The working of the answer to a request."""
    rows = oracle.con.execute(
        "SELECT vid, xway, sinit, send, dow, tod, day FROM requests WHERE type = ? AND time = ? AND qid = ?",
        [kind, time, qid],
    ).fetchall()
    if not rows:
        return [f"There is no request of type {kind} with QID {qid} at {time}."]
    explain = {2: _balance, 3: _daily, 4: _travel}[kind]
    return [line for row in rows for line in explain(oracle, time, qid, _Request(*row))]


def _balance(oracle: Oracle, time: int, qid: int, request: _Request) -> list[str]:
    vid = request.vid
    charges = oracle.con.execute(
        "SELECT time, toll, xway, seg FROM charges WHERE vid = ? AND time <= ? ORDER BY time", [vid, time]
    ).fetchall()
    # Charges of 60 s ago and before are in every right answer. Each later one begins another right pair.
    old = sum(toll for at, toll, _, _ in charges if at <= time - 60)
    lines = [f"Balance request {qid} at {time} of vehicle {vid}: {old} for ResultTime {time - 60}"]
    for at, toll, _, _ in charges:
        if at > time - 60:
            old += toll
            lines[0] += f", {old} from {at} on"
    lines[0] += "; no other pair is right."
    return lines + [
        f"Charged at {at}: {toll} for expressway {xway}, segment {seg}." for at, toll, xway, seg in charges
    ]


def _daily(oracle: Oracle, time: int, qid: int, request: _Request) -> list[str]:
    vid, xway, day = request.vid, request.xway, request.day
    journey = oracle.con.execute(
        """SELECT tolls FROM toll_history
           WHERE vid = home_vid($vid, $xway) AND xway = home_xway($xway) AND day = $day""",
        {"vid": vid, "xway": xway, "day": day},
    ).fetchall()
    text = " + ".join(str(tolls) for (tolls,) in journey) or "0 (no row)"
    return [
        f"Daily request {qid} at {time}: TollHistory of vehicle {vid}, expressway {xway}, day {day}: {text}."
    ]


def _travel(oracle: Oracle, time: int, qid: int, request: _Request) -> list[str]:
    vid, xway, sinit, send, dow, tod, _ = request
    steps = legs(oracle.con, xway, time, qid)
    minutes, toll = steps[-1].y - tod, steps[-1].toll
    journey = f"expressway {xway}, {sinit} to {send}, day of week {dow}, minute {tod}"
    outcome = f"{minutes * 60:.3f} s, toll {toll:.3f}"
    lines = [f"Travel request {qid} at {time} of vehicle {vid}: {journey}: {outcome}."]
    for before, after in pairwise(steps):
        # Requests may share time and QID; then their legs follow each other.
        if before.id == after.id:
            lines.append(_leg(before, after))
    return lines


def _leg(before: Leg, after: Leg) -> str:
    return (
        f"Segment {before.seg} {_DIRECTIONS[before.dir]} at minute {int(before.y + 1e-9)}: "
        f"lav {after.lav:.4f}, cnt {after.cnt:.4f}, "
        f"{after.y - before.y:.4f} minutes, toll {after.toll - before.toll:.4f}."
    )
