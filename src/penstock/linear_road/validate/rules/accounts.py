"""Assessment and balance (docs/linear-road-semantics.md, "Assessment and balance").

Idea: a report that crosses into another segment pays the toll quoted when the vehicle entered the segment it
leaves, at the previous entry of its trip. If that entry was in lane 4, there was no notice and nothing is
paid. The first report of a trip pays nothing. A vehicle has one account over all expressways.
"""

from __future__ import annotations

import duckdb

# `lag` reads the previous entry of the trip, where the toll due now was told. The reports of a trip are 30 s
# apart, so `time % 30` keeps a vehicle that reports in two rhythms from paying in one what it heard in the
# other.
# An entry on lane 4 has no toll: it is NULL there, and NULL > 0 is not true.
CHARGES = """
CREATE TABLE charges AS
WITH crossings AS (
    SELECT vid, time, xway, dir, first, lag(toll) OVER w AS toll, lag(seg) OVER w AS seg,
           lag(time) OVER w AS quoted
    FROM entered WINDOW w AS (PARTITION BY xway, dir, vid, time % 30 ORDER BY time))
SELECT vid, time, xway, dir, seg, quoted, toll FROM crossings WHERE NOT first AND toll > 0"""

# First the sum of each second, then the running sum: charges of one second show together.
ACCOUNTS = """
CREATE TABLE accounts AS
SELECT vid, time, sum(sum(toll)) OVER (PARTITION BY vid ORDER BY time)::BIGINT AS bal
FROM charges GROUP BY vid, time"""

# ASOF: the newest balance at or before the request.
BALANCES = """
CREATE TABLE expected_2 AS
SELECT r.time, r.qid, r.vid, coalesce(a.bal, 0) AS bal
FROM (SELECT time, qid, vid FROM requests WHERE type = 2) r
ASOF LEFT JOIN accounts a ON a.vid = r.vid AND a.time <= r.time"""


def assess(con: duckdb.DuckDBPyConnection) -> None:
    """Make the charges, the running balances and the balance at each request."""
    for statement in (CHARGES, ACCOUNTS, BALANCES):
        con.execute(statement)
