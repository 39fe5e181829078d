"""The live view of a run: a progress bar, messages, and a table that changes while the run goes on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.progress import Progress
from rich.table import Table

from penstock.control.voice import warnings_said
from penstock.linear_road.run.live_answers import LiveAnswers
from penstock.linear_road.run.plan import RunPlan
from penstock.linear_road.run.record import RunRecord
from penstock.linear_road.run.response_times import LIMITS, NAMES
from penstock.process.stop_signal import StopSignal

if TYPE_CHECKING:
    from penstock.linear_road.run.progress import RunProgress
    from penstock.runtime import Runtime

_console = Console(stderr=True)


def run_with_live_view(
    plan: RunPlan,
    *,
    quiet: bool = False,
    beside: Callable[[Runtime], AbstractContextManager[object]] = nullcontext,
) -> RunRecord:
    """Run a plan under a live view and return its record; SIGINT and SIGTERM end it cleanly.

    `beside`: what is served while the network runs.
    """
    # Import Spark here, so that a wrong option is refused without waiting for it.
    from penstock.linear_road.run.runner import Watcher, run

    signals, view = StopSignal().on_signals(), LiveView(quiet=quiet)
    with signals as stop, view, warnings_said(view.say):
        watcher = Watcher(view.preparing, view.say, view.look, stop.take_signals, beside)
        return run(plan, stop=stop, watcher=watcher)


class LiveView(AbstractContextManager["LiveView"]):
    """The view on standard error: a bar while slices are cut, messages, then a table.

    It shows one at a time.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._is_shown = not quiet and _console.is_terminal
        self._bar: Progress | None = None
        self._live: Live | None = None
        self._answers = LiveAnswers()

    def preparing(self, done: int, total: int) -> None:
        if self._bar is None:
            self._bar = Progress(console=_console, disable=not self._is_shown)
            self._bar.add_task("preparing slices", total=total)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=done, total=total)
        if done >= total:
            self._bar.stop()

    def say(self, sentence: str) -> None:
        _console.print(sentence, markup=False, highlight=False)

    def look(self, progress: RunProgress) -> None:
        if not self._is_shown:
            return
        if self._live is None:
            self._live = Live(console=_console, refresh_per_second=4, transient=True)
            self._live.start()
        # Only a shown view reads answer files: a rating must not pay for it.
        self._answers.look(progress.new_files())
        self._live.update(live_table(progress, self._answers))

    def __exit__(self, *_: object) -> None:
        for shown in (self._bar, self._live):
            if shown is not None:
                shown.stop()


def live_table(progress: RunProgress, answers: LiveAnswers) -> Table:
    """The run now: time, rate, backlog; for each type its count and response time."""
    now = int(progress.now())
    end = progress.feed.end
    clock = f"{max(now, 0) // 60:3d}:{max(now, 0) % 60:02d} of {end // 60}:{end % 60:02d}"
    table = Table(title=f"Linear Road {clock}", title_justify="left", show_header=False)
    table.add_row("tuples", f"{progress.rows_in:,} in, {progress.rate:,.0f}/s; answers {progress.rows_out:,}")
    table.add_row("trains", f"{progress.trains:,}, the last took {progress.train_s:.2f} s")
    table.add_row("backlog", f"{progress.backlog():.1f} s")
    for kind, name in enumerate(NAMES):
        wait = answers.wait(kind)
        shown = (
            "" if wait is None else f"; p50 {wait[0]:.2f} s, max {wait[1]:.2f} s of {LIMITS[kind]} s allowed"
        )
        table.add_row(name, f"{progress.by_type[kind]:,}{shown}")
    table.add_row("accidents now", f"{progress.accidents:,}")
    table.add_row("tolls charged", f"{progress.charged:,} in {progress.charges:,} charges")
    return table
