"""Tables on the screen, and the quantile that all benchmarks use."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

_NARROWEST = 130


def quantile(values: Sequence[float], q: float) -> float:
    """The smallest value that at least this share of the values does not exceed.

    >>> quantile([3, 1, 2, 4], 0.5), quantile([3, 1, 2, 4], 0.99)
    (2, 4)
    """
    if not values:
        return float("nan")
    rank = math.ceil(q * len(values))
    return sorted(values)[min(len(values), max(1, rank)) - 1]


def show(title: str, rows: Sequence[Mapping[str, object]], note: str = "") -> None:
    """Print the rows as a table, with the columns of the first row."""
    table = Table(title=title, title_justify="left")
    for name in rows[0] if rows else ():
        table.add_column(name.replace("_", " "), justify="right" if _is_number(rows[0][name]) else "left")
    for row in rows:
        table.add_row(*(_text(row.get(name)) for name in rows[0]))
    console = Console(width=None if sys.stdout.isatty() else _NARROWEST)
    console.print(table)
    if note:
        console.print(note)


def _is_number(value: object) -> bool:
    return value is None or isinstance(value, int | float)


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
