"""`penstock qos show`: how the outputs of a run under control are, what comes in and what is shed."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.measure_lines import report_lines
from penstock.cli.qos.report_file import OLD, Standing, catalog_of, known_format, report_in, standing
from penstock.cli.refusals import refusals
from penstock.control.report import QosReport

_EVERY = 1.0


def show(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="CHECKPOINT", help="The directory given to `penstock run --checkpoint`.")
    ],
    follow: Annotated[
        bool, typer.Option("--follow", help="Show it again every second, until the run ends, or Ctrl-C.")
    ] = False,
    form: Annotated[
        str, typer.Option("--format", help="'text', or 'json': one object, with --follow one in each line.")
    ] = "text",
) -> None:
    """Show how a run under control stands: utilities, delays, shares, what waits, valves, load.

    Times are seconds, rates tuples a second, shares 0 to 1. `exact_since` is null while tuples are shed.
    `as_of` is when the run told this, in seconds since 1970, and `ended` whether it is over.
    """
    with refusals():
        known_format(form)
        with catalog_of(checkpoint) as catalog:
            while True:
                made_at, report = report_in(catalog, checkpoint)
                now = standing(checkpoint, made_at)
                typer.echo(_text(report, now, form, one_line=follow))
                if follow and now.ended and form == "json":
                    typer.echo("the run has ended", err=True)  # the last line is an object like all others
                if now.ended or not follow:
                    return
                try:
                    time.sleep(_EVERY)
                except KeyboardInterrupt:
                    return


def _text(report: QosReport, now: Standing, form: str, *, one_line: bool) -> str:
    if now.past:  # it may have told so in the middle of a train
        still = tuple(replace(each, running=False) for each in report.subnetworks)
        report = replace(report, subnetworks=still)
    if form == "json":
        told = {"as_of": now.at, "ended": now.ended, "without_control": now.uncontrolled}
        return json.dumps({**report.plain(), **told}, indent=None if one_line else 2)
    old = [now.text] if now.past or time.time() - now.at > OLD else []
    return "\n".join([*old, *report_lines(report), *([""] if one_line else [])])
