"""`penstock lr run`: options in, a live view while it runs, a summary and the three files out.

Exit codes: 0 done, 1 the run failed, 2 bad options or files, 3 done but not valid (the driver fell behind), 130 stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.progress import Progress
from rich.table import Table

from penstock.cli.refusals import BAD_INPUT, FAILED, NOT_VALID, STOPPED, refusals, refuse
from penstock.linear_road.errors import InputError, RunStopped
from penstock.linear_road.run.live_answers import Glance
from penstock.linear_road.run.output_folder import RunPlan
from penstock.linear_road.run.response_times import LIMITS, NAMES
from penstock.model.errors import PenstockError
from penstock.process.child_process import end_group_at_once, when_parent_is_gone
from penstock.process.stop_signal import StopSignal

if TYPE_CHECKING:
    from penstock.linear_road.run.progress import Pulse

_console = Console(stderr=True)


def run(
    source: Annotated[
        Path,
        typer.Option(
            "--input", help="Generated DIR, flat FILE (or DIR with one), or DIR of prepared slices."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Gets answers.csv, dead_letters.csv and run.json.")],
    history: Annotated[
        Path | None, typer.Option("--history", help="DIR with TollHistory and SegmentHistory.")
    ] = None,
    speed: Annotated[float, typer.Option("--speed", help="How many times faster than real time.")] = 1.0,
    max_speed: Annotated[
        bool, typer.Option("--max-speed", help="As fast as it can be processed; no clock, Emit = Time.")
    ] = False,
    master: Annotated[
        str | None, typer.Option("--master", help="Spark master URL; local with all cores if left out.")
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option("--checkpoint", help="Where state lives; under --out if left out.")
    ] = None,
    xways: Annotated[
        float | None, typer.Option("--xways", help="Deliver copies of prepared slices: so many expressways.")
    ] = None,
    begin: Annotated[int | None, typer.Option("--from", help="First second driven.")] = None,
    end: Annotated[int | None, typer.Option("--until", help="Second before which to stop.")] = None,
    scored_from: Annotated[
        int | None, typer.Option("--scored-from", help="Answers to earlier seconds are warm-up.")
    ] = None,
    most_behind: Annotated[
        float | None, typer.Option("--most-behind", help="Give up when so many seconds behind.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No live view, only the summary.")] = False,
    with_parent: Annotated[bool, typer.Option("--end-with-parent", hidden=True)] = False,
) -> None:
    """Run Linear Road: drive an input, answer all five types on Spark. Ctrl-C stops cleanly; the same command goes on."""
    if with_parent:
        when_parent_is_gone(end_group_at_once)
    if max_speed and speed != 1.0:
        refuse("--speed and --max-speed contradict each other; give one of them.")
    codes = {InputError: BAD_INPUT, RunStopped: STOPPED, PenstockError: FAILED}
    with refusals(codes, files=out):
        plan = RunPlan(
            source, out, history, float("inf") if max_speed else speed, master, checkpoint, xways, begin, end, scored_from,
            most_behind,
        )  # fmt: skip
        record = follow(plan, quiet=quiet)
    show(record, out)
    leave(record)


def follow(plan: RunPlan, *, quiet: bool = False) -> dict[str, Any]:
    """Run a plan under a live view; SIGINT and SIGTERM end it cleanly."""
    # Spark is imported here: a wrong option is told without waiting for it.
    from penstock.linear_road.run import whole_run as running

    with StopSignal().on_signals() as stop, _Screen(quiet=quiet) as screen:
        watcher = running.Watcher(screen.preparing, screen.say, screen.look, stop.take_signals)
        return running.run(plan, stop=stop, watcher=watcher)


class _Screen(AbstractContextManager["_Screen"]):
    """What people see on standard error: a bar while slices are cut, sentences, and the live view; one at a time."""

    def __init__(self, *, quiet: bool) -> None:
        self._watched = not quiet and _console.is_terminal
        self._bar: Progress | None = None
        self._live: Live | None = None
        self._glance = Glance()

    def preparing(self, done: int, total: int) -> None:
        if self._bar is None:
            self._bar = Progress(console=_console, disable=not self._watched)
            self._bar.add_task("preparing slices", total=total)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=done, total=total)
        if done >= total:
            self._bar.stop()

    def say(self, sentence: str) -> None:
        _console.print(sentence, highlight=False)

    def look(self, pulse: Pulse) -> None:
        if not self._watched:
            return
        if self._live is None:
            self._live = Live(console=_console, refresh_per_second=4, transient=True)
            self._live.start()
        self._glance.look(pulse.new_files())
        self._live.update(view(pulse, self._glance))

    def __exit__(self, *_: object) -> None:
        for shown in (self._bar, self._live):
            if shown is not None:
                shown.stop()


def view(pulse: Pulse, glance: Glance) -> Table:
    """The run at this moment: time, rate, backlog, and each type with its count and how long it waits."""
    now = int(pulse.now())
    clock = (
        f"{max(now, 0) // 60:3d}:{max(now, 0) % 60:02d} of {pulse.feed.end // 60}:{pulse.feed.end % 60:02d}"
    )
    table = Table(title=f"Linear Road {clock}", title_justify="left", show_header=False)
    table.add_row("tuples", f"{pulse.rows_in:,} in, {pulse.rate:,.0f}/s; answers {pulse.rows_out:,}")
    table.add_row("trains", f"{pulse.trains:,}, the last took {pulse.train_s:.2f} s")
    table.add_row("backlog", f"{pulse.backlog():.1f} s")
    for kind, name in enumerate(NAMES):
        wait = glance.wait(kind)
        shown = (
            "" if wait is None else f"; p50 {wait[0]:.2f} s, max {wait[1]:.2f} s of {LIMITS[kind]} s allowed"
        )
        table.add_row(name, f"{pulse.by_type[kind]:,}{shown}")
    table.add_row(
        "accidents now", f"{glance.accidents(pulse.now())} segments named in alerts of the last minute"
    )
    table.add_row("tolls charged", f"{pulse.charged:,} in {pulse.charges:,} charges")
    return table


def show(record: dict[str, Any], out: Path) -> None:
    """The summary of a run."""
    table = Table(title=f"Linear Road run in {out}", title_justify="left")
    table.add_column("type")
    for name in ("answers", "late", "p50 s", "p95 s", "p99 s", "max s"):
        table.add_column(name, justify="right")
    for kind, name in enumerate(NAMES):
        figures = record["latency"].get(str(kind), {})
        cells = [_seconds(figures.get(key)) for key in ("p50", "p95", "p99", "max")]
        late = f"{figures['late']:,}" if figures else "-"
        table.add_row(f"{kind} {name}", f"{record['answers'][str(kind)]:,}", late, *cells)
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    for line in _lines(record, out):
        console.print(line, highlight=False, soft_wrap=True)


def _lines(record: dict[str, Any], out: Path) -> Iterator[str]:
    rows, cost = record["input"]["rows"], record["cost"]
    size = "" if record["input"]["xways"] is None else f" at L = {record['input']['xways']:g}"
    yield f"{rows:,} tuples{size}; {record['dead_letters']:,} refused; warm-up {record['warm_up']['seconds']:.1f} s apart."
    rates = record["rates"]
    used = f", {cost['cores']:.2f} cores, {cost['memory_mb']:,.0f} MB" if cost else ""
    yield f"{rates['tuples_in_per_s']:,.0f} tuples/s in, {rates['answers_per_s']:,.0f} answers/s out{used}."
    yield f"Clock: {record['clock']}."
    yield f"{out}/answers.csv, {out}/dead_letters.csv, {out}/run.json"
    if not record["finished"]:
        yield "Stopped; the same command goes on."
    elif record["driver"].get("late_seconds"):
        yield "NOT VALID: the driver fell behind, so the response times are worth nothing (run.json, `driver`)."
    elif not record["valid"]:
        yield "The run was killed on the way: its answers hold, its response times tell of the kill (run.json, `attempts`)."


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def leave(record: dict[str, Any]) -> None:
    """End with the exit code that fits."""
    if not record["finished"]:
        raise typer.Exit(STOPPED)
    if record["driver"].get("late_seconds"):
        raise typer.Exit(NOT_VALID)
