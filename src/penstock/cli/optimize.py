"""`penstock optimize`: a cheaper form of a network, each step told, and written as a network of its own."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.load import NET_HELP, load_network
from penstock.cli.refusals import refusals
from penstock.cli.shared_options import one_each, parse_rate
from penstock.model.boxes import Node, Source
from penstock.model.costs import MeasuredCosts
from penstock.model.errors import NetworkError, PenstockError, did_you_mean
from penstock.model.text.yaml_form import to_yaml
from penstock.model.writing.network import Network
from penstock.rewrite.check import check as check_network
from penstock.rewrite.cost_model import cost_model, cpu_a_tuple
from penstock.rewrite.optimize import Plan
from penstock.rewrite.optimize import optimize as optimize_network

Checkpoint = Annotated[
    Path | None, typer.Option("--checkpoint", help="Take costs and selectivities from this run.")
]
Rates = Annotated[
    list[str] | None,
    typer.Option("--rate", metavar="SOURCE=N", help="Tuples a second of a source; repeat it."),
]


def optimize(
    net: Annotated[str, typer.Argument(metavar="NET", help=NET_HELP)],
    checkpoint: Checkpoint = None,
    rate: Rates = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Write the new form here, as YAML.")] = None,
    form: Annotated[str, typer.Option("--format", help="'text' or 'json'.")] = "text",
) -> None:
    """Find a cheaper form of a network that gives the same rows and the same dead letters.

    Says which box moves where and why, and what each step saves. Runs nothing and changes nothing: with -o
    it writes the new form as a network that you can read, change and run.
    """
    with refusals(files=out):
        if form not in ("text", "json"):
            raise PenstockError(f"no format '{form}'", expected="text or json")
        plan = plan_for(load_network(net), checkpoint, rate or ())
        if out is not None:
            out.write_text(to_yaml(plan.network), encoding="utf-8")
        typer.echo(as_json(plan) if form == "json" else as_text(plan))
        if out is not None and form == "text":
            typer.echo(f"\nwrote {out}")


def plan_for(network: Network, checkpoint: Path | None, rates: Iterable[str] = ()) -> Plan:
    """The optimizer's plan, with what a checkpoint tells about costs."""
    check_network(network)
    given = one_each(_rate(network, text) for text in rates)
    return optimize_network(network, cost_model(network, _measured(checkpoint), given))


def _measured(checkpoint: Path | None) -> MeasuredCosts:
    if checkpoint is None:
        return MeasuredCosts()
    if not (checkpoint / "catalog.db").exists():
        raise PenstockError(f"{checkpoint} is no checkpoint: it has no catalog.db")
    from penstock.control.costs import costs_in

    return costs_in(checkpoint)


def _rate(network: Network, text: str) -> tuple[str, float]:
    name, rate = parse_rate(text)
    if name not in network.sources:
        hint = did_you_mean(name, network.sources)
        raise PenstockError(f"--rate {text}: no source '{name}' in network '{network.name}'", hint=hint)
    return name, rate


def as_text(plan: Plan) -> str:
    """What was done, step by step, what it is expected to save, and on which figures that rests."""
    if not plan.steps:
        return f"network '{plan.written.name}': nothing to gain\n\n{figures_text(plan)}"
    saved = 1 - plan.after / plan.before if plan.before else 0.0
    steps = f"{len(plan.steps)} step{'s' * (len(plan.steps) != 1)}"
    change = f"{_cost(plan, plan.before)} -> {_cost(plan, plan.after)} {_unit(plan)}, {saved:.0%} less"
    lines = [f"network '{plan.written.name}': {steps}, {change}", ""]
    for number, step in enumerate(plan.steps, start=1):
        change = f"{_cost(plan, step.before)} -> {_cost(plan, step.after)}"
        lines += [f"{number:>3}. {step.says}", f"     {step.rule}: {change}"]
    moved = moved_lines(plan)
    return "\n".join([*lines, "", *moved, *[""] * bool(moved), figures_text(plan)])


def moved_lines(plan: Plan) -> list[str]:
    """Where the work of each box as written is done now, for boxes of another name or form."""
    lines = []
    for name, node in plan.written.nodes.items():
        now = [each.name for each in plan.network.nodes.values() if name in each.stands_for]
        if node.is_box and now != [name]:
            lines.append(f"{name}: {'now ' + ', '.join(now) if now else 'gone: nobody reads what it makes'}")
    known = {name for node in plan.network.nodes.values() for name in node.stands_for}
    added = [name for name in plan.network.nodes if name not in plan.written.nodes and name in known]
    return [*lines, *(f"{name}: new" for name in added)]


def figures_text(plan: Plan) -> str:
    """Which boxes were measured: a guess about costs should look like one."""
    boxes = [node for node in plan.written.nodes.values() if node.is_box]
    measured = [node.name for node in boxes if _is_measured(plan, node)]
    guessed = [node.name for node in boxes if node.name not in measured]
    parts = [f"measured: {', '.join(measured)}"] if measured else []
    parts += [f"by rule of thumb: {', '.join(guessed)}"] if guessed else []
    hint = "" if measured else "; --checkpoint DIR takes the figures of a run"
    return "figures " + "; ".join(parts) + hint if parts else "figures: no box to cost"


def _is_measured(plan: Plan, node: Node) -> bool:
    box = plan.costs.boxes.get(node.name)
    return box is not None and (cpu_a_tuple(box) is not None or box.selectivity is not None)


def _cost(plan: Plan, cost: float) -> str:
    return f"{cost / 1e6:.3g}" if plan.costs.rates else f"{cost:.3g}"


def _unit(plan: Plan) -> str:
    """With rates, CPU-seconds a second; without, those of a million tuples from each source."""
    if plan.costs.rates:
        return "CPU-s a second at these rates"
    several = sum(isinstance(node, Source) for node in plan.written.nodes.values()) > 1
    return f"CPU-s a million tuples{' of each source' * several}"


def as_json(plan: Plan) -> str:
    """The plan for programs: costs in microseconds of CPU a second, and the new form as YAML."""
    return json.dumps(
        {
            "network": plan.written.name,
            "before": plan.before,
            "after": plan.after,
            "rates": dict(plan.costs.rates),
            "steps": [
                {"rule": step.rule, "says": step.says, "before": step.before, "after": step.after}
                for step in plan.steps
            ],
            "origins": {name: list(node.stands_for) for name, node in plan.network.nodes.items()},
            "text": _text(plan.network),
        },
        indent=2,
    )


def _text(network: Network) -> str | None:
    """The YAML form; None if the network holds what no text can name, such as a lambda."""
    try:
        return to_yaml(network)
    except NetworkError:
        return None
