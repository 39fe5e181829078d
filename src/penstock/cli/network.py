"""`penstock check`, `explain`, `draw`: look at a network without running it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.cli.load import NET_HELP, load_network, told
from penstock.model.boxes import Join
from penstock.model.errors import PenstockError
from penstock.model.network import Network
from penstock.rewrite.check import check as check_network
from penstock.rewrite.subnetworks import split

Net = Annotated[str, typer.Argument(metavar="NET", help=NET_HELP)]


def check(net: Net) -> None:
    """Check a network: names, columns, types, windows, QoS. Prints what is wrong with file and line, exit code 2."""
    with told():
        network = load_network(net)
        check_network(network)
        subs = split(network)
        boxes = len(network.nodes) - len(network.sources) - len(network.outputs)
        typer.echo(
            f"{network.name}: sound. {len(network.sources)} source(s), {boxes} box(es) and point(s), "
            f"{len(network.outputs)} output(s), {len(subs)} sub-network(s): {', '.join(s.name for s in subs)}"
        )


def explain(
    net: Net,
    checkpoint: Annotated[
        Path | None, typer.Option("--checkpoint", help="Also say what its diffused joins have chosen there.")
    ] = None,
) -> None:
    """Print the network as text: each box, what it reads and gives, and how it is laid out on Spark."""
    with told():
        network = load_network(net)
        check_network(network)
        typer.echo(network.explain())
        typer.echo("\n" + layout_text(network))
        if checkpoint is not None:
            typer.echo("\n" + chosen_text(network, checkpoint))


def chosen_text(network: Network, checkpoint: Path) -> str:
    """What the diffused joins of a network that ran, or runs, have chosen: from the catalog of its checkpoint."""
    from penstock.store.catalog import Catalog

    if not (checkpoint / "catalog.db").exists():
        raise PenstockError(f"{checkpoint} is no checkpoint: it has no catalog.db")
    catalog = Catalog(checkpoint / "catalog.db")
    try:
        joins = [n.name for n in network.nodes.values() if isinstance(n, Join) and n.spread]
        lines = [f"chosen in {checkpoint}"]
        for name in joins:
            events = catalog.events("diffusion", name)
            lines += [f"  {name}: {_chosen(event.detail)}" for event in events[-5:]] or [
                f"  {name}: no train yet"
            ]
    finally:
        catalog.close()
    return "\n".join(lines if joins else [*lines, "  no diffused join"])


def _chosen(detail: Mapping[str, Any]) -> str:
    scheme = detail["scheme"]
    what = "hash" if scheme == "hash" else f"diffused, master {scheme}"
    text = f"from train {detail['train']} on {what}, {detail['servers']} servers (epoch {detail['epoch']})"
    if detail.get("rates"):
        left, right = detail["rates"]
        text += f"; measured before: left {left:,.1f} and right {right:,.1f} tuples a second of stream time"
    if detail.get("share"):
        text += f", hottest server {detail['share']:.0%} of the load"
    return text


def layout_text(network: object) -> str:
    """Which boxes run natively and which share a stage, by sub-network."""
    from penstock.engine.spark.plan import lay_out

    assert isinstance(network, Network)
    lines = ["on Spark"]
    for sub in split(network):
        layout = lay_out(sub)
        lines.append(
            f"  query '{sub.name}' reads {', '.join(sub.inputs)}; writes {', '.join((*sub.points, *sub.outputs))}"
        )
        if layout.native:
            lines.append(f"    native: {', '.join(layout.native)}")
        for stage in layout.stages:
            by = (
                "any partition"
                if stage.keys is None
                else f"diffused over {stage.servers or 'all'} partitions"
                if stage.spread
                else f"by {', '.join(stage.keys)}"
                if stage.keys
                else "one partition"
            )
            lines.append(f"    stage ({by}): {', '.join(stage.nodes)}")
    return "\n".join(lines)


def draw(
    net: Net,
    out: Annotated[
        Path, typer.Option("-o", "--out", help="Where to write: .svg, .mmd (Mermaid) or .html.")
    ] = Path("net.svg"),
) -> None:
    """Draw the network as a picture."""
    with told():
        network = load_network(net)
        check_network(network)
        forms = {".svg": network.to_svg, ".mmd": network.to_mermaid, ".html": network._repr_html_}
        if out.suffix not in forms:
            raise PenstockError(f"cannot draw to '{out.suffix}'; use one of: {', '.join(forms)}")
        out.write_text(forms[out.suffix]())
        typer.echo(f"wrote {out}")
