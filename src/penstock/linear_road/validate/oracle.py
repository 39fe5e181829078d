"""The oracle: every right answer, computed from the whole input by SQL.

Idea: the definitions of docs/linear-road-semantics.md, each in the module of its topic, run in order: refused
rows, trips and statistics (an expressway at a time), accidents (over all), quotes, accounts, requests. The
oracle shares nothing with any pipeline and follows that page alone. For a large input the database is a file.
A run that was killed resumes after its last finished unit of work (`journal`).
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import duckdb

from penstock.linear_road.rows.inputs import Input
from penstock.linear_road.validate.journal import Journal
from penstock.linear_road.validate.refused import Refused
from penstock.linear_road.validate.rules import accidents, accounts, daily, statistics, tolls, travel, trips
from penstock.linear_road.validate.rules.history import open_history
from penstock.linear_road.validate.rules.roads import expressways, load, refused_rows
from penstock.store.durable import whole_file

MEMORY = "3500MB"
DATABASE = "oracle.duckdb"
ANSWERS: dict[int, str] = {
    0: "SELECT 0, vid, time, time, lav, toll FROM expected_0",
    1: "SELECT 1, time, time, vid, seg FROM expected_1",
    2: "SELECT 2, time, time, time, qid, bal FROM expected_2",
    3: "SELECT 3, time, time, qid, bal FROM expected_3",
    4: "SELECT 4, time, time, qid, travel, toll FROM expected_4",
}
"""The oracle's answers in the field order of the output, Emit = ResultTime = Time."""

Progress = Callable[[str, float], None]
"""Called with the step and the share of it that is done."""


@dataclass
class Oracle:
    """A database with the tables expected_0 .. expected_4 and everything they depend on."""

    con: duckdb.DuckDBPyConnection
    xways: list[int] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    refused_by_why: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    resumed: bool = False
    """Whether a killed run had already done some of the work."""

    def count(self, table: str) -> int:
        """How many rows a table has."""
        row = self.con.execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(row[0]) if row else 0

    @property
    def reports(self) -> int:
        """How many reports were accepted."""
        return sum(self.count(f"reports_{xway}") for xway in self.xways)


@contextmanager
def workspace(memory: str = MEMORY, directory: Path | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory that may spill to a temporary directory.

    With `directory`, a database there, which stays.
    """
    spill = Path(tempfile.mkdtemp(prefix="penstock-validate-", dir=directory))
    try:
        con = _connect(directory / DATABASE) if directory else duckdb.connect(":memory:")
        con.execute(f"SET memory_limit = '{memory}'")
        con.execute(f"SET temp_directory = '{spill}'")
        # Queries ask for an order where they need one. Without the default order DuckDB needs less memory.
        con.execute("SET preserve_insertion_order = false")
        con.execute("SET enable_progress_bar = false")
        with con:
            yield con
    finally:
        shutil.rmtree(spill, ignore_errors=True)


def _connect(file: Path) -> duckdb.DuckDBPyConnection:
    """Open the database that a run has left, or a new one if it cannot be read."""
    try:
        return duckdb.connect(file)
    except duckdb.Error:
        # The work directory is locked, so nobody else has the file open. What cannot be opened is damaged.
        for left in file.parent.glob(f"{file.name}*"):
            left.unlink()
        return duckdb.connect(file)


def consult(
    con: duckdb.DuckDBPyConnection,
    source: Input,
    history: Path | None,
    progress: Progress = lambda _step, _share: None,
) -> Oracle:
    """Compute every right answer to an input; what the database already holds is not computed again."""
    oracle, journal = Oracle(con), Journal(con)
    oracle.resumed = bool(journal.finished)
    # Also a unit: a kept database has these tables already, and would refuse to make them again.
    journal.once("history", lambda: open_history(con, history))
    for name, step in _steps(oracle, journal, source):
        progress(name, 0)
        start = time.perf_counter()
        step(partial(progress, name))
        oracle.seconds[name] = round(time.perf_counter() - start, 3)
    return oracle


_Tick = Callable[[float], None]
_OfExpressway = Callable[[duckdb.DuckDBPyConnection, int], None]


def _steps(oracle: Oracle, journal: Journal, source: Input) -> Iterator[tuple[str, Callable[[_Tick], None]]]:
    con = oracle.con

    def whole(name: str, step: Callable[[], None]) -> tuple[str, Callable[[_Tick], None]]:
        return name, lambda _tick: journal.once(name, step)

    def each(name: str, tables: str, step: _OfExpressway) -> tuple[str, Callable[[_Tick], None]]:
        return name, partial(_each, con, journal, name, tables, step)

    # Each step needs the tables of those before it. The lambdas run late on purpose: `oracle.xways` is known
    # only after the rows are loaded.
    yield "rows", partial(_load, oracle, journal, source)
    yield each("trips", trips.TABLES, trips.find_entries)
    yield each("statistics", statistics.TABLES, statistics.measure)
    yield whole("accidents", lambda: accidents.find_accidents(con, oracle.xways))
    yield whole("tolls and alerts", lambda: tolls.quote(con))
    yield whole("accounts", lambda: accounts.assess(con))
    yield whole("daily expenditure", lambda: daily.look_up_days(con))
    yield each("travel times", travel.TABLES, travel.travel)


def _load(oracle: Oracle, journal: Journal, source: Input, tick: _Tick) -> None:
    oracle.refused_by_why = load(oracle.con, source, journal, tick)
    oracle.refused = refused_rows(oracle.con)
    oracle.xways = expressways(oracle.con)


def _each(
    con: duckdb.DuckDBPyConnection,
    journal: Journal,
    name: str,
    tables: str,
    step: _OfExpressway,
    tick: _Tick,
) -> None:
    """Run a step one expressway at a time, each as a unit of its own."""
    journal.once(name, lambda: _run(con, tables))
    # A travel request may name an expressway that nobody reports from.
    xways = travel.asked_expressways(con) if name == "travel times" else expressways(con)
    for done, xway in enumerate(xways, start=1):
        journal.once(f"{name} {xway}", partial(step, con, xway))
        tick(done / len(xways))


def _run(con: duckdb.DuckDBPyConnection, statements: str) -> None:
    con.execute(statements)


def write_expected(oracle: Oracle, final: Path) -> None:
    """Write the oracle's own answers as one flat file, whole or not at all."""
    with whole_file(final) as path, path.open("wb") as out, tempfile.TemporaryDirectory() as directory:
        for kind, query in ANSWERS.items():
            # COPY cannot append, so each type goes through a file of its own.
            part = Path(directory) / f"{kind}.csv"
            oracle.con.execute(f"COPY ({query} ORDER BY ALL) TO '{part}' (FORMAT csv, HEADER false)")
            with part.open("rb") as answers:
                shutil.copyfileobj(answers, out)
            part.unlink()
