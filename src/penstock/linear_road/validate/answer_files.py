"""The answers of a system under test: one flat file, or a directory of them.

Format: docs/linear-road-semantics.md, "Output". Idea: a line's type determines its fields. A line that is no
answer of any type is kept as unreadable and fails the run. Emit is held in whole milliseconds, so that limits
are compared exactly.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

import duckdb
import pyarrow as pa

from penstock.linear_road.errors import InputError
from penstock.linear_road.rows.arrays import Bytes, Int64s
from penstock.linear_road.validate.lines import blocks, read_thousandths

LAYOUT: dict[int, tuple[str, ...]] = {
    0: ("vid", "time", "emit", "lav", "toll"),
    1: ("time", "emit", "vid", "seg"),
    2: ("time", "emit", "result", "qid", "bal"),
    3: ("time", "emit", "qid", "bal"),
    4: ("time", "emit", "qid", "travel", "toll"),
}
"""The fields after the type, in the paper's order."""

WIDE = ("emit", "bal", "travel", "toll")
"""Fields that may exceed 32 bits."""

_SUFFIXES = (".csv", ".dat", ".txt", "")
WIDTH = 6
"""Fields of the longest line, its type included."""

_SHOWN = 100
RUN, ANSWERS = "run.json", "answers.csv"


class RunFacts(TypedDict, total=False):
    """What the validator reads of a run.json, whoever wrote it."""

    speed: object
    left_out: list[LeftOut]


class LeftOut(TypedDict):
    """Expressways that a run has left out: seconds begin..until-1 of them were not processed."""

    xways: list[int]
    begin: int
    until: int


@dataclass
class Answers:
    """What was read besides the tables got_0 .. got_4."""

    files: list[Path]
    unreadable: int = 0
    unreadable_rows: list[str] = field(default_factory=list)
    run: RunFacts = field(default_factory=RunFacts)

    @property
    def speed(self) -> float | None:
        """The speed-up of the run; None for a run at maximum speed, which has no clock."""
        speed = self.run.get("speed", 1)
        if isinstance(speed, int | float) and not isinstance(speed, bool) and 0 < speed < float("inf"):
            return float(speed)
        return None


def answer_files(path: Path) -> list[Path]:
    """The files of `--answers`.

    In a directory these are the files named .csv, .dat, .txt or without suffix, except hidden ones. If the
    directory is that of a run (with run.json), only its answers.csv counts.
    """
    if path.is_file():
        return [path]
    # `penstock lr run` leaves dead letters, plots and a checkpoint beside the answers.
    if (path / RUN).is_file() and (path / ANSWERS).is_file():
        return [path / ANSWERS]
    if not path.is_dir():
        raise InputError(f"answers {path} do not exist")
    files = sorted(file for file in path.rglob("*") if file.is_file() and _is_answer(file.relative_to(path)))
    if not files:
        raise InputError(f"answers {path} hold no file named .csv, .dat, .txt or without a suffix")
    return files


def _is_answer(file: Path) -> bool:
    # A leading dot or underscore marks notes, checkpoints and files that are still being written.
    return file.suffix in _SUFFIXES and not any(part.startswith((".", "_")) for part in file.parts)


def read_answers(con: duckdb.DuckDBPyConnection, path: Path) -> Answers:
    """Fill the tables got_0 .. got_4."""
    answers = Answers(answer_files(path), run=_run(path))
    make_tables(con, "got")
    for file in answers.files:
        for block in blocks(file):
            _add(con, answers, block)
    return answers


def make_tables(con: duckdb.DuckDBPyConnection, prefix: str) -> None:
    """An empty table for each type of answers."""
    for kind, fields in LAYOUT.items():
        columns = ", ".join(f"{name} {_sql_type(name)}" for name in fields)
        # Answers may differ from run to run, so they never stay in a kept database.
        con.execute(f"CREATE OR REPLACE TEMP TABLE {prefix}_{kind} ({columns})")


def _sql_type(name: str) -> str:
    return "BIGINT" if name in WIDE else "INTEGER"


def insert_lines(con: duckdb.DuckDBPyConnection, prefix: str, values: Int64s, counts: Bytes) -> None:
    """Put the lines that are answers into the tables of their types."""
    columns = {f"f{i}": pa.array(values[i]) for i in range(WIDTH)}
    con.register("lines", pa.table({**columns, "n": pa.array(counts)}))
    for kind in LAYOUT:
        con.execute(f"INSERT INTO {prefix}_{kind} SELECT {_fields(kind)} FROM lines WHERE {_fits(kind)}")
    con.unregister("lines")


def _add(con: duckdb.DuckDBPyConnection, answers: Answers, block: bytes) -> None:
    values, counts, starts = read_thousandths(block, WIDTH)
    insert_lines(con, "got", values, counts)
    columns = {f"f{i}": pa.array(values[i]) for i in range(WIDTH)}
    fitting = " OR ".join(f"({_fits(kind)})" for kind in LAYOUT)
    con.register(
        "numbered", pa.table({"n": pa.array(counts), **columns, "line": pa.array(range(len(counts)))})
    )
    bad = con.execute(
        f"SELECT line FROM numbered WHERE NOT coalesce({fitting}, false) ORDER BY line"
    ).fetchall()
    con.unregister("numbered")
    answers.unreadable += len(bad)
    room = _SHOWN - len(answers.unreadable_rows)
    answers.unreadable_rows += [_text(block, starts, line) for (line,) in bad[:room]]


def _text(block: bytes, starts: Int64s, line: int) -> str:
    return block[starts[line] : starts[line + 1]].decode("utf-8", "replace").rstrip("\r\n")


def _fields(kind: int) -> str:
    named = enumerate(LAYOUT[kind], start=1)
    return ", ".join(f"f{i}" if name == "emit" else f"f{i} // 1000" for i, name in named)


def _fits(kind: int) -> str:
    """The condition for a line to be an answer of this type: its number of fields, all but Emit whole."""
    # Fields beyond a line's own count were never written and hold anything, so `n` is part of each condition.
    fields = LAYOUT[kind]
    whole = [f"f{i} % 1000 = 0" for i, name in enumerate(fields, start=1) if name != "emit"]
    # INSERT raises on a number that does not fit its column. Such a line must count as unreadable instead.
    narrow = [f"abs(f{i}) < {1000 << 31}" for i, name in enumerate(fields, start=1) if name not in WIDE]
    return " AND ".join([f"n = {len(fields) + 1}", f"f0 = {kind * 1000}", *whole, *narrow])


def _run(path: Path) -> RunFacts:
    file = (path if path.is_dir() else path.parent) / RUN
    if not file.is_file():
        return {}
    try:
        run: RunFacts = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"the run description {file} cannot be read: {error}") from error
    if not isinstance(run, dict):
        raise InputError(f"the run description {file} is no JSON object")
    return run
