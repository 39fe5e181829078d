"""`penstock demo`: Linear Road end to end in a few minutes, from an empty folder to a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.refusals import BAD_INPUT, FAILED, STOPPED, refusals
from penstock.linear_road.errors import InputError, RunStopped
from penstock.model.errors import PenstockError


def demo(
    out: Annotated[
        Path, typer.Option("--out", help="Folder for everything it makes; an earlier demo there is replaced.")
    ] = Path("penstock-demo"),
    short: Annotated[
        bool, typer.Option("--short", help="Without a clock, as fast as it can be answered.")
    ] = False,
) -> None:
    """Run Linear Road on a small city and validate every answer.

    Generates traffic and history, then answers all five kinds of requests on Spark.
    """
    codes = {InputError: BAD_INPUT, RunStopped: STOPPED, PenstockError: FAILED}
    with refusals(codes, files=out):
        from penstock.linear_road import Demo, run_demo

        right = run_demo(Demo.short(out) if short else Demo(out), typer.echo)
    raise typer.Exit(0 if right else FAILED)
