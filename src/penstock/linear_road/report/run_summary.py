"""The summary of a finished run: a table of the five types, and a few lines on load, clock and validity."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.table import Table

from penstock.linear_road.report.validity import doubt
from penstock.linear_road.run.record import RunRecord
from penstock.linear_road.run.response_times import NAMES

_PERCENTILES: tuple[Literal["p50"], Literal["p95"], Literal["p99"], Literal["max"]] = (
    "p50",
    "p95",
    "p99",
    "max",
)


def show_run(record: RunRecord, out: Path) -> None:
    """The summary of a run."""
    table = Table(title=f"Linear Road run in {out}", title_justify="left")
    table.add_column("type")
    for name in ("answers", "late", "p50 s", "p95 s", "p99 s", "max s"):
        table.add_column(name, justify="right")
    for kind, name in enumerate(NAMES):
        # A run at maximum speed has no clock, so it has no response times.
        figures = record["latency"].get(str(kind))
        times = (None,) * 4 if figures is None else tuple(figures[key] for key in _PERCENTILES)
        cells = [_seconds(seconds) for seconds in times]
        late = "-" if figures is None else f"{figures['late']:,}"
        table.add_row(f"{kind} {name}", f"{record['answers'][str(kind)]:,}", late, *cells)
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    for line in _lines(record, out):
        console.print(line, highlight=False, soft_wrap=True)


def _lines(record: RunRecord, out: Path) -> Iterator[str]:
    rows, cost = record["input"]["rows"], record["cost"]
    size = "" if record["input"]["xways"] is None else f" at L = {record['input']['xways']:g}"
    yield (
        f"{rows:,} tuples{size}; {record['dead_letters']:,} refused; warm-up "
        f"{record['warm_up']['seconds']:.1f} s apart."
    )
    rates = record["rates"]
    used = f", {cost['cores']:.2f} cores, {cost['memory_mb']:,.0f} MB" if cost else ""
    yield f"{rates['tuples_in_per_s']:,.0f} tuples/s in, {rates['answers_per_s']:,.0f} answers/s out{used}."
    yield f"Clock: {record['clock']}."
    yield f"{out}/answers.csv, {out}/dead_letters.csv, {out}/run.json"
    if not record["finished"]:
        yield "Stopped; the same command goes on."
    elif (why := doubt(record)) is not None:
        yield f"NOT VALID. {why}"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
