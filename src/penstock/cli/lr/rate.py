"""`penstock lr rate`: options in, a table that grows with each trial, `rating.json` and a page out.

Exit codes: 0 a rating above 0, 1 a trial failed to run or nothing passed, 2 bad options or files, 130
stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, TaskID
from rich.table import Table

from penstock.cli.refusals import FAILED, STOPPED, refusals, refuse
from penstock.cli.shared_options import IntervalOption, RecoveryOption
from penstock.linear_road import RatePlan, rate_machine
from penstock.linear_road.errors import RateError
from penstock.linear_road.rate.rating import RATING, Watcher
from penstock.linear_road.rate.search import SHARE
from penstock.linear_road.rows.inputs import known_delivery
from penstock.linear_road.run.plan import RECOVERY
from penstock.linear_road.run.rating_record import Rating, Trial
from penstock.linear_road.run.response_times import NAMES, ResponseFigures
from penstock.model.errors import refusal_text
from penstock.process.stop_signal import sigterm_as_ctrl_c

PAGE = "rating.html"
_console = Console(stderr=True)


def rate(
    out: Annotated[
        Path, typer.Option("--out", help="Gets rating.json; an interrupted rating there resumes.")
    ],
    mode: Annotated[
        str, typer.Option("--mode", help="peak: the busiest minutes; full: all three hours.")
    ] = "peak",
    minutes: Annotated[
        int, typer.Option("--minutes", help="Scored minutes of the confirming run (peak).")
    ] = 15,
    begin: Annotated[
        float | None, typer.Option("--from", help="The first L tried; 50, or --to if that is less.")
    ] = None,
    end: Annotated[float | None, typer.Option("--to", help="The largest L tried.")] = None,
    trial_minutes: Annotated[int, typer.Option("--trial-minutes", help="Scored minutes of a trial.")] = 3,
    warm_up: Annotated[
        int, typer.Option("--warm-up", help="Seconds before them that are checked but not timed.")
    ] = 120,
    base: Annotated[
        float | None,
        typer.Option(
            "--base",
            help="Expressways generated, 5 or --to if that is less; a larger L is shifted copies of them.",
        ),
    ] = None,
    traffic_minutes: Annotated[
        int, typer.Option("--traffic-minutes", help="Length of the generated traffic, 180 in the benchmark.")
    ] = 180,
    days: Annotated[int, typer.Option("--days", help="Days of history, 69 in the benchmark.")] = 69,
    seed: Annotated[int, typer.Option("--seed", help="Seed of traffic and history.")] = 1,
    prepared: Annotated[
        Path | None,
        typer.Option("--set", help="Where traffic, history and slices lie; several ratings may share it."),
    ] = None,
    master: Annotated[
        str | None, typer.Option("--master", help="Spark master URL; local with all cores if left out.")
    ] = None,
    form: Annotated[
        str, typer.Option("--format", help="How the driver delivers: packed columns, or text.")
    ] = "packed",
    speed: Annotated[
        float,
        typer.Option(
            "--speed",
            help="How many times faster than real time; the limits shrink with it.",
        ),
    ] = 1.0,
    search_step: Annotated[
        float,
        typer.Option("--step", help="How finely to search, as a share of L; at most 0.15, to bracket it."),
    ] = SHARE,
    recovery: RecoveryOption = RECOVERY,
    interval: IntervalOption = 0.0,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the answers of every trial.")] = False,
) -> None:
    """Find the largest L answered in real time, all correct and none late: double, bisect, confirm."""
    with refusals({RateError: FAILED}, files=out):
        plan = RatePlan(
            out,
            mode=mode,
            minutes=minutes,
            begin=_or_less(begin, 50, end),
            end=end,
            trial_minutes=trial_minutes,
            warm_up=warm_up,
            base=_or_less(base, 5, end),
            traffic_minutes=traffic_minutes,
            days=days,
            seed=seed,
            set=prepared,
            master=master,
            keep=keep,
            delivery=known_delivery(form),
            recovery=recovery,
            interval=interval,
            speed=speed,
            step=search_step,
        )
        result = _rated(plan)
    # Import drawing late: a wrong option should be refused before matplotlib loads.
    from penstock.linear_road.report import rating_page, write_page

    page = write_page(out / PAGE, rating_page(result))
    show(result, out)
    typer.echo(f"page with plots: {page}")
    raise typer.Exit(0 if result["rating"] else FAILED)


def _rated(plan: RatePlan) -> Rating:
    try:
        with sigterm_as_ctrl_c(), _watched() as watcher:
            return rate_machine(plan, watcher)
    except KeyboardInterrupt:
        hint = "the same command goes on with the trials made so far"
        refuse(refusal_text("stopped", hint=hint), STOPPED)


def _or_less(given: float | None, usual: float, most: float | None) -> float:
    """Return the given value or the default, but never more than the largest L."""
    if given is not None:
        return given
    return usual if most is None else min(usual, most)


@contextmanager
def _watched() -> Iterator[Watcher]:
    """Show a bar for the steps of the preparation and a line for each trial."""
    with Progress(console=_console, disable=not _console.is_terminal) as bars:
        tasks: dict[str, TaskID] = {}

        def step(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total)
            bars.update(tasks[name], completed=done, total=total)

        def say(sentence: str) -> None:
            _console.print(sentence, highlight=False)

        yield Watcher(step, say, lambda trial: _console.print(line(trial), highlight=False))


def line(trial: Trial) -> str:
    """Describe one trial in a line."""
    tolls = trial["latency"].get("0")
    p99, longest = (None, None) if tolls is None else (tolls["p99"], tolls["max"])
    times = f"tolls p99 {_seconds(p99)} s, max {_seconds(longest)} s"
    counts = f"{_count(trial['late'])} late, {_count(trial['wrong'])} wrong"
    return f"  L = {trial['L']:g}: {outcome(trial)}; {counts}, {times}"


def outcome(trial: Trial) -> str:
    """PASS, FAIL or VOID, with the reason if the figures do not show it."""
    if trial["void"]:
        return f"VOID ({trial['void']})"
    if trial.get("crashed"):
        return f"FAIL (crashed: {trial['crashed']})"
    if trial["gave_up_at"] is not None:
        return f"FAIL (given up at second {trial['gave_up_at']}: too far behind)"
    return "PASS" if trial["pass"] else "FAIL"


def table_of(result: Rating) -> Table:
    """List every trial: rates, response times by type as p50/p95/p99/max, late and wrong answers, cost."""
    table = Table(title=f"Linear Road, mode {result['mode']}: L = {result['rating']:g}", title_justify="left")
    for name in ("L", "min", "in/s", "out/s", *NAMES, "late", "wrong", "cores", "MB", "backlog s", ""):
        table.add_column(name, justify="right")
    for trial in result["trials"]:
        table.add_row(*_cells(trial))
    return table


def _cells(trial: Trial) -> list[str]:
    cost = trial["cost"]
    scored = (trial["seconds"][1] - trial["scored_from"]) / 60
    times = [_times(trial["latency"].get(str(kind))) for kind in range(len(NAMES))]
    rates, rest = ["-"] * 2, ["-"] * 3
    if cost:
        rates = [f"{cost['tuples_in_per_s']:,.0f}", f"{cost['tuples_out_per_s']:,.0f}"]
        rest = [f"{cost['cores']:.2f}", f"{cost['memory_mb']:,.0f}", f"{cost['backlog_s']:.1f}"]
    return [
        f"{trial['L']:g}",
        f"{scored:g}{' confirming' if trial['confirming'] else ''}",
        *rates,
        *times,
        _count(trial["late"]),
        _count(trial["wrong"]),
        *rest,
        outcome(trial),
    ]


def _times(figures: ResponseFigures | None) -> str:
    if figures is None:
        return "/".join("-" * 4)
    return "/".join(map(_seconds, (figures["p50"], figures["p95"], figures["p99"], figures["max"])))


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _count(value: int | None) -> str:
    return "not checked" if value is None else f"{value:,}"


def show(result: Rating, out: Path) -> None:
    """Show the table, what the figure does not say, and where the files are."""
    console = Console(width=None if sys.stdout.isatty() else 240)
    console.print(table_of(result))
    word = "confirmed" if result["confirmed"] else "NOT confirmed"
    console.print(
        f"L-rating {result['rating']:g} ({word}, {result['scored_minutes']:g} scored minutes)",
        highlight=False,
    )
    if result["next_wall"] is not None:
        why = "; ".join(result["next_wall"]["why"])
        console.print(f"L = {result['next_wall']['L']:g} failed: {why}", highlight=False, soft_wrap=True)
    for sentence in result["what_was_shortened"]:
        console.print(f"  - {sentence}", highlight=False, soft_wrap=True)
    console.print(f"{out / RATING}", highlight=False, soft_wrap=True)
