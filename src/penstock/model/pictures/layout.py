"""Layout: where nodes and arrows go in a picture, in layers from left to right.

A group is laid out first. It is then one big node of the picture around it (A32), so no foreign node can land
inside. An arrow that passes other layers takes up room in each of them, so it runs between boxes, not over
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from penstock.model.pictures.diagram import Diagram, DiagramArrow

Path = tuple[str, ...]
Point = tuple[float, float]
Size = tuple[float, float]
GAP_X, GAP_Y, PAD, HEADER = 44.0, 20.0, 18.0, 22.0


@dataclass
class Item:
    """Something that takes up room in a layer: a node, a group, or an arrow passing through."""

    width: float
    height: float
    layer: int = 0
    x: float = 0.0
    y: float = 0.0
    column: tuple[float, float] = (0.0, 0.0)
    before: list[Item] = field(default_factory=list)
    after: list[Item] = field(default_factory=list)

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


@dataclass(frozen=True)
class Rect:
    """A rectangle of the picture."""

    x: float
    y: float
    width: float
    height: float


@dataclass
class Picture:
    """Coordinates: nodes and the edges of their layers, groups (outer first), the points of each arrow."""

    width: float
    height: float
    nodes: dict[str, Rect]
    columns: dict[str, tuple[float, float]]
    groups: dict[Path, Rect]
    routes: dict[tuple[str, str, int], list[Point]]


class _Level:
    """The inside of one group: its nodes, its inner groups, and the arrows between them or across."""

    def __init__(self, diagram: Diagram, path: Path, size_of: Callable[[str], Size], gap: float) -> None:
        self.diagram, self.path, self.gap = diagram, path, gap
        self.inner = {p: _Level(diagram, p, size_of, gap) for p in diagram.groups if p[:-1] == path}
        self.items: dict[object, Item] = {}
        for name, card in diagram.cards.items():
            if card.group == path:
                self.items[name] = Item(*size_of(name))
        for inner_path, level in self.inner.items():
            if level.items:
                self.items[inner_path] = Item(level.width, level.height)
        self.passages: dict[tuple[str, str, int], list[Item]] = {}  # of each arrow, one in each layer
        self._arrange()

    def owner(self, name: str) -> object | None:
        """The node or inner group that holds this node at this level; None if the node is outside."""
        group, depth = self.diagram.cards[name].group, len(self.path)
        if group[:depth] != self.path:
            return None
        return name if len(group) == depth else group[: depth + 1]

    def _arrange(self) -> None:
        pairs = [(self.owner(a.tail), self.owner(a.head)) for a in self.diagram.arrows]
        layers = _layers(
            list(self.items), [(t, h) for t, h in pairs if t is not None and h is not None and t != h]
        )
        for key, item in self.items.items():
            item.layer = layers[key]
        last = max(layers.values(), default=0)
        for arrow, (tail, head) in zip(self.diagram.arrows, pairs, strict=True):
            if tail != head:
                start = self.items[tail] if tail is not None else None
                end = self.items[head] if head is not None else None
                self.passages[arrow.key] = _passages(start, end, last)
        items = [*self.items.values(), *(item for items in self.passages.values() for item in items)]
        self.width, self.height = _assign_coordinates(
            items, last, header=HEADER if self.path else 0.0, gap=self.gap
        )

    def collect(self, picture: Picture, x: float, y: float) -> None:
        """Write coordinates into the picture; this level's corner is at (x, y)."""
        for key, item in self.items.items():
            rect = Rect(x + item.x, y + item.y, item.width, item.height)
            if isinstance(key, str):
                picture.nodes[key] = rect
                picture.columns[key] = (x + item.column[0], x + item.column[1])
            else:
                assert isinstance(key, tuple)
                picture.groups[key] = rect
                self.inner[key].collect(picture, rect.x, rect.y)
        for arrow, items in self.passages.items():
            points = [(x + at, y + item.middle) for item in items for at in (item.x, item.x + item.width)]
            picture.routes.setdefault(arrow, []).extend(points)


def _passages(start: Item | None, end: Item | None, last: int) -> list[Item]:
    """One item in each layer that an arrow passes; without an end it runs to the border."""
    low = start.layer + 1 if start else 0
    high = end.layer - 1 if end else last
    passages = [Item(0.0, 6.0, layer) for layer in range(low, high + 1)]
    chain = [item for item in (start, *passages, end) if item is not None]
    for one, two in pairwise(chain):
        one.after.append(two)
        two.before.append(one)
    return passages


def _layers(keys: list[object], pairs: Iterable[tuple[object, object]]) -> dict[object, int]:
    """The longest path from the left. Where groups feed each other, the later arrow runs back."""
    after: dict[object, list[object]] = {key: [] for key in keys}
    for tail, head in pairs:
        if not _reaches(after, head, tail):
            after[tail].append(head)
    layers = dict.fromkeys(keys, 0)
    for _ in keys:
        for tail, heads in after.items():
            for head in heads:
                layers[head] = max(layers[head], layers[tail] + 1)
    fed = {head for heads in after.values() for head in heads}
    for key in keys:
        # A source belongs next to its first reader, not at the far left.
        if key not in fed and after[key]:
            layers[key] = min(layers[head] for head in after[key]) - 1
    return layers


def _reaches(after: Mapping[object, list[object]], start: object, goal: object) -> bool:
    seen, todo = {start}, [start]
    while todo:
        key = todo.pop()
        if key == goal:
            return True
        todo += [k for k in after[key] if k not in seen]
        seen.update(after[key])
    return False


def _assign_coordinates(items: list[Item], last: int, *, header: float, gap: float) -> Size:
    layers = [[item for item in items if item.layer == at] for at in range(last + 1)]
    _reduce_crossings(layers)
    right = PAD
    for layer in layers:
        width = max((item.width for item in layer), default=0.0)
        for item in layer:
            item.column = (right, right + width)
            # A passing arrow spans the whole layer, so it runs beside the boxes there.
            if item.width == 0.0:
                item.x, item.width = right, width
            else:
                item.x = right + (width - item.width) / 2
        right += width + gap
    _assign_heights(layers)
    top = min((item.y for item in items), default=0.0)
    for item in items:
        item.y += PAD + header - top
    bottom = max((item.y + item.height for item in items), default=0.0)
    return max(right - gap, PAD) + PAD, bottom + PAD


def _reduce_crossings(layers: list[list[Item]]) -> None:
    """Sort each layer by the mean rank of its neighbours, forth and back, so that few arrows cross."""
    for sweep in range(6):
        forth = sweep % 2 == 0
        rank = {id(item): at for layer in layers for at, item in enumerate(layer)}
        for layer in layers if forth else layers[::-1]:
            keys = {
                id(i): _mean([rank[id(n)] for n in (i.before if forth else i.after)], rank[id(i)])
                for i in layer
            }
            layer.sort(key=lambda item: keys[id(item)])
            rank.update({id(item): at for at, item in enumerate(layer)})


def _assign_heights(layers: list[list[Item]]) -> None:
    """Move each item as near to its neighbours' middle as the order allows."""
    for layer in layers:
        _stack(layer, [0.0] * len(layer))
    for sweep in range(8):
        for layer in layers if sweep % 2 == 0 else layers[::-1]:
            wanted = [
                _mean([n.middle for n in (*i.before, *i.after)], i.middle) - i.height / 2 for i in layer
            ]
            _stack(layer, wanted)


def _stack(layer: list[Item], wanted: list[float]) -> None:
    floor = float("-inf")
    for item, wish in zip(layer, wanted, strict=True):
        item.y = max(wish, floor)
        floor = item.y + item.height + GAP_Y
    # Pushing down alone would drift: move the whole layer back by the average push.
    drift = _mean([item.y - wish for item, wish in zip(layer, wanted, strict=True)], 0.0)
    for item in layer:
        item.y -= drift


def _mean(values: list[float] | list[int], default: float) -> float:
    return sum(values) / len(values) if values else default


def lay_out(diagram: Diagram, size_of: Callable[[str], Size] | None = None, gap: float = GAP_X) -> Picture:
    """The picture of a diagram whose cards have these sizes, and layers that are so far apart."""
    level = _Level(diagram, (), size_of or (lambda name: diagram.cards[name].size), gap)
    picture = Picture(level.width, level.height, {}, {}, {}, {})
    level.collect(picture, 0.0, 0.0)
    for route in picture.routes.values():
        # Outer levels come first; sorted by x, the points form an arrow that runs to the right.
        route.sort()
    return picture


def arrow_points(diagram: Diagram, picture: Picture, arrow: DiagramArrow) -> list[Point]:
    """Where an arrow runs, from card to card."""
    tail, head = picture.nodes[arrow.tail], picture.nodes[arrow.head]
    start = (tail.x + tail.width, tail.y + tail.height / 2)
    end = (head.x, head.y + head.height * (arrow.index + 1) / (diagram.entering[arrow.head] + 1))
    route = picture.routes.get(arrow.key, [])
    between = [point for point in route if start[0] < point[0] < end[0]]
    # Arrows bend between layers only, so they cross no card of their own layer.
    leave, enter = (picture.columns[arrow.tail][1], start[1]), (picture.columns[arrow.head][0], end[1])
    return [start, leave, *between, enter, end] if leave[0] < enter[0] else [start, end]


def curve(points: list[Point]) -> str:
    """The path of SVG through some points: it leaves and enters each of them level."""
    text = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        if (x0, y0) == (x1, y1):
            continue
        bend = max(abs(x1 - x0) / 2, 24.0) if x1 <= x0 else (x1 - x0) / 2
        text += f" C{x0 + bend:.1f},{y0:.1f} {x1 - bend:.1f},{y1:.1f} {x1:.1f},{y1:.1f}"
    return text
