"""What diffused joins chose while they ran (S12), in words, from the events in the catalog."""

from __future__ import annotations

from pathlib import Path

from penstock.model.json_types import JsonMapping
from penstock.model.writing.network import Network
from penstock.store.catalog.catalog import Catalog


def join_choices_text(network: Network, checkpoint: Path) -> str:
    """Describe what a network's diffused joins have chosen, from the catalog of its checkpoint."""
    if not (checkpoint / "catalog.db").exists():
        return f"chosen in {checkpoint}\n  no train has run yet"
    catalog = Catalog(checkpoint / "catalog.db")
    try:
        joins = [n.name for n in network.nodes.values() if n.spread]
        lines = [f"chosen in {checkpoint}"]
        for name in joins:
            events = catalog.events("diffusion", name)
            lines += [f"  {name}: {_chosen(event.detail)}" for event in events[-5:]] or [
                f"  {name}: no train yet"
            ]
    finally:
        catalog.close()
    return "\n".join(lines if joins else [*lines, "  no diffused join"])


def _chosen(detail: JsonMapping) -> str:
    scheme = detail["scheme"]
    what = "hash" if scheme == "hash" else f"diffused, master {scheme}"
    text = f"from train {detail['train']} on {what}, {detail['servers']} servers (epoch {detail['epoch']})"
    if detail.get("rates"):
        left, right = detail["rates"]
        text += f"; measured before: left {left:,.1f} and right {right:,.1f} tuples a second of stream time"
    if detail.get("share"):
        text += f", hottest server {detail['share']:.0%} of the load"
    return text
