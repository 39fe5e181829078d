"""`penstock lr history`: the two history tables for the vehicles and expressways of an input."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from penstock.cli.refusals import refusals
from penstock.linear_road import HistoryPlan, generate_history
from penstock.linear_road.rows.progress import Progress as Report
from penstock.linear_road.traffic.history import HistoryManifest

_console = Console(stderr=True)


def history(
    source: Annotated[
        Path, typer.Option("--input", help="Generated DIR or flat FILE whose vehicles get a history.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Directory for TollHistory and SegmentHistory.")],
    days: Annotated[int, typer.Option(help="Days of history, 1..69.")] = 69,
    form: Annotated[str, typer.Option("--format", help="parquet or csv (no header).")] = "parquet",
    seed: Annotated[int, typer.Option(help="Same seed, same bytes.")] = 1,
    copies: Annotated[int, typer.Option(help="Shifted copies that share this history by reference.")] = 1,
    workers: Annotated[
        int | None, typer.Option(help="Processes; default: one a core. The bytes do not depend on it.")
    ] = None,
) -> None:
    """Write TollHistory and SegmentHistory for the vehicles and expressways of an input."""
    with refusals(files=out):
        plan = HistoryPlan(source, out, days, form, seed, copies)
        with bars(_console, "vehicles", "history") as (reading, writing):
            manifest = generate_history(plan, workers=workers, reading=reading, writing=writing)
    _console.print(_summary(out, manifest), highlight=False)


def _summary(out: Path, manifest: HistoryManifest) -> str:
    parts = [
        f"{name}: {manifest['rows'][name]:,} rows, {manifest['bytes'][name] / 1e6:,.1f} MB"
        for name in manifest["files"]
    ]
    shared = manifest["copies"]
    note = "" if shared is None else f" Shared by {shared['count']} shifted copies."
    skipped = manifest["skipped_rows"]
    dirt = f" {skipped:,} rows of the input break the format and were skipped." if skipped else ""
    return (
        f"{out}: "
        + "; ".join(parts)
        + f"; {sum(manifest['bytes'].values()) / 1e6:,.1f} MB in all.{note}{dirt}"
    )


@contextmanager
def bars(console: Console, *names: str) -> Iterator[tuple[Report, ...]]:
    """Show a progress bar for each step of a long command.

    Bars are drawn once a second, so that drawing never costs more than the work.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(
        *columns, console=console, refresh_per_second=1, transient=True, disable=not console.is_terminal
    ) as bar:
        yield tuple(_report(bar, name) for name in names)


def _report(bar: Progress, name: str) -> Report:
    task = bar.add_task(name, visible=False)

    def show(done: int, total: int) -> None:
        bar.update(task, completed=done, total=total, visible=True)

    return show
