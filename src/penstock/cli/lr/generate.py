"""`penstock lr generate` and `penstock lr describe`.

Progress goes to standard error. An error is reported in one sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from penstock.cli.refusals import FAILED, refusals, refuse
from penstock.model.errors import refusal_text
from penstock.process.cores import usable_cores


@contextmanager
def _failures() -> Iterator[None]:
    """Refuse bad options and files with exit code 2.

    A failing disk or a killed worker ends with exit code 1.
    """
    with refusals():
        try:
            yield
        except OSError as error:
            # numpy's errors carry neither a file name nor the system's message.
            reason = error.strerror or f"it is cut short ({error}); is the disk full"
            refuse(f"{error.filename or 'the output'} cannot be read or written: {reason}", FAILED)
        except BrokenProcessPool:
            hint = "run the same command again to go on"
            refuse(refusal_text("a worker process was killed", hint=hint), FAILED)


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    columns = (TextColumn("{task.description:>9}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as bars:
        tasks: dict[str, TaskID] = {}

        def show(step: str, done: int, of: int) -> None:
            if step not in tasks:
                tasks[step] = bars.add_task(step, total=of)
            bars.update(tasks[step], completed=done, total=of)

        yield show


def generate(
    xways: Annotated[
        float, typer.Option("--xways", help="Expressways L; half an expressway is direction 0 (0.5, 2.5).")
    ],
    out: Annotated[Path, typer.Option("--out", help="Directory to write; an interrupted run resumes.")],
    minutes: Annotated[int, typer.Option("--minutes", help="Length of the run, 1..180.")] = 180,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same bytes.")] = 1,
    form: Annotated[str, typer.Option("--format", help="csv (no header) or parquet.")] = "csv",
    jobs: Annotated[int | None, typer.Option("--jobs", help="Processes; default: all cores.")] = None,
) -> None:
    """Generate the traffic of L expressways: position reports and requests in order of time."""
    with _failures():
        from penstock.linear_road import generate_traffic

        with _progress() as progress:
            manifest = generate_traffic(
                out,
                xways=xways,
                minutes=minutes,
                seed=seed,
                form=form,
                jobs=usable_cores() if jobs is None else jobs,
                progress=progress,
            )
    typer.echo(
        f"{out}: {manifest['rows']:,} rows in {len(manifest['files'])} files, {manifest['vehicles']:,} "
        "vehicles, "
        f"{manifest['accidents']} accidents, hash {manifest['hash']}"
    )


def describe(
    path: Annotated[
        Path, typer.Argument(metavar="DIR|FILE", help="A generated directory, or one csv or parquet file.")
    ],
    plots: Annotated[
        Path | None,
        typer.Option(
            "--plots", help="Directory for the PNG plots; default: DIR/plots, or NAME-plots here for a file."
        ),
    ] = None,
    no_plots: Annotated[bool, typer.Option("--no-plots", help="Figures only.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all figures here.")] = None,
    work: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where to keep what is counted so far; after a kill the same command resumes from there. "
            "Default: the temporary directory, for large inputs.",
        ),
    ] = None,
) -> None:
    """Describe an input: counts, rates, speeds, density, accidents, tolls, and malformed rows."""
    with _failures():
        from penstock.linear_road import describe_input
        from penstock.linear_road.describe.show import draw, plot_directory, tables, write_json

        with _progress() as progress:
            description = describe_input(path, progress=progress, work=work)
        console = Console()
        for table in tables(description):
            console.print(table)
        if json_file is not None:
            write_json(description, json_file)
        if not no_plots:
            for picture in draw(description, plot_directory(path) if plots is None else plots):
                typer.echo(str(picture))
