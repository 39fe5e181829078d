"""Statistics of a road segment and minute (docs/linear-road-semantics.md, "Toll notification").

`cars(m)` counts the distinct vehicles reporting there in minute m, lanes 0..4; `Avgs(m)` is the mean over
those vehicles of each one's mean speed.
"""

from __future__ import annotations

import duckdb

TABLES = """
CREATE TABLE statistics (xway INTEGER, dir UTINYINT, seg UTINYINT, minute SMALLINT, cars INTEGER,
    avgs DOUBLE)"""

# A mean of means: a vehicle that reports twice in a minute must not weigh double.
STATISTICS = """
INSERT INTO statistics
SELECT {xway}, dir, seg, minute, count(*) AS cars, avg(speed) AS avgs
FROM (SELECT dir, seg, time // 60 + 1 AS minute, vid, avg(spd) AS speed
      FROM reports_{xway} GROUP BY dir, seg, minute, vid)
GROUP BY dir, seg, minute"""


def measure(con: duckdb.DuckDBPyConnection, xway: int) -> None:
    """Add the statistics of one expressway."""
    con.execute(STATISTICS.format(xway=xway))
