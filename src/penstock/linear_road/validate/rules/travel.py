"""Travel time and toll of a journey (docs/linear-road-semantics.md, "Travel time").

Idea: the journey is a recursive query that crosses one segment a step; `y` is the clock in minutes of the
first day. The means over the days of a day of week are computed for one expressway at a time, which bounds
the memory.
"""

from __future__ import annotations

from typing import NamedTuple

import duckdb

TABLES = """
CREATE TABLE expected_4 (time SMALLINT, qid INTEGER, vid INTEGER, travel BIGINT, toll BIGINT)"""

MEANS = """
CREATE OR REPLACE TEMP TABLE means AS
SELECT dir, seg, (day - 1) % 7 + 1 AS dow, min AS minute, avg(lav) AS lav, avg(cnt) AS cnt
FROM segment_history WHERE xway = {xway} GROUP BY ALL"""

# A mile at lav mph takes 60 / lav minutes; below 1 mph counts as 1. A segment without history has 60 mph and
# no cars. Minute k > 1440 is minute k - 1440 of the next day of the week, repeatedly.
# `+ 1e-9`: a sum of doubles that misses a whole number by rounding counts as that number.
# `id`: requests may share time and QID, so each journey has a number of its own.
LEGS = """
WITH RECURSIVE legs AS (
    SELECT row_number() OVER () AS id, time, qid, vid, CASE WHEN sinit <= send THEN 0 ELSE 1 END AS dir,
           sinit AS seg, send, dow, tod, tod::DOUBLE AS y, 0.0::DOUBLE AS toll,
           NULL::DOUBLE AS lav, NULL::DOUBLE AS cnt
    FROM requests WHERE type = 4 AND home_xway(xway) = {xway} {only}
  UNION ALL
    SELECT id, time, qid, vid, dir, seg + 1 - 2 * dir, send, dow, tod, y + 60 / greatest(lav, 1),
           toll + CASE WHEN lav < 40 AND cnt > 50 THEN 2 * (cnt - 50) ** 2 ELSE 0 END, lav, cnt
    FROM (SELECT j.* EXCLUDE (lav, cnt), coalesce(m.lav, 60) AS lav, coalesce(m.cnt, 0) AS cnt
          FROM (SELECT *, floor(y + 1e-9)::INTEGER AS k FROM legs WHERE seg <> send) j
          LEFT JOIN means m ON m.dir = j.dir AND m.seg = j.seg AND m.minute = (k - 1) % 1440 + 1
                           AND m.dow = (j.dow - 1 + (k - 1) // 1440) % 7 + 1))"""

JOURNEYS = (
    "INSERT INTO expected_4 "
    + LEGS
    + """
SELECT time, qid, vid, floor((y - tod) * 60 + 0.5 + 1e-9), floor(toll + 0.5 + 1e-9) FROM legs
    WHERE seg = send"""
)


class Leg(NamedTuple):
    """A journey before a segment: its clock `y`, its toll so far, and the figures of the segment before."""

    id: int
    dir: int
    seg: int
    y: float
    toll: float
    lav: float
    cnt: float


def asked_expressways(con: duckdb.DuckDBPyConnection) -> list[int]:
    """The expressways whose history is needed."""
    rows = con.execute("SELECT DISTINCT home_xway(xway) FROM requests WHERE type = 4 ORDER BY 1").fetchall()
    return [int(xway) for (xway,) in rows]


def travel(con: duckdb.DuckDBPyConnection, xway: int) -> None:
    """Answer the travel time requests on one expressway."""
    con.execute(MEANS.format(xway=xway))
    con.execute(JOURNEYS.format(xway=xway, only=""))
    con.execute("DROP TABLE means")


def legs(con: duckdb.DuckDBPyConnection, xway: int, time: int, qid: int) -> list[Leg]:
    """The steps of one journey: segment reached, clock y, toll so far, and the segment's lav and cnt."""
    row = con.execute(f"SELECT home_xway({int(xway)})").fetchone()
    home = row[0] if row else xway
    con.execute(MEANS.format(xway=home))
    # Copies share the history of their home, but the request is that of one copy.
    only = f"AND xway = {int(xway)} AND time = {int(time)} AND qid = {int(qid)}"
    rows = con.execute(
        LEGS.format(xway=home, only=only) + " SELECT id, dir, seg, y, toll, lav, cnt FROM legs ORDER BY id, y"
    ).fetchall()
    return [Leg(*row) for row in rows]
