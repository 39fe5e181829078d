"""A network as SVG: groups are frames, connection points are cylinders, outputs show their QoS graph."""

from __future__ import annotations

from html import escape

from penstock.model.boxes import Node, Trait
from penstock.model.pictures.box_line import argument, kind
from penstock.model.pictures.diagram import card_of, diagram_of, short
from penstock.model.pictures.layout import Point, Rect, arrow_points, curve, lay_out
from penstock.model.qos import QoS
from penstock.model.writing.network import Network

_STYLE = """
.ps text{font-family:system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;fill:#1f2933}
.ps .kind{font-size:10px;fill:#5b6875;letter-spacing:.03em}.ps .name{font-size:13px;font-weight:600}
.ps .arg{font-size:11px;fill:#3e4c59;font-family:ui-monospace,"DejaVu Sans Mono",monospace}
.ps .box{fill:#fff;stroke:#7b8794}
.ps .source{fill:#e3f2ec;stroke:#2f855a}.ps .output{fill:#fdf3e1;stroke:#b7791f}
.ps .point{fill:#e6effb;stroke:#2b6cb0}.ps .view{fill:#f1f5fb;stroke:#2b6cb0;stroke-dasharray:4 3}
.ps .group{fill:#7b8794;fill-opacity:.07;stroke:#9aa5b1;stroke-dasharray:5 4}
.ps .groupname{font-size:12px;font-weight:600;fill:#52606d}
.ps .arrow{fill:none;stroke:#616e7c;stroke-width:1.4}
.ps .qos{fill:none;stroke:#b7791f;stroke-width:1.5}.ps .axis{fill:none;stroke:#cbb68f}
""".strip().replace("\n", "")


def to_svg(network: Network) -> str:
    """The whole picture; it needs nothing outside of it."""
    diagram = diagram_of(network)
    picture = lay_out(diagram)
    parts = [_group(path[-1], rect) for path, rect in picture.groups.items()]
    parts += [_arrow(arrow_points(diagram, picture, arrow)) for arrow in diagram.arrows]
    parts += [_node(network, node, picture.nodes[name]) for name, node in network.nodes.items()]
    width, height = round(picture.width), round(picture.height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="ps" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img"><title>network {escape(network.name)}</title>'
        f"<style>{_STYLE}</style>"
        '<defs><marker id="ps-head" viewBox="0 0 8 8" refX="7.5" refY="4" '
        'markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0,0.5 L8,4 L0,7.5 z" fill="#616e7c"/></marker></defs>'
        f'<rect width="{width}" height="{height}" fill="#fff"/>' + "".join(parts) + "</svg>"
    )


def _group(name: str, rect: Rect) -> str:
    return (
        f'<g><rect class="group" {_frame(rect)} rx="10"/>'
        f'<text class="groupname" x="{rect.x + 12:.1f}" y="{rect.y + 18:.1f}">'
        f"{escape(short(name))}</text></g>"
    )


def _node(network: Network, node: Node, rect: Rect) -> str:
    lid = 8 if Trait.KEPT in node.traits else 0
    x, y = rect.x + 12, rect.y + lid
    about, columns = node.about, network.types[node.name].schema.ddl()
    tip = "\n".join(filter(None, (about.description, about.manual, argument(node), columns)))
    return (
        f'<g data-node="{escape(node.name)}"><title>{escape(tip)}</title>{_shape(node, rect)}'
        f'<text class="kind" x="{x:.1f}" y="{y + 16:.1f}">{escape(kind(node))}</text>'
        f'<text class="name" x="{x:.1f}" y="{y + 32:.1f}">{escape(short(node.name))}</text>'
        f'<text class="arg" x="{x:.1f}" y="{y + 47:.1f}">{escape(short(argument(node)))}</text>'
        + (_graph(node.qos, x, rect.y + rect.height - 34) if node.qos else "")
        + "</g>"
    )


def _shape(node: Node, rect: Rect) -> str:
    look = card_of(node).look
    if look in ("point", "view"):
        return _cylinder(look, rect)
    radius = 18 if look in ("source", "output") else 5
    return f'<rect class="{look}" {_frame(rect)} rx="{radius}"/>'


def _frame(rect: Rect) -> str:
    return f'x="{rect.x:.1f}" y="{rect.y:.1f}" width="{rect.width:.1f}" height="{rect.height:.1f}"'


def _cylinder(look: str, rect: Rect) -> str:
    left, right, rim = rect.x, rect.x + rect.width, 7
    top, bottom, half = rect.y + rim, rect.y + rect.height - rim, rect.width / 2
    start, arc = f"M{left:.1f},{top:.1f}", f"A{half:.1f},{rim} 0 0"
    return (
        f'<path class="{look}" d="{start} {arc} 1 {right:.1f},{top:.1f} V{bottom:.1f} '
        f'{arc} 1 {left:.1f},{bottom:.1f} Z"/>'
        f'<path class="{look}" d="{start} {arc} 0 {right:.1f},{top:.1f}" fill="none"/>'
    )


def _graph(qos: QoS, x: float, y: float) -> str:
    """The delay graph, small: utility over seconds."""
    wide, high = 66.0, 20.0
    longest = qos.delay[-1][0] or 1.0
    points = " ".join(
        f"{x + wide * at / longest:.1f},{y + high * (1 - utility):.1f}" for at, utility in qos.delay
    )
    return (
        f'<path class="axis" d="M{x:.1f},{y:.1f} V{y + high:.1f} H{x + wide:.1f}"/>'
        f'<polyline class="qos" points="{points}"/>'
        f'<text class="kind" x="{x + wide + 5:.1f}" y="{y + high:.1f}">{longest:g} s</text>'
    )


def _arrow(points: list[Point]) -> str:
    return f'<path class="arrow" marker-end="url(#ps-head)" d="{curve(points)}"/>'
