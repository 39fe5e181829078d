"""The accepted rows as tables: one of reports for each expressway, one of requests.

Idea: everything except accounts and stopped vehicles concerns one expressway, so each gets its own table and
is processed alone. L expressways need the memory of one. Columns are as narrow as the format allows.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TypedDict, cast

import duckdb
import numpy as np
import pyarrow as pa

from penstock.linear_road.rows.arrays import Bools
from penstock.linear_road.rows.inputs import Input
from penstock.linear_road.validate.journal import Journal
from penstock.linear_road.validate.lines import Chunk, Position, chunks
from penstock.linear_road.validate.refused import Gate, GateMemory, Refused, as_table, sieve

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


REFUSED = "CREATE TABLE refused (n BIGINT, file VARCHAR, line INTEGER, why VARCHAR, raw VARCHAR)"

KEPT_REFUSED = 100_000
COMMIT_SECONDS = 5.0
"""How much work on rows a kill may cost."""

_UNIT = "rows"


class _LoadingState(TypedDict):
    """A `_Loading` in JSON."""

    position: list[int]
    gate: GateMemory
    refused: dict[str, int]
    whole: bool


@dataclass
class _Loading:
    """The progress of loading: where to continue, the gate's memory, and what was refused."""

    position: Position = field(default_factory=Position)
    gate: Gate = field(default_factory=Gate)
    refused: Counter[str] = field(default_factory=Counter)
    whole: bool = False

    @staticmethod
    def from_json(state: _LoadingState) -> _Loading:
        gate = Gate.from_json(state["gate"])
        return _Loading(Position(*state["position"]), gate, Counter(state["refused"]), state["whole"])

    def as_json(self) -> _LoadingState:
        return {
            "position": [self.position.file, self.position.offset, self.position.line],
            "gate": self.gate.as_json(),
            "refused": dict(self.refused),
            "whole": self.whole,
        }


def load(
    con: duckdb.DuckDBPyConnection,
    source: Input,
    journal: Journal,
    progress: Callable[[float], None] = lambda _share: None,
) -> Counter[str]:
    """Fill the tables chunk by chunk, committing now and then; returns counts of refused rows by reason."""
    done = _begin(con, journal)
    if done.whole:
        return done.refused
    sizes = np.cumsum([0, *(file.stat().st_size for file in source.files)])
    # Rows and the position behind them are committed together, so a killed validation goes on from there.
    journal.begin()
    committed = time.monotonic()
    for chunk, accepted, refused in sieve(con, chunks(source, done.position), done.gate):
        _add(con, chunk, accepted)
        _note_refused(con, done.refused.total(), refused)
        done.refused.update(row.why for row in refused)
        # `sieve` yields a chunk before it judges the next one, so the gate's memory ends at this position.
        done.position = chunk.following
        progress(float(sizes[done.position.file] / max(sizes[-1], 1)))
        if time.monotonic() - committed >= COMMIT_SECONDS:
            journal.commit(_UNIT, done.as_json())
            journal.begin()
            committed = time.monotonic()
    done.whole = True
    journal.commit(_UNIT, done.as_json())
    return done.refused


def _begin(con: duckdb.DuckDBPyConnection, journal: Journal) -> _Loading:
    if _UNIT in journal.finished:
        return _Loading.from_json(cast("_LoadingState", journal.finished[_UNIT]))
    journal.begin()
    con.execute(REQUESTS)
    con.execute(REFUSED)
    journal.commit(_UNIT, _Loading().as_json())
    return _Loading()


def _note_refused(con: duckdb.DuckDBPyConnection, before: int, refused: list[Refused]) -> None:
    # All refused rows are counted, but only the first are kept: in a wrong file every row may be refused.
    kept = refused[: max(0, KEPT_REFUSED - before)]
    if kept:
        rows = [{"n": n, **asdict(row)} for n, row in enumerate(kept, start=before)]
        con.register("kept", pa.Table.from_pylist(rows))
        con.execute("INSERT INTO refused SELECT n, file, line, why, raw FROM kept")
        con.unregister("kept")


def refused_rows(con: duckdb.DuckDBPyConnection) -> list[Refused]:
    """The first refused rows, in the order of the input."""
    rows = con.execute("SELECT file, line, why, raw FROM refused ORDER BY n").fetchall()
    return [Refused(*row) for row in rows]


def _add(con: duckdb.DuckDBPyConnection, chunk: Chunk, accepted: Bools) -> None:
    con.register("accepted", as_table(chunk, accepted=accepted))
    con.execute(ADD_REQUESTS)
    present = con.execute(
        "SELECT DISTINCT XWay FROM accepted WHERE accepted AND Type = 0 ORDER BY 1"
    ).fetchall()
    for (xway,) in present:
        # Nobody knows the expressways in advance: any chunk may bring a new one.
        con.execute(REPORTS.format(xway=xway))
        con.execute(ADD_REPORTS.format(xway=xway))
    con.unregister("accepted")


def expressways(con: duckdb.DuckDBPyConnection) -> list[int]:
    """The expressways that have reports."""
    # A table is made with its first report, so the tables are the list.
    names = con.execute(
        "SELECT table_name FROM duckdb_tables() WHERE table_name SIMILAR TO 'reports_[0-9]+'"
    ).fetchall()
    return sorted(int(name.removeprefix("reports_")) for (name,) in names)
