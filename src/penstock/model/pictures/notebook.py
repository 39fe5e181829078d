"""What a notebook shows of a network: the picture, and the explanation folded away."""

from __future__ import annotations

from html import escape

from penstock.model.pictures.explain import census, explain
from penstock.model.pictures.svg import to_svg
from penstock.model.writing.network import Network


def to_html(network: Network) -> str:
    """The picture and the explanation in one piece of HTML that needs nothing else."""
    return (
        f'<div class="penstock-network" style="overflow-x:auto">{to_svg(network)}'
        f"<details><summary>{escape(network.name)}: {escape(census(network))}</summary>"
        f"<pre>{escape(explain(network))}</pre></details></div>"
    )
