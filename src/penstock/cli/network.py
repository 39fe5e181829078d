"""`penstock check`, `explain`, `draw`: look at a network without running it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.load import NET_HELP, load_network
from penstock.cli.optimize import plan_for
from penstock.cli.refusals import refusals
from penstock.cli.shared_options import Durability as DurabilityOption
from penstock.cli.shared_options import RecoveryOption
from penstock.control.valve_places import check_grains, places
from penstock.model.boxes import Join
from penstock.model.errors import PenstockError
from penstock.model.writing.network import Network
from penstock.rewrite.check import check as check_network
from penstock.rewrite.subnetworks import split

if TYPE_CHECKING:
    from penstock.engine.spark.layout.plan import Stage
    from penstock.store.durable import Durability

Net = Annotated[str, typer.Argument(metavar="NET", help=NET_HELP)]


def check(net: Net) -> None:
    """Check a network: names, columns, types, windows, QoS, what may be shed.

    Prints each error with file and line, and exits with code 2.
    """
    with refusals():
        network = load_network(net)
        check_network(network)
        check_grains(network)
        subs = split(network)
        boxes = len(network.nodes) - len(network.sources) - len(network.outputs)
        typer.echo(
            f"{network.name}: sound. {len(network.sources)} source(s), {boxes} box(es) and point(s), "
            f"{len(network.outputs)} output(s), {len(subs)} sub-network(s): {', '.join(s.name for s in subs)}"
        )


def explain(
    net: Net,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            help="Also say what its diffused joins have chosen there; with --optimized, take its costs.",
        ),
    ] = None,
    recovery: RecoveryOption = "off",
    durability: DurabilityOption = "process",
    master: Annotated[
        str | None, typer.Option(help="Spark master URL of the run to explain; local if left out.")
    ] = None,
    optimized: Annotated[
        bool, typer.Option("--optimized", help="Explain the form that `penstock optimize` finds.")
    ] = False,
) -> None:
    """Print the network as text: each box, its inputs and outputs, its layout on Spark, how state is kept."""
    with refusals():
        network = load_network(net)
        check_network(network)
        if optimized:
            network = plan_for(network, checkpoint).network
        typer.echo(network.explain())
        from penstock.engine.contract.recovery import parse_recovery
        from penstock.engine.spark.master import names_this_host
        from penstock.store.durable import known_durability

        kept = known_durability(durability)
        local = names_this_host(master)
        typer.echo("\n" + layout_text(network, parse_recovery(recovery), kept, local=local))
        if any(node.qos is not None for node in network.nodes.values()):
            typer.echo("\n" + shedding_text(network))
        if checkpoint is not None:
            from penstock.store.catalog.join_choices import join_choices_text

            if not (checkpoint / "catalog.db").exists():
                raise PenstockError(f"{checkpoint} is no checkpoint: it has no catalog.db")
            typer.echo("\n" + join_choices_text(network, checkpoint))


def layout_text(
    network: object, seconds: float | None = None, durability: Durability = "process", *, local: bool = True
) -> str:
    """Describe by sub-network which boxes run natively, which share a stage, and which way trains run."""
    from penstock.engine.contract.recovery import state_text
    from penstock.engine.spark.jobs.forms import forms_text
    from penstock.engine.spark.layout.plan import lay_out

    assert isinstance(network, Network)
    lines = ["on Spark"]
    for sub in split(network):
        layout = lay_out(sub)
        reads, writes = ", ".join(sub.inputs), ", ".join((*sub.points, *sub.outputs))
        lines.append(f"  query '{sub.name}' reads {reads}; writes {writes}")
        if layout.native:
            lines.append(f"    native: {', '.join(layout.native)}")
        lines += [f"    stage ({_spread(s, sub.network)}): {', '.join(s.nodes)}" for s in layout.stages]
        lines.append(f"    {forms_text(layout)}")
        if any(stage.keeps_state(sub.network) for stage in layout.stages):
            lines.append(f"    {state_text(sub, durability, seconds, local=local)}")
    return "\n".join(lines)


def shedding_text(network: Network) -> str:
    """Say for each place of a valve by which grain it would shed, or why there may be none."""
    lines = ["under overload (--qos)"]
    for place in places(network):
        what = f"nothing is shed: {place.why}" if place.grain is None else f"{place.grain} may be shed"
        rough = "" if place.grain is None or place.exact else f"; {place.why}"
        lines.append(f"  {place.at}: {what}{rough}")
    return "\n".join(lines)


def _spread(stage: Stage, network: Network) -> str:
    """Say where the tuples of a stage go."""
    if stage.keys is None:
        return "any partition"
    if stage.spread:
        join = next(n for n in (network.nodes[name] for name in stage.nodes) if isinstance(n, Join))
        word = "by hash" if join.distribution == "hash" else "diffused"
        return f"{word} over {stage.servers or 'all'} partitions"
    return f"by {', '.join(stage.keys)}" if stage.keys else "one partition"


def draw(
    net: Net,
    out: Annotated[
        Path, typer.Option("-o", "--out", help="Where to write: .svg, .mmd (Mermaid) or .html.")
    ] = Path("net.svg"),
) -> None:
    """Draw the network as a picture."""
    with refusals():
        network = load_network(net)
        check_network(network)
        forms = {".svg": network.to_svg, ".mmd": network.to_mermaid, ".html": network._repr_html_}
        if out.suffix not in forms:
            raise PenstockError(f"cannot draw to '{out.suffix}'", expected=f"one of: {', '.join(forms)}")
        out.write_text(forms[out.suffix]())
        typer.echo(f"wrote {out}")
