"""Linear Road by polling an embedded SQL database once a second: the paper's "System X" today.

    python -m benchmarks.peers.system_x --input DIR|FILE --out answers.csv [--history DIR]
    python -m benchmarks.peers.system_x --follow DIR --out answers.csv [--history DIR]

The first form goes as fast as it can; the second reads what `penstock lr drive --to DIR` delivers.

Idea: what came in the last second is inserted into tables of DuckDB, and the definitions of Linear Road are
asked as queries over those tables. A report is kept for 150 s, with the toll quoted for its segment and how
often it was seen in the same place, so that the join with the report 30 s before gives trips, crossings,
charges and stopped vehicles at once. Statistics, accidents and tolls are worked out when a minute begins.
History lies in SQLite (`history_sql`), which has the B-trees that point look-ups need. By default all is in
memory and nothing survives a crash: the comparison is kind to it. With `--database FILE` the tables lie in a
file, and every poll ends with a checkpoint. Arasu et al., VLDB 2004, section 5 (System X).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.peers.feed import FIELDS, NAMES, Answers, Feed, feed_of, options, report, table
from benchmarks.peers.history_sql import History

KEPT = 150
"""Seconds for which reports are kept: four of a vehicle, 30 s apart, and some to spare."""

TABLES = """
CREATE TABLE reports (time INTEGER, vid INTEGER, spd INTEGER, xway INTEGER, lane INTEGER, dir INTEGER,
                      seg INTEGER, pos INTEGER, toll INTEGER, still INTEGER);
CREATE TABLE stops (vid INTEGER, time INTEGER, xway INTEGER, dir INTEGER, lane INTEGER, seg INTEGER,
                    pos INTEGER);
CREATE TABLE statistics (minute INTEGER, xway INTEGER, dir INTEGER, seg INTEGER, cars INTEGER, avgs DOUBLE);
CREATE TABLE quotes (xway INTEGER, dir INTEGER, seg INTEGER, lav INTEGER, toll INTEGER);
CREATE TABLE warned (xway INTEGER, dir INTEGER, seg INTEGER, accident INTEGER);
CREATE TABLE accounts (vid INTEGER, bal BIGINT);
CREATE TABLE charges (vid INTEGER, time INTEGER, toll INTEGER);"""

STATISTICS = """
INSERT INTO statistics
SELECT {minute}, xway, dir, seg, count(*), avg(speed)
FROM (SELECT xway, dir, seg, vid, avg(spd) AS speed FROM reports WHERE time // 60 + 1 = {minute} GROUP BY ALL)
GROUP BY xway, dir, seg"""

# A stopped vehicle is stopped from its fourth equal report until it reports again, 30 s at most.
WARNED = """
CREATE OR REPLACE TABLE warned AS
WITH spans AS (SELECT s.*, min(coalesce(r.time, s.time + 30)) AS until
               FROM stops s LEFT JOIN reports r ON r.vid = s.vid AND r.time > s.time AND r.time < s.time + 30
               GROUP BY ALL),
     places AS (SELECT DISTINCT a.xway, a.dir, a.seg FROM spans a JOIN spans b USING (xway, dir, lane, pos)
                WHERE a.vid < b.vid
                  AND greatest(a.time, b.time, {begin}) < least(a.until, b.until, {begin} + 60))
SELECT xway, dir, behind AS seg, arg_min(seg, abs(behind - seg)) AS accident
FROM (SELECT *, unnest(CASE dir WHEN 0 THEN range(greatest(seg - 4, 0), seg + 1)
                                ELSE range(seg, least(seg + 4, 99) + 1) END) AS behind FROM places)
GROUP BY xway, dir, behind"""

QUOTES = """
CREATE OR REPLACE TABLE quotes AS
WITH lavs AS (SELECT xway, dir, seg, floor(avg(avgs) + 1e-9)::INTEGER AS lav,
                     coalesce(max(cars) FILTER (minute = {minute} - 1), 0) AS cars
              FROM statistics WHERE minute BETWEEN {minute} - 5 AND {minute} - 1 GROUP BY ALL)
SELECT xway, dir, seg, lav,
       CASE WHEN lav < 40 AND cars > 50 AND accident IS NULL THEN 2 * (cars - 50) ** 2 ELSE 0 END::INTEGER
         AS toll
FROM lavs LEFT JOIN warned USING (xway, dir, seg)"""

FORGET = """
INSERT INTO accounts SELECT vid, sum(toll) FROM charges GROUP BY vid;
CREATE OR REPLACE TABLE accounts AS SELECT vid, sum(bal)::BIGINT AS bal FROM accounts GROUP BY vid;
DELETE FROM charges;
CREATE OR REPLACE TABLE reports AS SELECT * FROM reports WHERE time >= {begin} - {kept};
DELETE FROM stops WHERE time < {begin} - 30;
DELETE FROM statistics WHERE minute < {begin} // 60 + 1 - 5"""

# The new reports beside their previous ones; what is quoted now, or is still valid, and what is to be paid.
STEPS = """
CREATE OR REPLACE TEMP TABLE steps AS
WITH new AS (SELECT * FROM arrived WHERE type = 0),
     pairs AS (
        SELECT n.*, p.seg AS from_seg, p.toll AS quoted,
               p.time IS NULL OR (p.lane = 4 AND n.lane <> 4) AS first,
               CASE WHEN p.lane = n.lane AND p.pos = n.pos AND n.lane BETWEEN 1 AND 3
                    THEN p.still + 1 ELSE 1 END AS still
        FROM new n LEFT JOIN (SELECT * FROM reports WHERE time BETWEEN {first} - 30 AND {last} - 30) p
          ON p.vid = n.vid AND p.xway = n.xway AND p.dir = n.dir AND p.time = n.time - 30)
SELECT p.* REPLACE (CASE WHEN still > 1 AND EXISTS (FROM both_times r
                                                    WHERE r.vid = p.vid AND r.time > p.time - 30
                                                      AND r.time < p.time) THEN 1 ELSE still END AS still),
       (first OR seg <> from_seg) AS entered,
       CASE WHEN NOT first AND seg = from_seg THEN quoted WHEN lane = 4 THEN NULL
            ELSE coalesce(q.toll, 0) END AS toll,
       coalesce(q.lav, -1) AS lav, w.accident
FROM pairs p LEFT JOIN quotes q USING (xway, dir, seg) LEFT JOIN warned w USING (xway, dir, seg)"""

# Only vehicles that seem to stand still are looked at closer.
BOTH_TIMES = """
CREATE OR REPLACE TEMP VIEW both_times AS SELECT vid, time FROM reports WHERE time > {first} - 30
UNION ALL SELECT vid, time FROM arrived WHERE type = 0"""

KEEP = """
INSERT INTO reports SELECT time, vid, spd, xway, lane, dir, seg, pos, toll, still FROM steps;
INSERT INTO stops SELECT vid, time, xway, dir, lane, seg, pos FROM steps WHERE still >= 4;
INSERT INTO charges SELECT vid, time, quoted FROM steps WHERE NOT first AND seg <> from_seg AND quoted > 0"""

NOTICES = "SELECT vid, time, lav, toll FROM steps WHERE entered AND lane <> 4"
ALERTS = "SELECT time, vid, accident FROM steps WHERE entered AND lane <> 4 AND accident IS NOT NULL"

# Accounts hold what was charged up to the minute before, charges what was since.
BALANCES = """
SELECT r.time, r.time AS result, r.qid,
       coalesce(any_value(a.bal), 0)
         + coalesce((SELECT sum(toll) FROM charges c WHERE c.vid = r.vid AND c.time <= r.time), 0) AS bal
FROM (SELECT row_number() OVER () AS n, time, vid, qid FROM arrived WHERE type = 2) r
LEFT JOIN accounts a USING (vid)
GROUP BY r.n, r.time, r.qid, r.vid"""

ASKED = "SELECT type, time, vid, xway, qid, sinit, send, dow, tod, day FROM arrived WHERE type > 2"


@dataclass
class SystemX:
    """The database and the minute it stands in."""

    answers: Answers
    history: History
    database: Path | None = None
    minute: int = 0
    con: duckdb.DuckDBPyConnection = field(init=False)

    def __post_init__(self) -> None:
        self.con = duckdb.connect(str(self.database or ":memory:"))
        self.con.execute(TABLES)
        self.con.execute("SET preserve_insertion_order = false")

    def poll(self, rows: np.ndarray) -> None:
        """Take the rows that came and answer them."""
        first, last = int(rows[0, 1]), int(rows[-1, 1])
        self._enter(first // 60 + 1)
        columns = {name: pa.array(np.ascontiguousarray(rows[:, i])) for i, name in enumerate(NAMES)}
        self.con.register("arrived", pa.table(columns))
        self.con.execute(BOTH_TIMES.format(first=first))
        self.con.execute(STEPS.format(first=first, last=last))
        self.con.execute(KEEP)
        self.answers.write(0, self._ask(NOTICES))
        self.answers.write(1, self._ask(ALERTS))
        self.answers.write(2, self._ask(BALANCES))
        self._look_up()
        self.con.unregister("arrived")
        self.answers.flush()
        if self.database is not None:
            self.con.execute("CHECKPOINT")

    def _ask(self, query: str) -> pa.Table:
        return self.con.sql(query).to_arrow_table()

    def _enter(self, minute: int) -> None:
        """A minute begins: the one before it is whole."""
        if minute == self.minute:
            return
        begin = (minute - 2) * 60
        self.con.execute(STATISTICS.format(minute=self.minute))
        self.con.execute(WARNED.format(begin=begin))
        self.con.execute(QUOTES.format(minute=minute))
        self.con.execute(FORGET.format(begin=begin, kept=KEPT))
        self.minute = minute

    def _look_up(self) -> None:
        daily, travel = [], []
        for kind, time, vid, xway, qid, sinit, send, dow, tod, day in self.con.execute(ASKED).fetchall():
            if kind == 3:
                daily.append((time, qid, self.history.spent(vid, xway, day)))
            else:
                travel.append((time, qid, *self.history.travel(xway, sinit, send, dow, tod)))
        self.answers.write(3, table(FIELDS[3], daily))
        self.answers.write(4, table(FIELDS[4], travel))


def main() -> None:
    chosen = options(__doc__)
    feed: Feed = feed_of(chosen)
    with chosen.out.open("wb") as out:
        system = SystemX(Answers(out, feed), History(chosen.history), chosen.database)
        if chosen.ready:
            chosen.ready.write_text("ready\n", encoding="utf-8")
        for rows in feed.batches():
            system.poll(rows)
    report(chosen, feed, system.answers.rows)


if __name__ == "__main__":
    main()
