"""`penstock lr validate`: options in, verdict and exit code out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import duckdb
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from penstock.cli.refusals import refusals, refuse
from penstock.linear_road import validate_answers
from penstock.linear_road.errors import InputError
from penstock.linear_road.validate import show
from penstock.linear_road.validate.oracle import Progress as Step
from penstock.linear_road.validate.validation import STEPS


def validate(
    input: Annotated[  # noqa: A002 - the option's name
        Path, typer.Option(help="Input rows: a generated directory or one flat file.")
    ],
    answers: Annotated[
        Path | None, typer.Option(help="Answers: one flat file or a directory of them.")
    ] = None,
    history: Annotated[
        Path | None, typer.Option(help="Directory with TollHistory and SegmentHistory.")
    ] = None,
    no_response_times: Annotated[bool, typer.Option("--no-response-times", help="Leave Emit out.")] = False,
    json: Annotated[Path | None, typer.Option(help="Write the whole verdict as JSON.")] = None,
    expected: Annotated[Path | None, typer.Option(help="Write the oracle's own answers.")] = None,
    why: Annotated[str | None, typer.Option(metavar="VID,TIME", help="Show what an answer rests on.")] = None,
    work: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where the oracle keeps its tables until it is done; "
            "after a kill the same command resumes with them. "
            "Default: the temporary directory, for large inputs.",
        ),
    ] = None,
) -> None:
    """Check any system's answers to a Linear Road input; exit 0 only if every answer is right."""
    with refusals():
        if not (answers or expected or why):
            raise InputError("nothing to do", hint="give --answers, --expected or --why")
        ask = _vid_and_time(why) if why else None
    with refusals(files=expected or json or input), _oracle_failures(), _progress() as step:
        verdict = validate_answers(
            input,
            answers=answers,
            history=history,
            response_times=not no_response_times,
            expected=expected,
            json_file=json,
            ask=ask,
            work=work,
            progress=step,
        )
    # When piped into a file, the table must not be cut at 80 columns.
    wide = None if Console().is_terminal else 160
    if verdict.resumed:
        typer.echo("Went on with the work of a run that was stopped.", err=True)
    show(verdict, Console(width=wide, soft_wrap=True))
    raise typer.Exit(0 if verdict.passed else 1)


@contextmanager
def _oracle_failures() -> Iterator[None]:
    try:
        yield
    except (duckdb.OutOfMemoryException, duckdb.IOException, duckdb.TransactionException) as error:
        refuse(f"the oracle ran out of memory or disk: {str(error).splitlines()[0]}")


def _vid_and_time(text: str) -> tuple[int, int]:
    try:
        vid, time = (int(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"--why {text!r} is not VID,TIME", expected="two whole numbers such as 107,330"
        ) from None
    return vid, time


@contextmanager
def _progress() -> Iterator[Step]:
    """Show a bar on stderr: the number of steps, and the share of the current one that is done."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("validate", total=STEPS)
        seen: list[str] = []

        def step(name: str, share: float) -> None:
            if name not in seen:
                seen.append(name)
            bar.update(task, completed=len(seen) - 1 + share, description=name)

        yield step
