"""A network as text: what each node does, reads and gives (Aurora, Sect. 2.3)."""

from __future__ import annotations

from collections import Counter

from penstock.model.boxes import ConnectionPoint, Node, Output, Source, View
from penstock.model.pictures.box_line import argument, kind
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
    lines = [f"network '{network.name}': {census(network)}", ""]
    for node in network.nodes.values():
        first, *rest = _lines(network, node)
        lines.append(f"{_title(node):<{width}}  {first}")
        lines += [f"{'':<{width}}  {line}" for line in rest]
    return "\n".join(lines)


def _title(node: Node) -> str:
    return "/".join((*node.about.group, node.name))


def census(network: Network) -> str:
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
    if node.stands_for != (node.name,):
        lines.append(f"as written: {', '.join(node.stands_for)}")
    lines += _gives(network, node)
    if node.shed_by or getattr(node, "shed", False):
        lines.append(f"shed: {node.shed_by or 'its history may have gaps under overload'}")
    if node.qos is not None:
        lines.append(qos_text(node.qos))
    about = node.about
    texts = (f"[{about.tag}]" if about.tag else "", about.description, *about.manual.splitlines())
    return lines + [text for text in texts if text.strip()]


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
    parts += [f"weight {qos.weight:g}"] * (qos.weight != 1) + ["may be approximate"] * qos.approximate
    return "QoS: " + ", ".join(parts)
