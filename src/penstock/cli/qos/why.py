"""`penstock qos why`: each decision of control as a sentence, with what it was to do and what it did."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.qos.report_file import catalog_of, known_format, without_control
from penstock.cli.refusals import refusals
from penstock.control.report import REPORT
from penstock.model.errors import PenstockError, did_you_mean
from penstock.model.json_types import JsonObject
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.decisions import Decisions
from penstock.store.catalog.record_types import Decision

_LAST = 10_000


def why(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="CHECKPOINT", help="The directory given to `penstock run --checkpoint`.")
    ],
    output: Annotated[
        str | None, typer.Argument(metavar="[OUTPUT]", help="Only decisions that concern this output.")
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="TIME",
            help="Only those in force at this time: 2026-05-01T12:00:00 (UTC unless it says otherwise), "
            "12:00:00 of today, or seconds since 1970.",
        ),
    ] = None,
    form: Annotated[str, typer.Option("--format", help="'text' or 'json'.")] = "text",
) -> None:
    """Say what control decided and why, oldest first: numbers, expected and realised effect."""
    with refusals():
        known_format(form)
        moment = None if at is None else moment_of(at)
        with catalog_of(checkpoint) as catalog:
            chosen = _chosen(catalog, checkpoint, output, moment)
        if form == "json":
            typer.echo(json.dumps([plain(each) for each in chosen], indent=2))
        elif not chosen:
            typer.echo("no decision" + ("" if at is None else f" was in force at {at}"))
        for each in chosen if form == "text" else ():
            typer.echo(text(each))


def _chosen(catalog: Catalog, checkpoint: Path, output: str | None, moment: float | None) -> list[Decision]:
    decisions = Decisions(catalog).last(_LAST)
    if not decisions and Decisions(catalog).state(REPORT) is None:
        raise without_control(checkpoint)
    if output is not None:
        _must_be_known(catalog, output, decisions)
        decisions = [each for each in decisions if output in (*each.outputs, each.subject)]
    return [each for each in decisions if moment is None or each.in_force(moment)]


def _must_be_known(catalog: Catalog, output: str, decisions: Sequence[Decision]) -> None:
    topology = catalog.topology()
    known = {node.name for node in topology.nodes if node.kind in ("output", "view")} if topology else set()
    known |= {name for each in decisions for name in (*each.outputs, each.subject)}
    report = Decisions(catalog).state(REPORT)  # it knows attached queries too
    known |= set() if report is None else {each["name"] for each in report[1].get("outputs", ())}
    if output not in known:
        raise PenstockError(f"no output '{output}'", hint=did_you_mean(output, sorted(known)))


def moment_of(text: str) -> float:
    """A time as seconds since 1970.

    >>> moment_of("1970-01-01T00:01:00"), moment_of("1970-01-01 01:01:00+01:00"), moment_of("60.5")
    (60.0, 60.0, 60.5)
    """
    with suppress(ValueError):
        if math.isfinite(seconds := float(text)):
            return seconds
    today = datetime.now(UTC).date().isoformat()
    for candidate in (text, f"{today}T{text}"):
        try:
            moment = datetime.fromisoformat(candidate)
        except ValueError:
            continue
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    raise PenstockError(
        f"--at {text}: no time", expected="2026-05-01T12:00:00, 12:00:00 or seconds since 1970"
    )


def plain(decision: Decision) -> JsonObject:
    """As JSON: all its fields, times in seconds since 1970."""
    return {**asdict(decision), "outputs": list(decision.outputs)}


def text(decision: Decision) -> str:
    """One line, and its effect below it."""
    until = "" if decision.until is None else f" (until {_clock(decision.until)})"
    lines = [f"{_clock(decision.time)} {decision.sentence}{until}"]
    if decision.expected:
        realised = _figures(decision.realised) or _pending(decision)
        lines.append(f"  expected {_figures(decision.expected)}; realised {realised}")
    return "\n".join(lines)


def _pending(decision: Decision) -> str:
    if time.time() - decision.time < 10:
        return "not measured yet"
    return "by no train: none came near this length" if decision.kind == "train" else "never measured"


def _figures(figures: Mapping[str, float]) -> str:
    return ", ".join(
        f"{name} {value:,.0f}" if name == "tuples" else f"{name} {value:g}" for name, value in figures.items()
    )


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
