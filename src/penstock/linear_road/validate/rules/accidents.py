"""Accidents: two vehicles stopped at one place (docs/linear-road-semantics.md, "Accidents").

Idea: at its fourth report in a row, 30 s apart, from one place, a vehicle is stopped. It stays so from that
report's time until its next report, or 30 s later. "Its four latest reports" are the vehicle's wherever they
come from, so the reports of the few still vehicles are gathered over all expressways. Of two reports in one
second neither is the later one, so four that include such a pair are not 30 s apart. Two such spans at one
place that overlap are an accident.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

_GATHER = """
SELECT {xway} AS xway, dir, lane, seg, pos, vid, time FROM reports_{xway}
WHERE vid IN (SELECT vid FROM still)"""

# Each report beside the three before it. If the fourth one back has the same second as the third, the vehicle
# reported twice in a second, and its four latest are not 30 s apart. `until` ends with the next report.
# A second report in this very second leaves an empty span (since = until), which overlaps nothing.
STOPPED = """
CREATE TABLE stopped AS
WITH mine AS ({mine}),
     latest AS (
        SELECT *, (xway, dir, lane, pos) AS place,
               lag((xway, dir, lane, pos), 1) OVER w AS place1, lag(time, 1) OVER w AS time1,
               lag((xway, dir, lane, pos), 2) OVER w AS place2, lag(time, 2) OVER w AS time2,
               lag((xway, dir, lane, pos), 3) OVER w AS place3, lag(time, 3) OVER w AS time3,
               lag(time, 4) OVER w AS time4, lead(time) OVER w AS next
        FROM mine WINDOW w AS (PARTITION BY vid ORDER BY time))
SELECT xway, dir, lane, seg, pos, vid, time AS since, least(time + 30, coalesce(next, time + 30)) AS until
FROM latest
WHERE lane BETWEEN 1 AND 3 AND place1 = place AND place2 = place AND place3 = place
  AND time1 = time - 30 AND time2 = time - 60 AND time3 = time - 90
  AND time4 IS DISTINCT FROM time - 90"""

# `a.vid < b.vid` gives each pair once.
ACCIDENTS = """
CREATE TABLE accidents AS
SELECT xway, dir, lane, seg, pos, a.vid AS vid1, b.vid AS vid2,
       greatest(a.since, b.since) AS since, least(a.until, b.until) AS until
FROM stopped a JOIN stopped b USING (xway, dir, lane, seg, pos)
WHERE a.vid < b.vid AND greatest(a.since, b.since) < least(a.until, b.until)"""

# `until` is the first second without the accident, so the last minute is that of the second before.
ACCIDENT_MINUTES = """
CREATE TABLE accident_minutes AS
SELECT DISTINCT xway, dir, seg, unnest(range(since // 60 + 1, (until - 1) // 60 + 2)) AS minute
    FROM accidents"""


def find_accidents(con: duckdb.DuckDBPyConnection, xways: Sequence[int]) -> None:
    """Make the tables of stopped vehicles, accidents, and minutes with an accident."""
    nothing = (
        "SELECT 0 AS xway, 0 AS dir, 0 AS lane, 0 AS seg, 0 AS pos, 0 AS vid, 0::SMALLINT AS time WHERE false"
    )
    mine = " UNION ALL ".join([nothing, *(_GATHER.format(xway=xway) for xway in xways)])
    con.execute(STOPPED.format(mine=mine))
    con.execute(ACCIDENTS)
    con.execute(ACCIDENT_MINUTES)
