"""Tolls, notices and alerts (docs/linear-road-semantics.md, "Toll notification" and "Accidents").

Idea: Lav, toll and the nearest accident depend only on road segment and minute, so they are computed once for
each of these (`quotes`). A notice is an entry that reads its quote. An entry in lane 4 has none.
"""

from __future__ import annotations

import duckdb

# Direction 0 drives towards segment 99, direction 1 towards segment 0, and the road ends there.
DOWNSTREAM = """
CREATE OR REPLACE MACRO downstream(dir, seg, i) AS
CASE dir WHEN 0 THEN least(seg + i, 99) ELSE greatest(seg - i, 0) END"""

# Every notice has a report in its own minute, so the statistics hold a row for each quote that is ever
# needed. Lav is the mean of the five minutes before; a minute without cars has no row and does not count.
# 1e-9 lifts a mean that is whole except for rounding. An accident in one of the five segments from here
# downstream suspends the toll.
QUOTES = """
CREATE TABLE quotes AS
WITH lavs AS (
        SELECT q.xway, q.dir, q.seg, q.minute, coalesce(floor(avg(s.avgs) + 1e-9), -1)::INTEGER AS lav,
               coalesce(max(s.cars) FILTER (s.minute = q.minute - 1), 0) AS cars
        FROM statistics q LEFT JOIN statistics s
          ON s.xway = q.xway AND s.dir = q.dir AND s.seg = q.seg
             AND s.minute BETWEEN q.minute - 5 AND q.minute - 1
        GROUP BY ALL),
     nearest AS (
        SELECT q.xway, q.dir, q.seg, q.minute, arg_min(a.seg, i) AS accident
        FROM statistics q CROSS JOIN range(5) hops(i) JOIN accident_minutes a
          ON a.xway = q.xway AND a.dir = q.dir AND a.seg = downstream(q.dir, q.seg::INTEGER, i)
             AND a.minute = q.minute - 1
        GROUP BY ALL)
SELECT xway, dir, seg, minute, lav, cars, accident,
       CASE WHEN lav < 40 AND cars > 50 AND accident IS NULL THEN 2 * (cars - 50) ** 2 ELSE 0 END::INTEGER
           AS toll
FROM lavs LEFT JOIN nearest USING (xway, dir, seg, minute)"""

# A vehicle that enters on lane 4 is on its way out: it is told no toll, so none is charged later.
ENTERED = """
CREATE TABLE entered AS
SELECT e.*, q.lav, q.accident, CASE WHEN e.lane <> 4 THEN q.toll END AS toll
FROM entries e JOIN quotes q ON q.xway = e.xway AND q.dir = e.dir AND q.seg = e.seg
    AND q.minute = e.time // 60 + 1"""

# Views: each notice is an entry, and a copy of millions of rows would only cost memory.
NOTICES = """
CREATE VIEW expected_0 AS SELECT vid, time, lav, toll, xway, dir, seg FROM entered WHERE lane <> 4"""

ALERTS = """
CREATE VIEW expected_1 AS SELECT vid, time, accident AS seg, xway, dir, seg AS from_seg
FROM entered WHERE lane <> 4 AND accident IS NOT NULL"""


def quote(con: duckdb.DuckDBPyConnection) -> None:
    """Make the quotes, and with them the notices and alerts."""
    for statement in (DOWNSTREAM, QUOTES, ENTERED, "DROP TABLE entries", NOTICES, ALERTS):
        con.execute(statement)
