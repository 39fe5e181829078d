"""`penstock lr compare A.json B.json`: two ratings or two runs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from penstock.cli.refusals import refusals
from penstock.linear_road import compare_results
from penstock.linear_road.report.compare import Line, load


def compare(
    a: Annotated[Path, typer.Argument(metavar="A.json", help="rating.json or run.json.")],
    b: Annotated[Path, typer.Argument(metavar="B.json", help="Another one of the same kind.")],
) -> None:
    """Compare two ratings or two runs: each figure with its ratio B / A, and how their conditions differ."""
    with refusals():
        lines = compare_results(load(a), load(b))
    console = Console(width=None if Console().is_terminal else 140)
    console.print(_table(lines, a, b))
    differing = [line.what for line in lines if line.differs and line.what not in ("date", "started")]
    if differing:
        console.print(f"Not on the same ground: {', '.join(differing)}.", highlight=False)


def _table(lines: list[Line], a: Path, b: Path) -> Table:
    table = Table(title="A: " + str(a) + "\nB: " + str(b), title_justify="left")
    for name in ("", "A", "B", "B / A"):
        table.add_column(name, justify="left" if not name else "right")
    for line in lines:
        ratio = "differs" if line.differs else "" if line.ratio is None else f"{line.ratio:.3g}"
        table.add_row(line.what, _text(line.a), _text(line.b), ratio)
    return table


def _text(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
