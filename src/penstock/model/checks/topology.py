"""The shape of a network: a loop-free directed graph of boxes and arrows (Aurora, Sect. 2, A04)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

from penstock.model.boxes import Node, Trait
from penstock.model.error_location import located, node_error
from penstock.model.errors import ExpressionError, NetworkError, Where, did_you_mean, one_line

_NAME = re.compile(r"\w[\w .:\-]*")
_TABLE = re.compile(r"[A-Za-z_]\w*")
_WORDS = "letters, digits, blanks and any of _ . : -"
LONGEST_NAME = 120
"""Bytes of a name in UTF-8. Names stand in file names, which end at 255 bytes, beside other parts."""


def ordered(nodes: Iterable[Node]) -> dict[str, Node]:
    """Nodes by name, each after its inputs, else in the order given.

    Refuses double names, unknown inputs, cycles.
    """
    by_name: dict[str, Node] = {}
    for node in nodes:
        check_name(node, by_name)
        by_name[node.name] = node
    for node in by_name.values():
        check_inputs(node, by_name)
    _refuse_cycles(by_name)
    return _inputs_first(by_name)


def check_name(node: Node, others: Mapping[str, Node]) -> None:
    """A name that is free, and that can stand in paths, SQL and pictures."""
    # people query points and views by name, so theirs are SQL names
    table = Trait.KEPT in node.traits
    if not isinstance(node.name, str) or not (_TABLE if table else _NAME).fullmatch(node.name):
        what = "letters, digits and '_'" if table else _WORDS
        raise node_error(
            node,
            f"'{one_line(node.name, 60)}' cannot be the name of a {node.kind.replace('_', ' ')}",
            expected=what,
        )
    with located(one_line(node.name, 60), node.where):
        check_length(node.name)
    if node.name in others:
        refuse_double(node.name, node.where, others[node.name])


def check_length(name: str) -> None:
    """A name that fits into a file name."""
    if len(name.encode()) > LONGEST_NAME:
        raise ExpressionError(
            "the name is too long",
            found=f"{len(name):,} characters, {len(name.encode()):,} bytes",
            expected=f"at most {LONGEST_NAME} bytes",
            hint="use .about(description=...) for a longer text",
        )


def check_network_name(name: str, where: Where) -> None:
    """The name of a network or of an attached query: a checkpoint's folder may be called like it."""
    if not _NAME.fullmatch(name):
        problem = f"'{one_line(name, 60)}' cannot be the name of a network"
        raise NetworkError(problem, where=where, expected=_WORDS)
    with located(where=where):
        check_length(name)


def refuse_double(name: str, where: Where, other: Node) -> None:
    """The error of a name that is taken; it says by whom."""
    raise NetworkError(
        f"the name '{name}' is taken",
        box=name,
        where=where,
        found=f"a {other.kind.replace('_', ' ')} of that name at {other.where}",
        expected="one name for each node of a network",
        hint="give one of them another name, with name=... or .named(...)",
    )


def check_inputs(node: Node, others: Mapping[str, Node]) -> None:
    """Each input is a node, and one that can be read."""
    for name in node.inputs:
        if name not in others:
            raise node_error(
                node,
                f"unknown input '{name}'",
                expected="the name of a node of this network",
                hint=did_you_mean(name, others),
            )
        if Trait.LEAVES in others[name].traits:
            raise node_error(
                node,
                f"reads from the output '{name}'",
                expected="a source, a box or a connection point",
                hint=f"read from '{others[name].inputs[0]}', the input of that output",
            )


def _refuse_cycles(nodes: Mapping[str, Node]) -> None:
    try:
        TopologicalSorter({name: node.inputs for name, node in nodes.items()}).prepare()
    except CycleError as error:
        # graphlib gives the loop as [a, ..., a] with each the input of the next
        loop: list[str] = error.args[1]
        # Turned so that it begins with the least name: the message is the same in every run.
        start = min(loop)
        at = loop.index(start)
        turned = loop[at:-1] + loop[:at] + [start] if at else loop
        raise node_error(
            nodes[start],
            "the network has a loop",
            found=" -> ".join(turned),
            expected="a graph without loops",
            hint="take one of these arrows out",
        ) from None


def _inputs_first(nodes: Mapping[str, Node]) -> dict[str, Node]:
    in_order: dict[str, Node] = {}
    for start in nodes:
        # a stack instead of recursion: networks may be thousands of boxes deep
        stack = [start]
        while stack:
            node = nodes[stack[-1]]
            missing = [name for name in node.inputs if name not in in_order]
            if missing:
                stack.append(missing[0])
            else:
                in_order[node.name] = node
                stack.pop()
    return in_order
