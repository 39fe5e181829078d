"""A network as JSON: the same picture that `penstock draw` shows, and what each node is (A32-A34)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from penstock.model.boxes import Kept, Node, Trait
from penstock.model.json_types import JsonObject
from penstock.model.pictures.diagram import Card, Diagram, DiagramArrow, closed, diagram_of, group_name
from penstock.model.pictures.layout import Picture, Rect, arrow_points, curve, lay_out
from penstock.model.qos import QoS
from penstock.model.writing.network import Network
from penstock.store.catalog.record_types import NodeRecord, Topology

GroupPath = tuple[str, ...]
DOWN_GAP, WIDEST, FIGURES = 48.0, 184.0, 14.0
"""Of a picture that runs down: between layers, of a card, and the line of figures in a card."""
_PAIR = re.compile(r"(-?[\d.]+),(-?[\d.]+)")


@dataclass(frozen=True)
class NetworkText:
    """A version of a network and its text; without a text, why there is none."""

    version: int
    yaml: str | None
    why_not: str = ""


def network_json(
    network: Network,
    text: NetworkText,
    homes: Mapping[str, str],
    shut: Collection[str],
    *,
    down: bool = False,
) -> JsonObject:
    """The picture and the nodes of a network. `homes`: the sub-network of each node. `shut`: closed groups.

    It runs to the right, as `penstock draw` shows it, or `down`.

    >>> import penstock as ps
    >>> net = ps.Network("n")
    >>> end = net.output("even", net.source("ticks", ps.rate(5)).filter("value % 2 = 0"), to=ps.console())
    >>> shown = network_json(net, NetworkText(1, None), {}, ())
    >>> [arrow["id"] for arrow in shown["arrows"]]
    ['ticks:filter_1:0', 'filter_1:even:0']
    """
    facts = {name: _node_facts(network, node, homes) for name, node in network.nodes.items()}
    groups = {
        path: {"tag": about.tag, "description": about.description, "manual": about.manual}
        for path, about in network.groups.items()
    }
    return {"name": network.name, **_text(text), **_picture(diagram_of(network), facts, groups, shut, down)}


def topology_json(
    name: str, topology: Topology, text: NetworkText, shut: Collection[str], *, down: bool = False
) -> JsonObject:
    """The same from the catalog alone, for a network without a text form: columns are not known then."""
    cards = [_card(node) for node in topology.nodes]
    arrows = [(arrow.tail, arrow.head, arrow.index) for arrow in topology.arrows]
    paths = {node.group[:depth] for node in topology.nodes for depth in range(1, len(node.group) + 1)}
    diagram = Diagram.of(cards, arrows, sorted(paths, key=len))
    facts = {node.name: _record_facts(node, topology) for node in topology.nodes}
    return {"name": name, **_text(text), **_picture(diagram, facts, {}, shut, down)}


def _text(text: NetworkText) -> JsonObject:
    return {
        "version": text.version,
        "yaml": text.yaml,
        "editable": not text.why_not,
        "why_not": text.why_not or None,
    }


def _picture(
    diagram: Diagram,
    facts: Mapping[str, JsonObject],
    groups: Mapping[GroupPath, JsonObject],
    shut: Collection[str],
    down: bool,
) -> JsonObject:
    paths = [path for path in diagram.groups if "/".join(path) in shut]
    shown = closed(diagram, paths) if paths else diagram
    picture = (
        lay_out(shown, lambda name: turned_size(shown.cards[name]), DOWN_GAP) if down else lay_out(shown)
    )
    turned = _turned if down else _as_it_is
    size = turned((picture.width, picture.height))
    return {
        "down": down,
        "width": round(size[0], 1),
        "height": round(size[1], 1),
        "nodes": [
            _node(card, picture.nodes[name], facts.get(name), turned) for name, card in shown.cards.items()
        ],
        "groups": [_group(path, rect, groups.get(path, {}), turned) for path, rect in picture.groups.items()],
        "closed": sorted("/".join(path) for path in paths),
        "arrows": [_arrow(shown, picture, arrow, turned) for arrow in shown.arrows],
        "all_groups": ["/".join(path) for path in diagram.groups],
    }


Pair = tuple[float, float]
Turn = Callable[[Pair], Pair]
"""The layout runs from left to right. A picture that runs down is the same with its axes exchanged."""


def _as_it_is(pair: Pair) -> Pair:
    return pair


def _turned(pair: Pair) -> Pair:
    return pair[1], pair[0]


def turned_size(card: Card) -> Pair:
    """The size of a card in a layout that is turned afterwards: not too wide, with room for its figures."""
    width, height = card.size
    return height + FIGURES, min(width, WIDEST)


def arrow_id(tail: str, head: str, index: int) -> str:
    """The name of an arrow in addresses.

    >>> arrow_id("cars", "slow", 0)
    'cars:slow:0'
    """
    return f"{tail}:{head}:{index}"


def _arrow(diagram: Diagram, picture: Picture, arrow: DiagramArrow, turned: Turn) -> JsonObject:
    points = arrow_points(diagram, picture, arrow)
    # An arrow at a closed group stands for several; each of them has its own figures.
    members = [arrow_id(*key) for key in arrow.members]
    return {
        "id": members[0] if len(members) == 1 else arrow_id(*arrow.key),
        "tail": arrow.tail,
        "head": arrow.head,
        "index": arrow.index,
        "members": members,
        "path": _PAIR.sub(r"\2,\1", curve(points)) if turned is _turned else curve(points),
        "points": [[round(x, 1), round(y, 1)] for x, y in map(turned, points)],
    }


def _rect(rect: Rect, turned: Turn) -> JsonObject:
    (x, y), (w, h) = turned((rect.x, rect.y)), turned((rect.width, rect.height))
    return {"x": round(x, 1), "y": round(y, 1), "w": round(w, 1), "h": round(h, 1)}


def _group(path: GroupPath, rect: Rect, about: JsonObject, turned: Turn) -> JsonObject:
    texts = {"tag": "", "description": "", "manual": "", **about}
    return {"path": "/".join(path), "name": path[-1], **_rect(rect, turned), **texts}


def _node(card: Card, rect: Rect, facts: JsonObject | None, turned: Turn) -> JsonObject:
    shown = {
        "name": card.name,
        "kind": card.kind,
        "look": card.look,
        "argument": card.argument,
        "group": "/".join(card.group),
        **_rect(rect, turned),
    }
    if card.look == "group":
        shown["path"] = group_name((*card.group, card.name.rstrip("/").rpartition("/")[2])).rstrip("/")
    return {**shown, **(facts or _NO_FACTS)}


_NO_FACTS: JsonObject = {
    "subnetwork": None,
    "inputs": [],
    "columns": None,
    "keys": [],
    "stateful": False,
    "tag": "",
    "description": "",
    "manual": "",
    "qos": None,
    "keep": None,
}


def _node_facts(network: Network, node: Node, homes: Mapping[str, str]) -> JsonObject:
    type_, about = network.types[node.name], node.about
    return {
        "subnetwork": homes.get(node.name),
        "inputs": list(node.inputs),
        "columns": [{"name": column.name, "type": column.type} for column in type_.schema],
        "keys": list(type_.keys),
        "stateful": Trait.STATEFUL in node.traits,
        "tag": about.tag,
        "description": about.description,
        "manual": about.manual,
        "qos": None if node.qos is None else qos_json(node.qos),
        "keep": node.keep / 1e6 if isinstance(node, Kept) else None,
    }


def qos_json(qos: QoS) -> JsonObject:
    """The graphs of a QoS, points as pairs."""
    return {
        "delay": [list(point) for point in qos.delay],
        "loss": [list(point) for point in qos.loss],
        "value": [list(point) for point in qos.value],
        "column": qos.column,
        "weight": qos.weight,
        "approximate": qos.approximate,
        "threshold": qos.threshold,
    }


_LOOKS = {"source": "source", "output": "output", "connection_point": "point", "view": "view"}


def _card(node: NodeRecord) -> Card:
    graph = () if node.qos is None else node.qos.delay
    look = _LOOKS.get(node.kind, "box")
    return Card(node.name, node.kind.replace("_", " "), look, "", node.group, graph)


def _record_facts(node: NodeRecord, topology: Topology) -> JsonObject:
    inputs = sorted((a.index, a.tail) for a in topology.arrows if a.head == node.name)
    return {
        **_NO_FACTS,
        "subnetwork": node.subnetwork or None,
        "inputs": [tail for _, tail in inputs],
        "tag": node.tag,
        "description": node.description,
        "qos": None if node.qos is None else qos_json(node.qos),
    }
