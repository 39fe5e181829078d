"""What a picture shows of a network: cards, arrows and groups, without a place yet.

A group can be shown as one card (A33). The arrows that entered or left its boxes then end at that card, and
those between the same two cards become one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from penstock.model.boxes import ConnectionPoint, Node, Output, Source, View
from penstock.model.pictures.box_line import argument, kind
from penstock.model.writing.network import Network

GroupPath = tuple[str, ...]
ArrowKey = tuple[str, str, int]
_LONGEST = 32
_LOOKS = {Source: "source", Output: "output", ConnectionPoint: "point", View: "view"}


@dataclass(frozen=True)
class Card:
    """One node, or one closed group. `graph` is the delay graph of its QoS."""

    name: str
    kind: str
    look: str = "box"  # source, output, point, view, box, group
    argument: str = ""
    group: GroupPath = ()
    graph: tuple[tuple[float, float], ...] = ()

    @property
    def kept(self) -> bool:
        """Whether it is drawn as a cylinder, because it keeps tuples."""
        return self.look in ("point", "view")

    @property
    def size(self) -> tuple[float, float]:
        """Width and height. Nobody can measure text here, so these are generous widths of usual fonts."""
        texts = (8.2 * len(short(self.name)), 7.0 * len(short(self.argument)), 6.5 * len(self.kind))
        height = 56.0 + (12.0 if self.kept else 0.0) + (34.0 if self.graph else 0.0)
        return max(136.0 if self.graph else 96.0, max(texts) + 24.0), height


@dataclass(frozen=True)
class DiagramArrow:
    """An arrow between two cards; `members` are the arrows of the network that it stands for."""

    tail: str
    head: str
    index: int
    members: tuple[ArrowKey, ...] = ()

    @property
    def key(self) -> ArrowKey:
        return self.tail, self.head, self.index


@dataclass(frozen=True)
class Diagram:
    """All that is shown."""

    cards: Mapping[str, Card]
    arrows: tuple[DiagramArrow, ...]
    groups: tuple[GroupPath, ...] = ()
    entering: Mapping[str, int] = field(default_factory=dict)  # how many arrows enter each card

    @staticmethod
    def of(cards: Iterable[Card], arrows: Iterable[ArrowKey], groups: Iterable[GroupPath]) -> Diagram:
        """From the cards and arrows of a network, all groups open."""
        shown = [DiagramArrow(*key, (key,)) for key in arrows]
        return _counted({card.name: card for card in cards}, shown, tuple(groups))


def diagram_of(network: Network) -> Diagram:
    """The diagram of a network with all groups open.

    >>> import penstock as ps
    >>> net = ps.Network("n")
    >>> end = net.output("even", net.source("ticks", ps.rate(5)).filter("value % 2 = 0"), to=ps.console())
    >>> [(card.look, card.argument) for card in diagram_of(net).cards.values()]
    [('source', 'rate 5/s'), ('box', 'value % 2 = 0'), ('output', 'console')]
    """
    arrows = [(arrow.tail, arrow.head, arrow.index) for arrow in network.arrows]
    return Diagram.of(map(card_of, network.nodes.values()), arrows, network.groups)


def card_of(node: Node) -> Card:
    """The card of a node."""
    look = _LOOKS.get(type(node), "box")
    graph = () if node.qos is None else node.qos.delay
    return Card(node.name, kind(node), look, argument(node), node.about.group, graph)


def short(text: str) -> str:
    """A text that fits onto a card."""
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def group_name(path: GroupPath) -> str:
    """The name of a closed group's card; no node has a name with a slash at its end."""
    return "/".join(path) + "/"


def closed(diagram: Diagram, groups: Collection[GroupPath]) -> Diagram:
    """The diagram with some groups shown as one card each.

    >>> cards = [Card("a", "source"), Card("b", "filter", group=("g",)), Card("c", "map", group=("g",))]
    >>> whole = Diagram.of(cards, [("a", "b", 0), ("b", "c", 0)], [("g",)])
    >>> [(arrow.tail, arrow.head, arrow.members) for arrow in closed(whole, [("g",)]).arrows]
    [('a', 'g/', (('a', 'b', 0),))]
    """
    chosen = set(groups)
    home = {name: _outermost(card.group, chosen) for name, card in diagram.cards.items()}
    cards: dict[str, Card] = {}
    for name, card in diagram.cards.items():
        path = home[name]
        if path is None:
            cards[name] = card
        elif group_name(path) not in cards:
            cards[group_name(path)] = _group_card(diagram, path)
    arrows = _joined(diagram.arrows, home)
    open_groups = tuple(path for path in diagram.groups if _outermost(path, chosen) is None)
    return _counted(cards, arrows, open_groups)


def _outermost(group: GroupPath, chosen: set[GroupPath]) -> GroupPath | None:
    """The outermost closed group around a node."""
    return next((group[:d] for d in range(1, len(group) + 1) if group[:d] in chosen), None)


def _group_card(diagram: Diagram, path: GroupPath) -> Card:
    inside = sum(card.group[: len(path)] == path for card in diagram.cards.values())
    boxes = "1 box" if inside == 1 else f"{inside} boxes"
    return Card(group_name(path), "group", "group", boxes, path[:-1])


def _joined(arrows: Iterable[DiagramArrow], home: Mapping[str, GroupPath | None]) -> list[DiagramArrow]:
    joined: dict[tuple[str, str, int], list[ArrowKey]] = {}
    for arrow in arrows:
        tail, head = (_card_name(name, home[name]) for name in (arrow.tail, arrow.head))
        if tail == head:
            continue  # inside one closed group
        # Both inputs of a join stay two arrows, unless one of the ends is a closed group.
        index = arrow.index if home[arrow.tail] is None and home[arrow.head] is None else -1
        joined.setdefault((tail, head, index), []).extend(arrow.members)
    return [DiagramArrow(*key, tuple(members)) for key, members in joined.items()]


def _card_name(name: str, path: GroupPath | None) -> str:
    return name if path is None else group_name(path)


def _counted(
    cards: Mapping[str, Card], arrows: Iterable[DiagramArrow], groups: tuple[GroupPath, ...]
) -> Diagram:
    """Number the arrows that enter each card in their order."""
    entering = dict.fromkeys(cards, 0)
    numbered = []
    for arrow in arrows:
        numbered.append(replace(arrow, index=entering[arrow.head]))
        entering[arrow.head] += 1
    return Diagram(cards, tuple(numbered), groups, entering)
