"""`penstock lr run`: options in, a live view while it runs, a summary and the three files out.

Exit codes: 0 done, 1 the run failed, 2 bad options or files, 3 done but not valid (the driver fell behind),
130 stopped.
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.console.options import (
    PORT,
    AllowHostOption,
    ConsoleOptions,
    HostOption,
    OpenOption,
    PortOption,
    ReadTokenOption,
    TokenOption,
)
from penstock.cli.console.run_server import console_beside
from penstock.cli.refusals import BAD_INPUT, FAILED, NOT_VALID, STOPPED, refusals
from penstock.cli.shared_options import Durability, HeadroomOption, IntervalOption, QosOption, RecoveryOption
from penstock.linear_road import RunPlan
from penstock.linear_road.errors import InputError, RunStopped
from penstock.linear_road.report.live_view import run_with_live_view
from penstock.linear_road.report.run_summary import show_run
from penstock.linear_road.rows.inputs import known_delivery
from penstock.linear_road.run.plan import RECOVERY
from penstock.linear_road.run.record import RunRecord
from penstock.model.errors import PenstockError
from penstock.store.durable import known_durability


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
        float | None, typer.Option("--xways", help="Deliver this many expressways of prepared slices.")
    ] = None,
    begin: Annotated[int | None, typer.Option("--from", help="First second driven.")] = None,
    end: Annotated[int | None, typer.Option("--until", help="Second before which to stop.")] = None,
    scored_from: Annotated[
        int | None, typer.Option("--scored-from", help="Answers to earlier seconds are warm-up.")
    ] = None,
    most_behind: Annotated[
        float | None, typer.Option("--most-behind", help="Give up when this many seconds behind.")
    ] = None,
    take_over: Annotated[
        bool,
        typer.Option("--take-over", help="Take over the run from a process that still uses it."),
    ] = False,
    form: Annotated[
        str,
        typer.Option("--format", help="How the driver delivers: packed columns, or text."),
    ] = "packed",
    durability: Durability = "process",
    recovery: RecoveryOption = RECOVERY,
    interval: IntervalOption = 0.0,
    qos: QosOption = False,
    headroom: HeadroomOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No live view, only the summary.")] = False,
    console: Annotated[
        bool, typer.Option("--console", help="Show the run in a browser: the road, its answers, a vehicle.")
    ] = False,
    port: PortOption = PORT,
    open_: OpenOption = False,
    host: HostOption = "127.0.0.1",
    token: TokenOption = None,
    read_token: ReadTokenOption = None,
    allow_host: AllowHostOption = None,
) -> None:
    """Run Linear Road: drive an input, answer all five types on Spark. Ctrl-C stops.

    The same command resumes. With --qos, whole groups of expressways are left out under overload, so that
    the others are answered in time; run.json names them.
    """
    codes = {InputError: BAD_INPUT, RunStopped: STOPPED, PenstockError: FAILED}
    with refusals(codes, files=out):
        if max_speed and speed != 1.0:
            raise InputError("--speed and --max-speed contradict each other", hint="give one of them")
        plan = RunPlan(
            source,
            out,
            history=history,
            speed=float("inf") if max_speed else speed,
            master=master,
            checkpoint=checkpoint,
            expressways=xways,
            begin=begin,
            end=end,
            scored_from=scored_from,
            most_behind=most_behind,
            take_over=take_over,
            durability=known_durability(durability),
            delivery=known_delivery(form),
            recovery=recovery,
            interval=interval,
            qos=qos,
            headroom=headroom,
        )
        options = ConsoleOptions(port, host, open_, token or (), read_token or (), allow_host or ())
        beside = console_beside(options) if console else nullcontext
        record = run_with_live_view(plan, quiet=quiet, beside=beside)
    show_run(record, out)
    leave(record)


def leave(record: RunRecord) -> None:
    """Exit with the code that fits the outcome."""
    if not record["finished"]:
        raise typer.Exit(STOPPED)
    if record["driver"].get("late_seconds"):
        raise typer.Exit(NOT_VALID)
