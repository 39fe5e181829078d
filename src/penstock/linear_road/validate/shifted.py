"""Answers to shifted copies, judged by shifting them back onto the original.

Idea: copy k of an input is the input with k times a fixed span added to VID, QID and XWay, so its right
answers are those of the original, shifted. The oracle computes the original once. The answers of each copy
are moved back and compared with it, one copy after the other. An answer that belongs to no copy is
unexpected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypedDict

import duckdb

from penstock.linear_road.rows.copies import Copies
from penstock.linear_road.rows.inputs import open_input
from penstock.linear_road.validate.answer_files import LAYOUT, LeftOut, read_answers
from penstock.linear_road.validate.comparison import TYPES, AnswerType, Result, compare
from penstock.linear_road.validate.judged import exact_throughout, inexact, restrict
from penstock.linear_road.validate.oracle import MEMORY, consult, workspace
from penstock.linear_road.validate.rules.roads import expressways

_SHOWN = 5
_NAMED = {0: "vid", 1: "vid", 2: "qid", 3: "qid", 4: "qid"}
"""The field of each answer type that tells the copy."""


class TypeFigures(TypedDict):
    """The counts of one answer type in JSON."""

    expected: int
    got: int
    wrong: int
    missing: int
    extra: int


class ShiftedFigures(TypedDict):
    """The verdict over all copies in JSON, counts by type."""

    copies: int
    wrong: int
    unreadable: int
    types: dict[str, TypeFigures]
    faults: list[str]


@dataclass
class TypeCounts:
    """The answers of one type, counted over all copies."""

    expected: int = 0
    got: int = 0
    wrong: int = 0
    missing: int = 0
    extra: int = 0

    def add(self, result: Result) -> None:
        self.expected += result.expected
        self.got += result.got
        self.wrong += result.wrong
        self.missing += result.missing
        self.extra += result.extra

    def as_json(self) -> TypeFigures:
        return {
            "expected": self.expected,
            "got": self.got,
            "wrong": self.wrong,
            "missing": self.missing,
            "extra": self.extra,
        }


@dataclass
class ShiftedVerdict:
    """The verdict over all copies, by type; `faults` holds the first few in words."""

    copies: int = 0
    unreadable: int = 0
    types: dict[int, TypeCounts] = field(default_factory=lambda: {kind: TypeCounts() for kind in LAYOUT})
    faults: list[str] = field(default_factory=list)
    late: int = 0
    """Late answers that were judged; counted only if some expressways were left out."""
    kept: list[int] = field(default_factory=list)
    """The expressways that were exact in all scored seconds, in copies without a wrong or late answer."""

    @property
    def wrong(self) -> int:
        """Answers that are wrong, missing, too many or unreadable."""
        return self.unreadable + sum(t.wrong + t.missing + t.extra for t in self.types.values())

    def as_json(self) -> ShiftedFigures:
        counts = {str(kind): of_type.as_json() for kind, of_type in self.types.items()}
        return {
            "copies": self.copies,
            "wrong": self.wrong,
            "unreadable": self.unreadable,
            "types": counts,
            "faults": self.faults,
        }


@dataclass(frozen=True)
class Overload:
    """A run under control: what it has left out, and the seconds that are scored."""

    left_out: Sequence[LeftOut]
    begin: int
    end: int


@dataclass(frozen=True)
class JudgedCopies:
    """Copies that are judged against the same original: its rows, and which copies of it were driven."""

    original: Path
    copies: range


def validate_copies(
    answers: Path,
    parts: list[JudgedCopies],
    shift: Copies,
    *,
    history: Path | None = None,
    memory: str = MEMORY,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    overload: Overload | None = None,
) -> ShiftedVerdict:
    """Check the answers to copies of one or more originals (whole ones, and a partial one).

    `overload`: judge only what a run that left expressways out has to answer, and count what it kept.
    """
    verdict = ShiftedVerdict()
    total = sum(len(part.copies) for part in parts)
    for number, part in enumerate(parts):
        with workspace(memory) as con:
            # The oracle answers the original once. Each copy's answers are shifted back and compared with it.
            consult(con, open_input(part.original), history)
            # Each part has its own database, so the answers of all copies are read again for each.
            read = read_answers(con, answers)
            _keep(con)
            # Unreadable lines and strays belong to no part, so they count once.
            if number == 0:
                verdict.unreadable += read.unreadable
                _strays(con, verdict, shift, [k for p in parts for k in p.copies])
            for k in part.copies:
                _unshift(con, shift, k)
                if overload is None:
                    _judge(con, verdict, k)
                else:
                    _judge_exact(con, verdict, k, shift, overload)
                progress(verdict.copies, total)
    return verdict


def _keep(con: duckdb.DuckDBPyConnection) -> None:
    """Set the answers of all copies aside."""
    for kind in LAYOUT:
        con.execute(f"ALTER TABLE got_{kind} RENAME TO all_{kind}")


def _copy_of(kind: int, shift: Copies) -> str:
    # Every number of the original is below the span, so a division tells the copy.
    span = shift.vid if _NAMED[kind] == "vid" else shift.qid
    # A single copy is not shifted and has no span.
    return f"{_NAMED[kind]} // {span}" if span else "0"


def _strays(
    con: duckdb.DuckDBPyConnection, verdict: ShiftedVerdict, shift: Copies, copies: list[int]
) -> None:
    """Answers that belong to none of the copies. Those just below 0 belong to copy 0, which expects none."""
    known = ", ".join(map(str, copies))
    for kind in LAYOUT:
        row = con.execute(
            f"SELECT count(*) FROM all_{kind} WHERE {_copy_of(kind, shift)} NOT IN ({known})"
        ).fetchone()
        strays = int(row[0]) if row else 0
        verdict.types[kind].extra += strays
        verdict.types[kind].got += strays


def _unshift(con: duckdb.DuckDBPyConnection, shift: Copies, k: int) -> None:
    """Turn the answers of copy k into answers to the original."""
    vid, qid, _ = shift.offsets(k)
    moved = {"vid": f"vid - {vid} AS vid", "qid": f"qid - {qid} AS qid"}
    for kind, fields in LAYOUT.items():
        columns = ", ".join(moved.get(name, name) for name in fields)
        con.execute(
            f"CREATE OR REPLACE TABLE got_{kind} AS SELECT {columns} FROM all_{kind} WHERE "
            f"{_copy_of(kind, shift)} = {k}"
        )


def _judge_exact(
    con: duckdb.DuckDBPyConnection, verdict: ShiftedVerdict, k: int, shift: Copies, overload: Overload
) -> None:
    """Judge what copy k has to answer, and note which of its expressways were kept."""
    roads, first = expressways(con), k * shift.xway
    spans = [
        replace(s, xway=s.xway - first) for s in inexact(overload.left_out) if s.xway - first in set(roads)
    ]
    restrict(con, spans)
    before = verdict.wrong
    _judge(con, verdict, k)
    late = sum(_late(con, answer, overload) for answer in TYPES)
    verdict.late += late
    if not late and verdict.wrong == before:
        kept = exact_throughout(roads, spans, overload.begin, overload.end)
        verdict.kept += [first + xway for xway in kept]


def _late(con: duckdb.DuckDBPyConnection, answer: AnswerType, overload: Overload) -> int:
    row = con.execute(
        f"SELECT count(*) FROM got_{answer.number} WHERE time >= {overload.begin} AND time < {overload.end} "
        f"AND emit - time::BIGINT * 1000 > {answer.limit * 1000}"
    ).fetchone()
    return int(row[0]) if row else 0


def _judge(con: duckdb.DuckDBPyConnection, verdict: ShiftedVerdict, k: int) -> None:
    con.execute("DROP TABLE IF EXISTS judged_2")
    verdict.copies += 1
    # Whether answers are late is the run's own count, which leaves out the warm-up.
    for result in compare(con, emits=True, limits=False):
        verdict.types[result.type.number].add(result)
        room = _SHOWN - len(verdict.faults)
        verdict.faults += [
            f"copy {k}, {result.type.name}: {fault.kind} {fault.key}, expected {fault.expected}, got "
            f"{fault.got}"
            for fault in result.faults[: max(0, room)]
        ]
