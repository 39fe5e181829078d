"""The verdict for people and for programs: one table, the first faults of each kind, JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypedDict

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from penstock.linear_road.validate.answer_files import Answers
from penstock.linear_road.validate.comparison import Fault, Result
from penstock.linear_road.validate.oracle import Oracle
from penstock.linear_road.validate.refused import Refused

_REFUSED_SHOWN = 10


class ResultFigures(TypedDict):
    """The verdict on one type, in JSON."""

    name: str
    expected: int
    got: int
    right: int
    wrong: int
    missing: int
    extra: int
    late: int | None
    limit: int
    response: dict[str, float]
    kinds: dict[str, int]
    passed: bool
    faults: list[dict[str, object]]


class VerdictFigures(TypedDict):
    """A verdict in JSON."""

    passed: bool
    input: str
    reports: int
    expected: dict[str, int]
    refused: dict[str, object]
    response_times: str
    speed: float | None
    left_out: int
    types: dict[str, ResultFigures]
    unreadable: dict[str, object]
    why: list[str]
    resumed: bool
    seconds: dict[str, float]


@dataclass
class Verdict:
    """All that a validation found; `results` is empty if there were no answers to compare."""

    input: Path
    reports: int
    expected: dict[int, int]
    refused: list[Refused]
    refused_by_why: dict[str, int]
    seconds: dict[str, float]
    results: list[Result] = field(default_factory=list)
    unreadable: int = 0
    unreadable_rows: list[str] = field(default_factory=list)
    speed: float | None = 1.0
    response_times: str = "checked"
    why: list[str] = field(default_factory=list)
    left_out: int = 0
    """How many expressways were left out at some time, so that not all of their answers are judged."""
    resumed: bool = False
    """Whether the oracle resumed the work of a killed run."""

    @property
    def passed(self) -> bool:
        """Whether every check held."""
        return not self.unreadable and all(result.passed for result in self.results)

    def as_json(self) -> VerdictFigures:
        """The whole verdict as plain values."""
        return {
            "passed": self.passed,
            "input": str(self.input),
            "reports": self.reports,
            "expected": {str(kind): count for kind, count in self.expected.items()},
            "refused": {
                "count": sum(self.refused_by_why.values()),
                "by_why": self.refused_by_why,
                "rows": [asdict(row) for row in self.refused],
            },
            "response_times": self.response_times,
            "speed": self.speed,
            "left_out": self.left_out,
            "types": {str(result.type.number): _result_json(result) for result in self.results},
            "unreadable": {"count": self.unreadable, "rows": self.unreadable_rows},
            "why": self.why,
            "resumed": self.resumed,
            "seconds": self.seconds,
        }


def new_verdict(path: Path, oracle: Oracle) -> Verdict:
    """A verdict that knows only the oracle's side so far."""
    return Verdict(
        input=path,
        reports=oracle.reports,
        expected={kind: oracle.count(f"expected_{kind}") for kind in range(5)},
        refused=list(oracle.refused),
        refused_by_why=dict(oracle.refused_by_why.most_common()),
        seconds=dict(oracle.seconds),
        resumed=oracle.resumed,
    )


def add_answers(verdict: Verdict, answers: Answers) -> None:
    """Record what the answer files contained besides answers."""
    verdict.unreadable, verdict.unreadable_rows = answers.unreadable, answers.unreadable_rows
    verdict.speed = answers.speed


def _result_json(result: Result) -> ResultFigures:
    return {
        "name": result.type.name,
        "expected": result.expected,
        "got": result.got,
        "right": result.right,
        "wrong": result.wrong,
        "missing": result.missing,
        "extra": result.extra,
        "late": result.late,
        "limit": result.type.limit,
        "response": result.response,
        "kinds": result.kinds,
        "passed": result.passed,
        "faults": [asdict(fault) for fault in result.faults],
    }


def show(verdict: Verdict, console: Console) -> None:
    """Print the verdict."""
    for part in _parts(verdict):
        console.print(part)


def _parts(verdict: Verdict) -> Iterator[RenderableType]:
    yield from _refused(verdict)
    if verdict.results:
        yield _table(verdict)
        yield Text(_clock(verdict))
        if verdict.left_out:
            yield Text(
                f"{verdict.left_out:,} expressways were left out at some time. Of these only what is exact "
                "is judged; balances only of vehicles that were never seen on one while it was not exact."
            )
        yield from _faults(verdict)
    else:
        counts = ", ".join(f"{count:,} of type {kind}" for kind, count in verdict.expected.items())
        yield Text(f"{verdict.reports:,} reports; right answers: {counts}.")
    if verdict.why:
        yield Text("\n".join(["", "Why:", *verdict.why]))


def _refused(verdict: Verdict) -> Iterator[RenderableType]:
    if not verdict.refused_by_why:
        return
    counts = ", ".join(f"{count:,} {why}" for why, count in verdict.refused_by_why.items())
    yield Text(f"Input rows refused: {counts}.")
    for row in verdict.refused[:_REFUSED_SHOWN]:
        yield Text(f"  {row.file}:{row.line}: {row.why}: {row.raw[:100]}")
    if len(verdict.refused) > _REFUSED_SHOWN:
        yield Text("  ...")


def _table(verdict: Verdict) -> Table:
    table = Table(title=f"Linear Road answers to {verdict.input}")
    table.add_column("type")
    for name in (
        "expected",
        "got",
        "right",
        "wrong",
        "missing",
        "extra",
        "late",
        "p50 s",
        "p95 s",
        "p99 s",
        "max s",
    ):
        table.add_column(name, justify="right")
    table.add_column("")
    for result in verdict.results:
        table.add_row(*_cells(result), _mark(passed=result.passed))
    if verdict.unreadable:
        blanks = [""] * 9
        table.add_row("unreadable", "0", f"{verdict.unreadable:,}", *blanks, _mark(passed=False))
    return table


def _cells(result: Result) -> list[str]:
    counts = (result.expected, result.got, result.right, result.wrong, result.missing, result.extra)
    late = "-" if result.late is None else f"{result.late:,}"
    times = [
        f"{result.response[name]:.3f}" if result.response else "-" for name in ("p50", "p95", "p99", "max")
    ]
    return [f"{result.type.number} {result.type.name}", *(f"{count:,}" for count in counts), late, *times]


def _mark(*, passed: bool) -> Text:
    return Text("PASS", style="bold green") if passed else Text("FAIL", style="bold red")


def _clock(verdict: Verdict) -> str:
    speed = "maximum speed" if verdict.speed is None else f"speed {verdict.speed:g}"
    outcome = "All answers hold." if verdict.passed else "The answers do NOT hold."
    return (
        f"{outcome} {verdict.reports:,} reports; response times {verdict.response_times} ({speed}, seconds "
        "of the run's clock)."
    )


def _faults(verdict: Verdict) -> Iterator[RenderableType]:
    for result in verdict.results:
        for kind, count in result.kinds.items():
            shown = [fault for fault in result.faults if fault.kind == kind]
            head = Text(f"\n{result.type.name}: {count:,} {kind}", style="bold")
            yield Group(head, *(Text(_fault(fault)) for fault in shown))
    for row in verdict.unreadable_rows[:_REFUSED_SHOWN]:
        yield Text(f"unreadable answer: {row[:120]}")


def _fault(fault: Fault) -> str:
    key = " ".join(f"{name} {value}" for name, value in fault.key.items())
    sides = [
        f"{side} {_values(values)}"
        for side, values in (("expected", fault.expected), ("got", fault.got))
        if values
    ]
    return "\n".join([f"  {key}: {'; '.join(sides)}", *(f"      {line}" for line in fault.working)])


def _values(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())
