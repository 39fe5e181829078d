"""A network as a Mermaid flowchart, which Markdown pages can show (Aurora, Sect. 2.3)."""

from __future__ import annotations

from penstock.model.boxes import ConnectionPoint, Node, Output, Source, View
from penstock.model.pictures.box_line import argument, kind
from penstock.model.writing.network import Network


def to_mermaid(network: Network) -> str:
    """A Mermaid flowchart: groups as subgraphs, connection points as cylinders."""
    ids = {name: f"n{at}" for at, name in enumerate(network.nodes)}
    lines = ["flowchart LR", *_group(network, ids, ())]
    lines += [f"  {ids[arrow.tail]} --> {ids[arrow.head]}" for arrow in network.arrows]
    return "\n".join(lines) + "\n"


def _group(network: Network, ids: dict[str, str], path: tuple[str, ...]) -> list[str]:
    pad = "  " * (len(path) + 1)
    lines = [pad + ids[n.name] + _shape(n) for n in network.nodes.values() if n.about.group == path]
    for at, inner in enumerate(network.groups):
        if len(inner) == len(path) + 1 and inner[: len(path)] == path:
            lines.append(f'{pad}subgraph g{at} ["{_quoted(inner[-1])}"]')
            lines += [*_group(network, ids, inner), f"{pad}end"]
    return lines


def _shape(node: Node) -> str:
    text = f'"<b>{_quoted(node.name)}</b><br/>{_quoted(kind(node))} {_quoted(argument(node))}"'
    left, right = {
        Source: ("([", "])"),
        ConnectionPoint: ("[(", ")]"),
        View: ("[(", ")]"),
        Output: ("[[", "]]"),
    }.get(type(node), ("[", "]"))
    return left + text + right


def _quoted(text: str) -> str:
    """Mermaid reads '#' as the start of a code of its own, so that goes first."""
    text = text.replace("#", "#35;").replace("&", "#amp;").replace("<", "#lt;").replace(">", "#gt;")
    return text.replace('"', "#quot;").replace("\n", " ")
