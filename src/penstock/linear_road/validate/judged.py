"""What is judged of a run that has left expressways out: all that does not depend on them.

Idea: an expressway is exact as long as it was never left out, and again five whole minutes after it came
back, because Lav looks back five minutes. Its notices, alerts, daily expenditures and travel times are judged
while it is exact. A balance belongs to a vehicle: it is judged if that vehicle was never seen on an
expressway that was not exact. Both the right answers and the given ones are restricted to that, and then
compared as always.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import duckdb

from penstock.linear_road.validate.answer_files import LAYOUT, LeftOut
from penstock.linear_road.validate.rules.roads import expressways

_MINUTE, _LOOKS_BACK = 60, 300


@dataclass(frozen=True)
class Inexact:
    """Seconds begin..end-1 of an expressway whose answers are not judged."""

    xway: int
    begin: int
    end: int


def exact_again(until: int) -> int:
    """The first second that is exact, if an expressway came back at second `until`.

    The minute in which it came back is not whole, and the five before a quote must be.

    >>> exact_again(120), exact_again(121)
    (420, 480)
    """
    return -(-until // _MINUTE) * _MINUTE + _LOOKS_BACK


def inexact(left_out: Iterable[LeftOut]) -> list[Inexact]:
    """By expressway, the seconds that are not judged."""
    spans = [(xway, each["begin"], each["until"]) for each in left_out for xway in each["xways"]]
    return [Inexact(xway, begin, exact_again(until)) for xway, begin, until in spans]


def exact_throughout(
    xways: Iterable[int], spans: Iterable[Inexact], begin: int, end: int | None = None
) -> list[int]:
    """The expressways that were exact in all seconds begin..end-1.

    >>> exact_throughout([1, 2], [Inexact(1, 30, 400), Inexact(2, 30, 420)], 400)
    [1]
    """
    touched = {s.xway for s in spans if s.end > begin and (end is None or s.begin < end)}
    return [xway for xway in xways if xway not in touched]


# The expressway of a report, by vehicle and time: answers do not name it.
_SEEN = "CREATE OR REPLACE TEMP TABLE seen AS {reports}"
_REPORTS = "SELECT vid, time, {xway} AS xway FROM reports_{xway}"

# A request goes with the report that carries it. One without a report names its expressway, or goes with 0.
_ASKED = """
CREATE OR REPLACE TEMP TABLE asked AS
SELECT r.type, r.time, r.qid, r.vid, coalesce(s.xway, greatest(r.xway, 0)) AS xway
FROM requests r LEFT JOIN seen s ON s.vid = r.vid AND s.time = r.time"""

_GONE_REPORTS = """
CREATE OR REPLACE TEMP TABLE gone_reports AS
SELECT DISTINCT vid, time FROM seen JOIN inexact i USING (xway) WHERE time BETWEEN i.first AND i.last"""

_GONE_REQUESTS = """
CREATE OR REPLACE TEMP TABLE gone_requests AS
SELECT time, qid FROM asked JOIN inexact i USING (xway) WHERE time BETWEEN i.first AND i.last
UNION SELECT time, qid FROM asked WHERE type = 2 AND vid IN (SELECT vid FROM gone_reports)"""

_GONE = {0: "gone_reports", 1: "gone_reports", 2: "gone_requests", 3: "gone_requests", 4: "gone_requests"}


def restrict(con: duckdb.DuckDBPyConnection, spans: Sequence[Inexact]) -> None:
    """Leave out of expected_0 .. and got_0 .. what is not judged; the tables of the oracle stay."""
    for kind in LAYOUT:
        con.execute(f"DROP VIEW IF EXISTS temp.expected_{kind}")
    if not spans:
        return
    _see(con)
    con.execute("CREATE OR REPLACE TEMP TABLE inexact (xway INTEGER, first INTEGER, last INTEGER)")
    con.executemany("INSERT INTO inexact VALUES (?, ?, ?)", [(s.xway, s.begin, s.end - 1) for s in spans])
    con.execute(_GONE_REPORTS)
    con.execute(_GONE_REQUESTS)
    (database,) = con.execute("SELECT current_database()").fetchone() or ("",)
    for kind, gone in _GONE.items():
        name = "vid" if gone == "gone_reports" else "qid"
        whole = f'"{database}".main.expected_{kind}'
        con.execute(
            f"CREATE TEMP VIEW expected_{kind} AS "
            f"SELECT e.* FROM {whole} e ANTI JOIN {gone} USING (time, {name})"
        )
        con.execute(
            f"DELETE FROM got_{kind} g USING {gone} WHERE g.time = {gone}.time AND g.{name} = {gone}.{name}"
        )


def _see(con: duckdb.DuckDBPyConnection) -> None:
    """Made once for an input: it is as long as its reports."""
    known = con.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'seen'").fetchone()
    if known is None:
        reports = " UNION ALL ".join(_REPORTS.format(xway=xway) for xway in expressways(con))
        con.execute(_SEEN.format(reports=reports or "SELECT 0 AS vid, 0 AS time, 0 AS xway LIMIT 0"))
        con.execute(_ASKED)
