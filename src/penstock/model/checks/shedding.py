"""What a box may say about shedding: by which grain tuples may be dropped in front of it (A84, A90).

The table of docs/shedding.md: whole windows only where there are windows of time, and nothing but whole keys
in front of boxes whose every answer depends on all tuples of a key.
"""

from __future__ import annotations

from penstock.model.boxes import Node, Trait, Windowed
from penstock.model.durations import Time
from penstock.model.error_location import node_error

NEVER = "never"
SHED_BY = ("tuples", "windows", "keys", NEVER)


def has_time_windows(node: Node) -> bool:
    """Whether the box closes windows of time: Tumble and Slide."""
    return isinstance(node, Windowed) and isinstance(node.size, Time)


def needs_whole_keys(node: Node) -> bool:
    """Whether each answer depends on all earlier tuples of its key: dropping some would make it wrong."""
    if Trait.STATEFUL not in node.traits or has_time_windows(node):
        return False
    return isinstance(node, Windowed) or Trait.SHEDDABLE not in node.traits


def check_shedding(node: Node) -> None:
    """Refuse a grain that is none, or that this box cannot have."""
    if not node.shed_by:
        return
    if not node.is_box:
        raise node_error(
            node,
            f"shed: '{node.shed_by}' is for boxes, this is a {node.kind}",
            hint="a connection point or view that may lose tuples says shed=True (shed: true)",
        )
    if node.shed_by not in SHED_BY:
        expected = f"one of: {', '.join(SHED_BY)}"
        raise node_error(node, "shed: not a grain", found=repr(node.shed_by), expected=expected)
    if node.shed_by == "windows" and not has_time_windows(node):
        raise node_error(
            node,
            f"shed: windows, but a {node.kind} has no windows of time",
            expected="shed: windows on a tumble or slide over time",
        )
    if node.shed_by == "tuples" and needs_whole_keys(node):
        raise node_error(
            node,
            f"shed: tuples, but each answer of this {node.kind} depends on all tuples of its key",
            expected="shed: keys, or shed: never",
        )
