"""`penstock qos map`: the road map, which drops come first and what they cost (A84-A86)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.qos.report_file import catalog_of, known_format, report_in, standing
from penstock.cli.refusals import refusals
from penstock.control.report import ROAD_MAP
from penstock.model.errors import PenstockError
from penstock.model.json_types import JsonObject
from penstock.store.catalog.decisions import Decisions


def map_(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="CHECKPOINT", help="The directory given to `penstock run --checkpoint`.")
    ],
    form: Annotated[str, typer.Option("--format", help="'text' or 'json'.")] = "text",
) -> None:
    """Show the road map: by how much the load falls, row by row, and what each output then keeps.

    The shedder goes down as far as it has to. Each row saves more CPU than the one above, for the least
    utility; an output without a loss graph always keeps everything. Below stand the places at which nothing
    may be shed, and why.
    """
    with refusals():
        known_format(form)
        with catalog_of(checkpoint) as catalog:
            reported, _ = report_in(catalog, checkpoint)  # refuses one that was never under control
            kept = Decisions(catalog).state(ROAD_MAP)
        if kept is None:
            raise PenstockError(
                f"{checkpoint} has no road map yet",
                hint="it is drawn when the costs of the first trains are known; try again in some seconds",
            )
        made_at, body = kept
        if form == "json":
            typer.echo(json.dumps({"time": made_at, **body}, indent=2))
        else:
            typer.echo(f"{replace(standing(checkpoint, reported), at=made_at).text}\n{as_text(body)}")


def as_text(body: JsonObject) -> str:
    """A line for each tenth of the load.

    >>> rows = [{"load": 1.0, "lost": 0.0, "shares": {"a": 1.0}}, {"load": 0.5, "lost": 0.2, "shares":
    ...     {"a": 0.5}}]
    >>> print(as_text({"load": 2.0, "rows": rows}))
    load 100 % (2.00 CPU-s a second): nothing is dropped
    load  50 % (1.00 CPU-s a second): a 50 %; costs 0.2 utility
    """
    lines, told = [], 2.0
    rows = body["rows"]
    for row in rows:
        if told - row["load"] >= 0.1 - 1e-9 or row is rows[-1]:
            told = row["load"]
            lines.append(_line(row, body["load"]))
    return "\n".join([*lines, *_reasons(body)])


def _reasons(body: JsonObject) -> list[str]:
    """Why nothing is shed at all, or at some of the places."""
    if not body.get("shed", True):
        return ["nothing is shed: the run was told so (--no-shed, or shed: false in its network)"]
    places: dict[str, list[str]] = {}
    for at, why in body.get("why", {}).items():
        places.setdefault(why, []).append(at)
    reasons = [f"nothing is shed at {', '.join(at)}: {why}" for why, at in places.items()]
    if len(body["rows"]) == 1 and not reasons:
        reasons = ["nothing may be shed: no output has a loss graph, or none has a place for a valve"]
    return reasons


def _line(row: JsonObject, load: float) -> str:
    less = [f"{name} {100 * share:.0f} %" for name, share in row["shares"].items() if share < 1]
    what = f"{', '.join(less)}; costs {row['lost']:.3g} utility" if less else "nothing is dropped"
    return f"load {100 * row['load']:3.0f} % ({row['load'] * load:.2f} CPU-s a second): {what}"
