"""`penstock qos check`: whether the outputs of a network can be good at given rates."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.load import NET_HELP, load_network
from penstock.cli.refusals import FAILED, refusals
from penstock.cli.shared_options import one_each, parse_rate
from penstock.control.analysis import Analysis, analyse, check_rates, short_number
from penstock.control.costs import costs_in
from penstock.model.costs import MeasuredCosts
from penstock.model.errors import PenstockError
from penstock.model.writing.network import Network
from penstock.process.cores import usable_cores
from penstock.rewrite.check import check as check_network

_SECONDS = 10.0


def check(
    net: Annotated[str, typer.Argument(metavar="NET", help=NET_HELP)],
    rate: Annotated[
        list[str], typer.Option("--rate", metavar="SOURCE=N", help="Tuples a second of a source; repeat it.")
    ],
    headroom: Annotated[
        float, typer.Option(help="The part of the capacity to plan with, the rest is for ad-hoc queries.")
    ] = 0.9,
    checkpoint: Annotated[
        Path | None, typer.Option("--checkpoint", help="Take costs and selectivities from this run.")
    ] = None,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate", help="Measure costs now, on the input that is there. [without --checkpoint]"
        ),
    ] = False,
    seconds: Annotated[
        float | None, typer.Option(help="Seconds that a calibration measures, 10 if left out.")
    ] = None,
    cores: Annotated[int | None, typer.Option(help="Cores to plan with; all if left out.", min=1)] = None,
    form: Annotated[str, typer.Option("--format", help="'text' or 'json'.")] = "text",
) -> None:
    """Say whether each output can be in its good zone at these rates, and what the load would be.

    Exit codes: 0 all can, 1 some cannot (a sentence for each), 2 refused.
    """
    with refusals():
        _known_form(form)
        network = load_network(net)
        check_network(network)
        rates = one_each(map(parse_rate, rate))
        check_rates(network, rates)
        if not 0 < headroom <= 1:
            raise PenstockError(
                "the headroom is out of range", found=f"{headroom:g}", expected="above 0, up to 1"
            )
        if calibrate and checkpoint is not None:
            raise PenstockError(
                "costs come from two places", expected="either --checkpoint DIR or --calibrate"
            )
        _check_seconds(seconds, checkpoint)
        costs = _costs(network, checkpoint, _SECONDS if seconds is None else seconds)
        available = cores or usable_cores()
        analysis = analyse(network, costs, rates, cores=available, headroom=headroom)
        typer.echo(as_json(analysis) if form == "json" else as_text(analysis))
        if not analysis.feasible:
            raise typer.Exit(FAILED)


def _known_form(form: str) -> None:
    if form not in ("text", "json"):
        raise PenstockError(f"no format '{form}'", expected="text or json")


def _check_seconds(seconds: float | None, checkpoint: Path | None) -> None:
    if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
        raise PenstockError(f"a calibration of {seconds:g} s", expected="a number of seconds above 0")
    if seconds is not None and checkpoint is not None:
        raise PenstockError(
            "--seconds has no effect with --checkpoint",
            hint="leave one of them out: --seconds is for --calibrate",
        )


def _costs(network: Network, checkpoint: Path | None, seconds: float) -> MeasuredCosts:
    if checkpoint is not None:
        if not (checkpoint / "catalog.db").exists():
            raise PenstockError(f"{checkpoint} is no checkpoint: it has no catalog.db")
        return costs_in(checkpoint)
    from penstock.control.calibration import calibrate

    return calibrate(network, seconds)


def as_json(analysis: Analysis) -> str:
    """All figures; `feasible` is what the exit code says."""
    return json.dumps({**asdict(analysis), "feasible": analysis.feasible}, indent=2)


def as_text(analysis: Analysis) -> str:
    """A line for each sub-network and output."""
    lines = [
        f"{sub.name}: {short_number(sub.rate)} tuples/s, {short_number(sub.load, 2)} CPU-s a second"
        + ("" if sub.fixed is None else f", a train takes {sub.fixed:.2f} s without tuples")
        for sub in analysis.subnetworks
    ]
    lines += [
        f"  {box.box}: {short_number(box.rate_in)}/s, {short_number(box.load, 2)} CPU-s a second"
        for box in analysis.boxes
        if box.load
    ]
    lines.append(f"load {short_number(analysis.load, 2)} of {analysis.capacity:.2f} CPU-s a second")
    lines += [output.problem or f"{output.name}: fine" for output in analysis.outputs]
    return "\n".join([*lines, *(f"note: {note}" for note in analysis.notes)])
