"""The accepted rows as tables: one of reports for each expressway, one of requests.

Idea: everything but the accounts and the stopped vehicles is a matter of one expressway, so each gets its own table and
is worked on alone; L expressways need the memory of one. Columns are as narrow as the format allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb

from penstock.linear_road.validate.lines import Chunk
from penstock.linear_road.validate.refused import Refused, as_table, sieve

REQUESTS = """
CREATE TABLE requests (type UTINYINT, time SMALLINT, vid INTEGER, xway INTEGER, qid INTEGER,
                       sinit INTEGER, send INTEGER, dow INTEGER, tod INTEGER, day INTEGER)"""

REPORTS = """
CREATE TABLE IF NOT EXISTS reports_{xway} (time SMALLINT, vid INTEGER, spd UTINYINT, lane UTINYINT,
                                           dir UTINYINT, seg UTINYINT, pos INTEGER)"""

ADD_REQUESTS = """
INSERT INTO requests SELECT Type, Time, VID, XWay, QID, Sinit, Send, DOW, TOD, Day
FROM accepted WHERE accepted AND Type <> 0"""

ADD_REPORTS = """
INSERT INTO reports_{xway} SELECT Time, VID, Spd, Lane, Dir, Seg, Pos
FROM accepted WHERE accepted AND Type = 0 AND XWay = {xway}"""


def load(con: duckdb.DuckDBPyConnection, source: Iterator[Chunk]) -> Iterator[list[Refused]]:
    """Fill the tables chunk by chunk, giving the refused rows of each."""
    con.execute(REQUESTS)
    for chunk, accepted, refused in sieve(con, source):
        _add(con, chunk, accepted)
        yield refused


def _add(con: duckdb.DuckDBPyConnection, chunk: Chunk, accepted: Any) -> None:
    con.register("accepted", as_table(chunk, accepted=accepted))
    con.execute(ADD_REQUESTS)
    present = con.execute(
        "SELECT DISTINCT XWay FROM accepted WHERE accepted AND Type = 0 ORDER BY 1"
    ).fetchall()
    for (xway,) in present:
        con.execute(REPORTS.format(xway=xway))
        con.execute(ADD_REPORTS.format(xway=xway))
    con.unregister("accepted")


def expressways(con: duckdb.DuckDBPyConnection) -> list[int]:
    """The expressways that have reports."""
    names = con.execute(
        "SELECT table_name FROM duckdb_tables() WHERE table_name SIMILAR TO 'reports_[0-9]+'"
    ).fetchall()
    return sorted(int(name.removeprefix("reports_")) for (name,) in names)
