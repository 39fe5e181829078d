"""The oracle: every right answer, worked out from the whole input by SQL.

Idea: the definitions of linear-road.md, each in the module of its topic, run in their order of need: rows refused, trips and
statistics (an expressway at a time), accidents (over all), quotes, accounts, requests. It shares nothing with
any pipeline: what it says is what the page says.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from penstock.linear_road.atomic import atomic_path
from penstock.linear_road.inputs import Input
from penstock.linear_road.validate import accidents, accounts, daily, statistics, tolls, travel, trips
from penstock.linear_road.validate.history import open_history
from penstock.linear_road.validate.lines import chunks
from penstock.linear_road.validate.refused import Refused
from penstock.linear_road.validate.roads import expressways, load

MEMORY = "3500MB"
KEPT_REFUSED = 100_000
ANSWERS: dict[int, str] = {
    0: "SELECT 0, vid, time, time, lav, toll FROM expected_0",
    1: "SELECT 1, time, time, vid, seg FROM expected_1",
    2: "SELECT 2, time, time, time, qid, bal FROM expected_2",
    3: "SELECT 3, time, time, qid, bal FROM expected_3",
    4: "SELECT 4, time, time, qid, travel, toll FROM expected_4",
}
"""The oracle's answers in the field order of the output, Emit = ResultTime = Time."""

Progress = Callable[[str], None]


@dataclass
class Oracle:
    """A database with the tables expected_0 .. expected_4 and all they rest on."""

    con: duckdb.DuckDBPyConnection
    xways: list[int] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    refused_by_why: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)

    def count(self, table: str) -> int:
        """How many rows a table has."""
        found = self.con.execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(found[0]) if found else 0

    @property
    def reports(self) -> int:
        """How many reports were accepted."""
        return sum(self.count(f"reports_{xway}") for xway in self.xways)


@contextmanager
def workspace(memory: str = MEMORY) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database that may spill into a temporary directory, removed at the end."""
    directory = Path(tempfile.mkdtemp(prefix="penstock-validate-"))
    try:
        con = duckdb.connect(":memory:")
        con.execute(f"SET memory_limit = '{memory}'")
        con.execute(f"SET temp_directory = '{directory}'")
        con.execute("SET preserve_insertion_order = false")
        con.execute("SET enable_progress_bar = false")
        with con:
            yield con
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def consult(
    con: duckdb.DuckDBPyConnection,
    source: Input,
    history: Path | None,
    progress: Progress = lambda _step: None,
) -> Oracle:
    """Work out every right answer to an input."""
    oracle = Oracle(con)
    open_history(con, history)
    for name, step in _steps(oracle, source):
        progress(name)
        start = time.perf_counter()
        step()
        oracle.seconds[name] = round(time.perf_counter() - start, 3)
    return oracle


def _steps(oracle: Oracle, source: Input) -> Iterator[tuple[str, Callable[[], None]]]:
    con = oracle.con
    yield "rows", lambda: _load(oracle, source)
    yield "trips", lambda: _each_expressway(oracle, trips.TABLES, trips.find_entries)
    yield "statistics", lambda: _each_expressway(oracle, statistics.TABLES, statistics.measure)
    yield "accidents", lambda: accidents.find_accidents(con, oracle.xways)
    yield "tolls and alerts", lambda: tolls.quote(con)
    yield "accounts", lambda: accounts.assess(con)
    yield "daily expenditure", lambda: daily.look_up_days(con)
    yield "travel times", lambda: travel.travel(con)


def _load(oracle: Oracle, source: Input) -> None:
    for refused in load(oracle.con, chunks(source)):
        oracle.refused_by_why.update(row.why for row in refused)
        oracle.refused += refused[: KEPT_REFUSED - len(oracle.refused)]
    oracle.xways = expressways(oracle.con)


def _each_expressway(
    oracle: Oracle, tables: str, step: Callable[[duckdb.DuckDBPyConnection, int], None]
) -> None:
    oracle.con.execute(tables)
    for xway in oracle.xways:
        step(oracle.con, xway)


def write_expected(oracle: Oracle, final: Path) -> None:
    """Write the oracle's own answers as one flat file, whole or not at all."""
    with atomic_path(final) as path, path.open("wb") as out, tempfile.TemporaryDirectory() as directory:
        for kind, query in ANSWERS.items():
            part = Path(directory) / f"{kind}.csv"
            oracle.con.execute(f"COPY ({query} ORDER BY ALL) TO '{part}' (FORMAT csv, HEADER false)")
            with part.open("rb") as answers:
                shutil.copyfileobj(answers, out)
            part.unlink()
