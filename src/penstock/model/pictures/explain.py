"""A network for people: explain text, Mermaid, and the HTML of notebooks (Aurora, Sect. 2.3)."""

from __future__ import annotations

from collections import Counter
from html import escape

from penstock.model.boxes import ConnectionPoint, Node, Output, Source, View
from penstock.model.pictures.box_line import argument, kind
from penstock.model.pictures.svg import network_svg
from penstock.model.qos import QoS
from penstock.model.writing.network import Network


def explain(network: Network) -> str:
    """What each node does, reads and gives.

    >>> import penstock as ps
    >>> net = ps.Network("n")
    >>> end = net.output("even", net.source("ticks", ps.rate(5)).filter("value % 2 = 0"), to=ps.console())
    >>> print(net.explain())
    network 'n': 1 source, 1 box, 1 output
    <BLANKLINE>
    ticks     source rate 5/s
              gives timestamp TIMESTAMP, value BIGINT
    filter_1  filter value % 2 = 0
              from ticks
    even      output console
              from filter_1
    """
    width = max((len(_title(node)) for node in network.nodes.values()), default=0)
    lines = [f"network '{network.name}': {_census(network)}", ""]
    for node in network.nodes.values():
        first, *rest = _lines(network, node)
        lines.append(f"{_title(node):<{width}}  {first}")
        lines += [f"{'':<{width}}  {line}" for line in rest]
    return "\n".join(lines)


def _title(node: Node) -> str:
    return "/".join((*node.about.group, node.name))


def _census(network: Network) -> str:
    counts = Counter(_class(node) for node in network.nodes.values())
    plural = {"box": "boxes"}
    parts = [f"{n} {word if n == 1 else plural.get(word, word + 's')}" for word, n in counts.items()]
    return ", ".join(parts) or "empty"


def _class(node: Node) -> str:
    return kind(node) if isinstance(node, Source | ConnectionPoint | View | Output) else "box"


def _lines(network: Network, node: Node) -> list[str]:
    lines = [f"{kind(node)} {argument(node)}"]
    if node.inputs:
        lines.append(f"from {', '.join(node.inputs)}")
    lines += _gives(network, node)
    qos = getattr(node, "qos", None)
    if qos is not None:
        lines.append(qos_text(qos))
    about = node.about
    return lines + [text for text in (f"[{about.tag}]" if about.tag else "", about.description) if text]


def _gives(network: Network, node: Node) -> list[str]:
    """The columns, unless they are those of the input."""
    now = network.types[node.name]
    before = network.types[node.inputs[0]] if node.inputs else None
    lines = [] if before is not None and before.schema == now.schema else [f"gives {now.schema.ddl()}"]
    if before is not None and now.keys and now.keys != before.keys:
        lines.append(f"grouped by {', '.join(now.keys)}")
    return lines


def qos_text(qos: QoS) -> str:
    """A QoS in one line: how long an answer is good, and when it is worthless."""
    parts = [f"good up to {qos.threshold:g} s, {qos.delay[-1][1]:g} at {qos.delay[-1][0]:g} s"]
    parts += ["loss graph"] * bool(qos.loss) + [f"value graph of {qos.column}"] * bool(qos.value)
    parts += [f"weight {qos.weight:g}"] * (qos.weight != 1)
    return "QoS: " + ", ".join(parts)


def to_mermaid(network: Network) -> str:
    """A Mermaid flowchart: groups as subgraphs, connection points as cylinders."""
    ids = {name: f"n{at}" for at, name in enumerate(network.nodes)}
    lines = ["flowchart LR", *_mermaid_group(network, ids, ())]
    lines += [f"  {ids[arrow.tail]} --> {ids[arrow.head]}" for arrow in network.arrows]
    return "\n".join(lines) + "\n"


def _mermaid_group(network: Network, ids: dict[str, str], path: tuple[str, ...]) -> list[str]:
    pad = "  " * (len(path) + 1)
    lines = [pad + ids[n.name] + _mermaid_shape(n) for n in network.nodes.values() if n.about.group == path]
    for at, inner in enumerate(network.groups):
        if len(inner) == len(path) + 1 and inner[: len(path)] == path:
            lines.append(f'{pad}subgraph g{at} ["{_quoted(inner[-1])}"]')
            lines += [*_mermaid_group(network, ids, inner), f"{pad}end"]
    return lines


def _mermaid_shape(node: Node) -> str:
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


def to_svg(network: Network) -> str:
    """A picture that needs nothing else."""
    return network_svg(network)


def to_html(network: Network) -> str:
    """What a notebook shows: the picture, and the explanation folded away."""
    return (
        f'<div class="penstock-network" style="overflow-x:auto">{to_svg(network)}'
        f"<details><summary>{escape(network.name)}: {escape(_census(network))}</summary>"
        f"<pre>{escape(explain(network))}</pre></details></div>"
    )
