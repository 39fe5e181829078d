"""Daily expenditure (docs/linear-road-semantics.md, "Daily expenditure"): the recorded sum, or 0."""

from __future__ import annotations

import duckdb

# The history has millions of rows, of which few are asked for. So it is filtered before it is summed.
DAILY = """
CREATE TABLE expected_3 AS
WITH asked AS (SELECT *, home_vid(vid, xway) AS home, home_xway(xway) AS road
               FROM (SELECT time, qid, vid, xway, day FROM requests WHERE type = 3)),
     spent AS (SELECT h.vid AS home, h.day, h.xway AS road, sum(h.tolls) AS bal FROM toll_history h
               WHERE (h.vid, h.day, h.xway) IN (SELECT home, day, road FROM asked) GROUP BY ALL)
SELECT time, qid, vid, xway, day, coalesce(bal, 0)::BIGINT AS bal
FROM asked LEFT JOIN spent USING (home, day, road)"""


def look_up_days(con: duckdb.DuckDBPyConnection) -> None:
    """Answer the daily expenditure requests."""
    con.execute(DAILY)
