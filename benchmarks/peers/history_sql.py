"""History in SQLite: daily expenditure by key, travel time by a recursive query.

Both look up single rows, which is what B-trees are for; the peers load it before the first row comes.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import duckdb

_FILES = {
    "toll": ("TollHistory", ("vid", "day", "xway", "tolls")),
    "segment": ("SegmentHistory", ("day", "min", "xway", "dir", "seg", "lav", "cnt", "toll")),
}

TABLES = """
CREATE TABLE toll (xway INTEGER, vid INTEGER, day INTEGER, tolls INTEGER,
    PRIMARY KEY (xway, vid, day)) WITHOUT ROWID;
CREATE TABLE segment (xway INTEGER, dir INTEGER, dow INTEGER, seg INTEGER, min INTEGER, lav REAL, cnt REAL,
                      PRIMARY KEY (xway, dir, dow, seg, min)) WITHOUT ROWID;"""

# k = CAST(y + 1e-9 AS INTEGER) is the minute looked up; beyond 1440 it is one of the next day of the week.
TRAVEL = """
WITH RECURSIVE legs (at, y, paid) AS (
    SELECT :sinit, :tod + 0.0, 0.0
  UNION ALL
    SELECT at + :step, y + 60 / max(coalesce(s.lav, 60), 1),
           paid + CASE WHEN s.lav < 40 AND s.cnt > 50 THEN 2 * (s.cnt - 50) * (s.cnt - 50) ELSE 0 END
    FROM legs LEFT JOIN segment s
      ON s.xway = :xway AND s.dir = :dir AND s.seg = at AND s.min = (CAST(y + 1e-9 AS INTEGER) - 1) % 1440 + 1
         AND s.dow = (:dow - 1 + (CAST(y + 1e-9 AS INTEGER) - 1) / 1440) % 7 + 1
    WHERE at <> :send)
SELECT CAST((y - :tod) * 60 + 0.5 + 1e-9 AS INTEGER), CAST(paid + 0.5 + 1e-9 AS INTEGER)
FROM legs WHERE at = :send"""


class History:
    """The two tables; copies of expressways share the rows of the first, as the history's manifest says."""

    def __init__(self, directory: Path | None) -> None:
        # foreachBatch calls from threads of its own, one after the other.
        self._con = sqlite3.connect(":memory:", check_same_thread=False)
        self._con.executescript(TABLES)
        self._copies = {"count": 1, "vid": 0, "xway": 1}
        if directory is not None:
            self._load(directory)

    def _load(self, directory: Path) -> None:
        manifest = directory / "manifest.json"
        if manifest.is_file():
            self._copies = json.loads(manifest.read_text(encoding="utf-8")).get("copies") or self._copies
        with duckdb.connect() as con:
            toll, segment = (_relation(directory, name) for name in ("toll", "segment"))
            if toll:
                query = f"SELECT xway, vid, day, sum(tolls)::BIGINT FROM {toll} GROUP BY ALL ORDER BY ALL"
                self._fill("INSERT INTO toll VALUES (?, ?, ?, ?)", con.execute(query))
            if segment:
                query = (
                    "SELECT xway, dir, (day - 1) % 7 + 1 AS dow, seg, min, avg(lav), avg(cnt) "
                    f"FROM {segment} GROUP BY ALL ORDER BY ALL"
                )
                self._fill("INSERT INTO segment VALUES (?, ?, ?, ?, ?, ?, ?)", con.execute(query))

    def _fill(self, insert: str, query: Any) -> None:
        while rows := query.fetchmany(100_000):
            self._con.executemany(insert, rows)
        self._con.commit()

    def _home(self, xway: int) -> int:
        """Which copy an expressway belongs to."""
        copy = xway // int(self._copies["xway"])
        return copy if copy < int(self._copies["count"]) else 0

    def spent(self, vid: int, xway: int, day: int) -> int:
        """What a vehicle spent on a day."""
        k = self._home(xway)
        key = (xway - k * self._copies["xway"], vid - k * self._copies["vid"], day)
        row = self._con.execute(
            "SELECT tolls FROM toll WHERE xway = ? AND vid = ? AND day = ?", key
        ).fetchone()
        return int(row[0]) if row else 0

    def travel(self, xway: int, sinit: int, send: int, dow: int, tod: int) -> tuple[int, int]:
        """Seconds and toll of a journey."""
        if sinit == send:
            return 0, 0
        step = 1 if sinit <= send else -1
        asked = {
            "xway": xway - self._home(xway) * int(self._copies["xway"]),
            "dir": int(step < 0),
            "step": step,
        }
        asked |= {"sinit": sinit, "send": send, "dow": dow, "tod": tod}
        seconds, toll = self._con.execute(TRAVEL, asked).fetchone()
        return int(seconds), int(toll)


def _relation(directory: Path, table: str) -> str | None:
    name, columns = _FILES[table]
    if (directory / f"{name}.parquet").exists():
        return f"read_parquet('{directory / name}.parquet')"
    if not (directory / f"{name}.csv").exists():
        return None
    types = ", ".join(f"'{column}': 'INTEGER'" for column in columns)
    form = f"header = false, auto_detect = false, delim = ',', columns = {{{types}}}"
    return f"read_csv('{directory / name}.csv', {form})"
