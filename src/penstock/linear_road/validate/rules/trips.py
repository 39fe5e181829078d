"""Trips: where a vehicle begins one, enters a segment, or stands still.

Meaning: docs/linear-road-semantics.md, "Trips". Idea: one self-join finds the previous report: that of the
same vehicle on the same expressway and direction exactly 30 s earlier. Only two kinds of its rows matter
later: entries (the first report of a trip, or one in another segment than the previous) and still rows (same
travel lane and position as the previous).
"""

from __future__ import annotations

import duckdb

TABLES = """
CREATE TABLE entries (xway INTEGER, dir UTINYINT, vid INTEGER, time SMALLINT, lane UTINYINT, seg UTINYINT,
                      first BOOLEAN);
CREATE TABLE still (vid INTEGER)"""

# Most reports are neither entries nor still rows; the WHERE clause drops them before anything is written. A
# vehicle that left by lane 4 and is back on another lane 30 s later begins a new trip.
STEPS = """
CREATE OR REPLACE TEMP TABLE steps AS
SELECT q.dir, q.vid, q.time, q.lane, q.seg,
       p.time IS NULL OR (p.lane = 4 AND q.lane <> 4) AS first,
       p.seg IS DISTINCT FROM q.seg AS moved
FROM reports_{xway} q LEFT JOIN reports_{xway} p ON p.vid = q.vid AND p.dir = q.dir AND p.time = q.time - 30
WHERE p.time IS NULL OR (p.lane = 4 AND q.lane <> 4) OR p.seg <> q.seg
   OR (q.lane BETWEEN 1 AND 3 AND p.lane = q.lane AND p.pos = q.pos)"""

ENTRIES = """
INSERT INTO entries SELECT {xway}, dir, vid, time, lane, seg, first FROM steps WHERE first OR moved"""

# Four equal reports are three still rows; a vehicle with fewer can never be stopped.
STILL = """
INSERT INTO still SELECT vid FROM steps WHERE NOT first AND NOT moved
    GROUP BY vid HAVING count(*) >= 3"""


def find_entries(con: duckdb.DuckDBPyConnection, xway: int) -> None:
    """Add the entries and the still vehicles of one expressway."""
    for statement in (STEPS, ENTRIES, STILL):
        con.execute(statement.format(xway=xway))
    con.execute("DROP TABLE steps")
