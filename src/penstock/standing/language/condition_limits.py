"""Refuses conditions that are short to write and endless to evaluate.

A residual is evaluated on every tuple that passes the indexed factors, in the tasks of all trains. One client
must not be able to fill their memory or hold them up. So texts that a condition makes may grow only so far,
patterns may repeat only so much, and conditions nest only so deeply.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from penstock.model.expressions.typed import Call, Literal, Typed
from penstock.standing.errors import QueryError

MOST_DEPTH = 100  # far from Python's recursion limit, also in a task whose stack is deeper than ours
MOST_GROWTH = 64  # characters that a condition may make of one character of a tuple
MOST_REPEATS = 2  # unbounded repetitions of one pattern, none inside another
_MOST_COUNTED = 100  # of {n,m}


def check_depth(tree: exp.Expression) -> None:
    """Refuse a tree that is nested too deeply; a chain of AND or OR counts as one level."""
    left: list[tuple[exp.Expression, int]] = [(tree, 0)]
    while left:
        node, depth = left.pop()
        if depth > MOST_DEPTH:
            raise too_deep()
        for child in node.iter_expressions():
            chained = isinstance(node, exp.Connector) and type(child) is type(node)
            left.append((child, depth if chained else depth + 1))


def too_deep() -> QueryError:
    """The error for a condition with too many levels."""
    return QueryError(
        "the condition is nested too deeply",
        expected=f"at most {MOST_DEPTH} levels",
        hint="fewer brackets; a list of values is written IN (...)",
    )


def check_cost(condition: Typed) -> None:
    """Refuse a residual whose evaluation could take memory or time without end."""
    for node in _nodes(condition):
        if not isinstance(node, Call):
            continue
        if node.function in ("concat", "replace") and _growth(node) > MOST_GROWTH:
            raise QueryError(
                "the condition makes texts that are too long",
                expected=f"at most {MOST_GROWTH} characters for each one of a tuple",
                hint="fewer and shorter CONCAT and REPLACE, or a Map box in the network",
            )
        if node.function == "RLIKE" and isinstance(node.args[1], Literal):
            _check_pattern(str(node.args[1].value))


def _nodes(tree: Typed) -> Iterator[Typed]:
    left = [tree]
    while left:
        node = left.pop()
        yield node
        if isinstance(node, Call):
            left.extend(node.args)


def _growth(node: Typed) -> int:
    """How long a text may become, taking a column as one character; no other function lengthens a text."""
    if isinstance(node, Literal):
        return max(1, len(str(node.value)))
    if not isinstance(node, Call):
        return 1
    parts = [_growth(arg) for arg in node.args]
    if node.function == "concat":
        return sum(parts)
    if node.function == "replace":
        return parts[0] * parts[-1]
    return max(parts, default=1)


def _check_pattern(pattern: str) -> None:
    """Python's patterns backtrack: nested repetitions take exponential time, many in a row polynomial."""
    repeats = list(_repeats(_parsed(pattern), inside=False))
    if len(repeats) > MOST_REPEATS or any(repeats):
        raise QueryError(
            "the pattern of RLIKE repeats too much",
            expected=f"at most {MOST_REPEATS} of * and +, none inside another; {{n,m}} up to {_MOST_COUNTED}",
            hint="LIKE takes any number of %",
        )


def _parsed(pattern: str) -> Any:
    from re import _parser  # type: ignore[attr-defined]  # the only reader of Python's own patterns

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _parser.parse(pattern, re.ASCII)


def _repeats(parsed: Any, *, inside: bool) -> Iterator[bool]:
    """For each repetition that may be long: whether it stands inside another one."""
    for operator, argument in parsed:
        name = str(operator)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            _, most, body = argument
            long = most > 1
            if long and (most > _MOST_COUNTED or inside):
                yield inside
            yield from _repeats(body, inside=inside or long)
        elif name == "SUBPATTERN":
            yield from _repeats(argument[-1], inside=inside)
        elif name == "BRANCH":
            for branch in argument[1]:
                yield from _repeats(branch, inside=inside)
