"""`penstock lr drive` (`history` has its own module): options in, one report out.

Standard output may carry the rows, so all messages go to standard error. Exit codes: 0 valid, 2 bad options
or files, 3 the run is not valid (it fell behind or lost its target), 130 stopped.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table

from penstock.cli.lr.history import bars, history
from penstock.cli.refusals import NOT_VALID, STOPPED, refusals
from penstock.linear_road import DrivePlan, drive_input
from penstock.linear_road.drive.clock import MAXIMUM
from penstock.linear_road.drive.drive_report import DriveReport
from penstock.linear_road.drive.driver import MOST_LATE, prepare_for
from penstock.linear_road.drive.slices import Slices
from penstock.linear_road.errors import InputError
from penstock.store.durable import write_text

__all__ = ["drive", "history"]

_console = Console(stderr=True)


def drive(
    source: Annotated[
        Path, typer.Option("--input", help="Generated DIR, flat FILE, or DIR of prepared slices.")
    ],
    to: Annotated[
        str | None, typer.Option("--to", help="Directory, tcp://HOST:PORT, or - for stdout.")
    ] = None,
    speed: Annotated[str, typer.Option(help="How many times faster than real time; max: no clock.")] = "1",
    begin: Annotated[int | None, typer.Option("--from", help="First second driven.")] = None,
    end: Annotated[int | None, typer.Option("--until", help="Second before which to stop.")] = None,
    lenient: Annotated[bool, typer.Option("--lenient", help="Pass on rows that break the format.")] = False,
    prepare: Annotated[
        Path | None, typer.Option("--prepare", help="Write time slices to DIR; drive them if --to is given.")
    ] = None,
    groups: Annotated[
        int | None, typer.Option(help="Groups of expressways: one file a second and group.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", help="text (csv); or, for directories, packed columns or parquet."),
    ] = None,
    copies: Annotated[int | None, typer.Option(help="Deliver N shifted copies of the input.")] = None,
    xways: Annotated[float | None, typer.Option(help="The same, by the total number of expressways.")] = None,
    clock: Annotated[Path | None, typer.Option(help="Also write the clock to FILE.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume an interrupted drive to a directory.")
    ] = False,
    most_late: Annotated[
        float, typer.Option(help="Seconds (of the clock) late that make a run invalid.")
    ] = MOST_LATE,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the report to FILE.")] = None,
) -> None:
    """Deliver each tuple at its time on one clock: start + (t - T0) / speed."""
    with refusals(files=prepare or to):
        _check_json(json_file)
        plan = DrivePlan(
            source,
            to=to or "-",
            speed=_speed(speed),
            begin=begin,
            end=end,
            lenient=lenient,
            groups=groups,
            format=_form(form),
            delivery="packed" if form == "packed" else "text",
            copies=copies,
            expressways=xways,
            clock_file=clock,
            resume=resume,
            most_late=most_late,
        )
        report = _drive(plan, prepare, to)
    if report is None:
        return
    _show(report)
    if json_file is not None:
        with refusals(files=json_file):
            write_text(json_file, json.dumps(report.as_json(), indent=2) + "\n")
    _leave(report)


def _check_json(file: Path | None) -> None:
    """Check before the drive that the report can be written after it."""
    if file is not None and (file.is_dir() or not file.parent.is_dir()):
        what = "it is a directory" if file.is_dir() else f"there is no directory {file.parent}"
        raise InputError(f"--json {file} cannot be written: {what}")


def _drive(plan: DrivePlan, prepare: Path | None, to: str | None) -> DriveReport | None:
    if prepare is None and to is None:
        raise InputError("nothing to do", hint="give --to TARGET, --prepare DIR, or both")
    if prepare is not None:
        with bars(_console, "preparing slices") as (progress,):
            slices = prepare_for(plan, prepare, progress)
        _console.print(_prepared(slices), highlight=False)
        if to is None:
            return None
        # The slices already contain the copies.
        plan = DrivePlan(
            prepare,
            to=to,
            speed=plan.speed,
            lenient=plan.lenient,
            clock_file=plan.clock_file,
            resume=plan.resume,
            most_late=plan.most_late,
            delivery=plan.delivery,
        )
    with bars(_console, "preparing slices", "driving") as (preparing, progress):
        return drive_input(plan, progress=progress, preparing=preparing, say=_say)


def _prepared(slices: Slices) -> str:
    listed = slices.manifest
    return (
        f"{slices.path}: {listed['rows']:,} rows of seconds {slices.t0}..{slices.t1 - 1} in {slices.groups} "
        "group(s), "
        f"{listed['bytes'] / 1e6:,.1f} MB of {slices.format}, {listed['copies']['count']} copies, "
        f"{listed['refused_rows_passed_on']} rows that break the format."
    )


def _speed(text: str) -> float:
    if text == "max":
        return MAXIMUM
    try:
        return float(text)
    except ValueError:
        raise InputError(
            f"--speed {text} is no number", expected="a factor such as 1 or 60, or max"
        ) from None


def _form(text: str | None) -> Literal["csv", "parquet"] | None:
    """How slices are stored: packed ones are made from text when they are delivered."""
    forms: dict[str | None, Literal["csv", "parquet"] | None] = {
        None: None, "text": "csv", "csv": "csv", "packed": "csv", "parquet": "parquet",
    }  # fmt: skip
    if text not in forms:
        raise InputError(f"--format {text} is not known", expected="text, packed or parquet")
    return forms[text]


def _say(sentence: str) -> None:
    _console.print(sentence, highlight=False)


def _leave(report: DriveReport) -> None:
    if report.stopped_at is not None and report.lost is None:
        raise typer.Exit(STOPPED)
    if not report.valid:
        raise typer.Exit(NOT_VALID)


def _show(report: DriveReport) -> None:
    late = report.lateness_ms
    table = Table(title="Drive", show_header=False)
    size = "" if report.xways is None else f", L = {report.xways:g}"
    table.add_row(
        "rows", f"{report.rows:,} in {report.seconds:,} s of data{size}, {report.bytes / 1e6:,.1f} MB"
    )
    if report.copies["count"] > 1:
        shifts = ", ".join(f"{name.upper()} +{report.copies[name]:,}" for name in ("vid", "qid", "xway"))
        table.add_row("shifted copies", f"{report.copies['count']}, each {shifts} above the one before")
    if report.refused_rows_passed_on:
        table.add_row("rows that break the format, passed on", f"{report.refused_rows_passed_on:,}")
    table.add_row(
        "lateness p50 / p99 / max",
        "no clock" if late is None else f"{late['p50']} / {late['p99']} / {late['max']} ms",
    )
    table.add_row(
        "processor",
        f"{report.cpu_seconds:.2f} s in {report.wall_seconds:.1f} s ({report.cpu_share:.1%} of one core)",
    )
    table.add_row("clock", _clock(report))
    table.add_row("run", _verdict(report))
    _console.print(table)


def _clock(report: DriveReport) -> str:
    speed = "" if isinstance(report.speed, str) else f", speed {report.speed:g}"
    return f"{report.clock}{speed}, T0 = {report.t0}"


def _verdict(report: DriveReport) -> str:
    if report.lost is not None:
        return f"NOT VALID: target {report.lost}"
    if report.stopped_at is not None:
        return f"stopped before second {report.stopped_at}; --resume goes on (directories)"
    if report.late_seconds:
        return (
            f"NOT VALID: fell behind in {report.late_seconds} seconds, first at {report.first_late} "
            f"(more than {report.most_late_allowed_s:g} s late)"
        )
    return "valid"
