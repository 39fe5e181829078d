"""Answers to shifted copies, judged by shifting them back onto the original.

Idea: copy k of an input is the input with k times a fixed span added to VID, QID and XWay, so its right
answers are those of the original, shifted. The oracle computes the original once. One pass over the answers
takes the checksum of each copy (`digests`) and sets one copy aside, which is compared with the oracle row by
row. Copies with the same checksum have the same answers, so they share its verdict. The others are compared
row by row too, some hundred million answers at a time. An answer that belongs to no copy is unexpected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TypedDict

import duckdb
import numpy as np

from penstock.linear_road.rows.copies import Copies
from penstock.linear_road.rows.inputs import open_input
from penstock.linear_road.validate.answer_files import (
    LAYOUT,
    WIDTH,
    LeftOut,
    answer_files,
    insert_lines,
    make_tables,
)
from penstock.linear_road.validate.comparison import TYPES, AnswerType, Result, compare
from penstock.linear_road.validate.digests import NAMED, UNREADABLE, CopyDigests
from penstock.linear_road.validate.judged import Inexact, exact_throughout, inexact, restrict
from penstock.linear_road.validate.lines import blocks, read_thousandths
from penstock.linear_road.validate.oracle import MEMORY, consult, workspace
from penstock.linear_road.validate.rules.roads import expressways

_SHOWN = 5
_AT_ONCE = 200_000_000  # answers in the database at a time: some gigabytes


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

    def add_strays(self, digests: CopyDigests) -> None:
        """Answers that belong to none of the copies are too many."""
        for kind, strays in enumerate(digests.strays.tolist()):
            self.types[kind].extra += strays
            self.types[kind].got += strays

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
    scored = (0, 0) if overload is None else (overload.begin, overload.end)
    for number, part in enumerate(parts):
        with workspace(memory) as con:
            # The oracle answers the original once. Each copy's answers are shifted back and compared with it.
            consult(con, open_input(part.original), history)
            judge = _Judge(con, verdict, shift, overload)
            # Each part has its own database, so the answers of all copies are read again for each.
            example = judge.example(part.copies)
            digests = CopyDigests(shift, 1 + max(k for p in parts for k in p.copies), scored)
            unreadable = _read(con, answers, digests, {example})
            # Unreadable lines and strays belong to no part, so they count once.
            if number == 0:
                verdict.unreadable += unreadable
                verdict.add_strays(digests)
            results = judge.by_rows(example)
            progress(verdict.copies, total)
            others = []
            for k in part.copies:
                if k != example and judge.as_example(k, digests, example):
                    judge.alike(k, results, digests.late(k))
                    progress(verdict.copies, total)
                elif k != example:
                    others.append(k)
            for batch in _batches(others, digests):
                _read(con, answers, CopyDigests(shift, digests.copies), set(batch))
                for k in batch:
                    judge.by_rows(k)
                    progress(verdict.copies, total)
    return verdict


def _read(con: duckdb.DuckDBPyConnection, path: Path, digests: CopyDigests, wanted: set[int]) -> int:
    """Take the digests of all answers, and put those to the wanted copies into tables; unreadable lines."""
    make_tables(con, "all")
    unreadable, chosen = 0, np.array(sorted(wanted), np.int32)
    for file in answer_files(path):
        for block in blocks(file):
            values, counts, _ = read_thousandths(block, WIDTH)
            copies = digests.add(values, counts)
            unreadable += int(np.count_nonzero(copies == UNREADABLE))
            mine = np.isin(copies, chosen)
            if mine.any():
                insert_lines(con, "all", np.ascontiguousarray(values[:, mine]), counts[mine])
    return unreadable


def _batches(copies: Sequence[int], digests: CopyDigests) -> Iterator[list[int]]:
    """As many copies at a time as the database should hold."""
    batch: list[int] = []
    answers = 0
    for k in copies:
        count = sum(digests.of(k).counts)
        if batch and answers + count > _AT_ONCE:
            yield batch
            batch, answers = [], 0
        batch.append(k)
        answers += count
    if batch:
        yield batch


@dataclass
class _Judge:
    """Adds the verdict on one copy after the other; `con` has the oracle's answers to the original."""

    con: duckdb.DuckDBPyConnection
    verdict: ShiftedVerdict
    shift: Copies
    overload: Overload | None

    @cached_property
    def _spans(self) -> dict[int, list[Inexact]]:
        """By copy: when and where it was not exact, as expressways of the original."""
        spans: dict[int, list[Inexact]] = {}
        roads = set(expressways(self.con))
        for each in inexact(() if self.overload is None else self.overload.left_out):
            copy, xway = divmod(each.xway, self.shift.xway) if self.shift.xway else (0, each.xway)
            if xway in roads:
                spans.setdefault(copy, []).append(replace(each, xway=xway))
        return spans

    def spans(self, k: int) -> list[Inexact]:
        """When and where copy k was not exact."""
        return self._spans.get(k, [])

    def example(self, copies: Sequence[int]) -> int:
        """The copy to compare row by row first: one that has to answer everything, if there is one."""
        return next((k for k in copies if not self.spans(k)), copies[0])

    def as_example(self, k: int, digests: CopyDigests, example: int) -> bool:
        """Whether copy k has to give the same answers, and has given them."""
        same = digests.of(k) == digests.of(example) and not digests.of(k).early
        return same and not self.spans(k) and not self.spans(example)

    def alike(self, k: int, results: Sequence[Result], late: int) -> None:
        """Copy k has the answers of one that was compared."""
        before = self.verdict.wrong
        self.verdict.copies += 1
        for result in results:
            self.verdict.types[result.type.number].add(result)
        self._keep(k, self.spans(k), before, late)

    def by_rows(self, k: int) -> list[Result]:
        """Compare the answers of copy k, which are in the tables, with the oracle's."""
        _unshift(self.con, self.shift, k)
        spans, before, late = self.spans(k), self.verdict.wrong, 0
        if self.overload is not None:
            restrict(self.con, spans)
        results = _compared(self.con, self.verdict, k)
        if self.overload is not None:
            late = sum(_late(self.con, answer, self.overload) for answer in TYPES)
        self._keep(k, spans, before, late)
        return results

    def _keep(self, k: int, spans: Sequence[Inexact], wrong_before: int, late: int) -> None:
        """Note which expressways of a copy were kept under overload."""
        if self.overload is None:
            return
        self.verdict.late += late
        if not late and self.verdict.wrong == wrong_before:
            scored = self.overload.begin, self.overload.end
            kept = exact_throughout(expressways(self.con), spans, *scored)
            self.verdict.kept += [k * self.shift.xway + xway for xway in kept]


def _belongs(kind: int, shift: Copies, k: int) -> str:
    """The condition of an answer to copy k: a range, so that parts of a table can be skipped."""
    name = NAMED[kind]
    span = shift.vid if name == "vid" else shift.qid
    # A single copy is not shifted and has no span.
    return f"{name} >= {k * span} AND {name} < {(k + 1) * span}" if span else f"{k} = 0"


def _unshift(con: duckdb.DuckDBPyConnection, shift: Copies, k: int) -> None:
    """Turn the answers of copy k into answers to the original."""
    vid, qid, _ = shift.offsets(k)
    moved = {"vid": f"vid - {vid} AS vid", "qid": f"qid - {qid} AS qid"}
    for kind, fields in LAYOUT.items():
        columns = ", ".join(moved.get(name, name) for name in fields)
        con.execute(
            f"CREATE OR REPLACE TABLE got_{kind} AS SELECT {columns} FROM all_{kind} WHERE "
            f"{_belongs(kind, shift, k)}"
        )


def _late(con: duckdb.DuckDBPyConnection, answer: AnswerType, overload: Overload) -> int:
    row = con.execute(
        f"SELECT count(*) FROM got_{answer.number} WHERE time >= {overload.begin} AND time < {overload.end} "
        f"AND emit - time::BIGINT * 1000 > {answer.limit * 1000}"
    ).fetchone()
    return int(row[0]) if row else 0


def _compared(con: duckdb.DuckDBPyConnection, verdict: ShiftedVerdict, k: int) -> list[Result]:
    con.execute("DROP TABLE IF EXISTS judged_2")
    verdict.copies += 1
    # Whether answers are late is the run's own count, which leaves out the warm-up.
    results = compare(con, emits=True, limits=False)
    for result in results:
        verdict.types[result.type.number].add(result)
        room = _SHOWN - len(verdict.faults)
        verdict.faults += [
            f"copy {k}, {result.type.name}: {fault.kind} {fault.key}, expected {fault.expected}, got "
            f"{fault.got}"
            for fault in result.faults[: max(0, room)]
        ]
    return results
