"""Errors learn where: an ExpressionError knows what is wrong, the box around it knows the user's line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from penstock.model.boxes import Node
from penstock.model.errors import ExpressionError, NetworkError, Where, caller

_P = ParamSpec("_P")
_R = TypeVar("_R")


@contextmanager
def located(box: str = "", where: Where | None = None, *, part: str = "") -> Iterator[None]:
    """Turn an ExpressionError inside into a NetworkError of this box and line; `part` names the argument."""
    try:
        yield
    except ExpressionError as error:
        raise at_location(error, box, where or caller(), part) from None


def at_location(error: ExpressionError, box: str, where: Where, part: str = "") -> NetworkError:
    """The same error with box and line."""
    problem = f"{part}: {error.problem}" if part else error.problem
    return NetworkError(
        problem, box=box, where=where, found=error.found, expected=error.expected, hint=error.hint
    )


def node_error(
    node: Node, problem: str, *, found: str = "", expected: str = "", hint: str = ""
) -> NetworkError:
    """An error about this node."""
    return NetworkError(problem, box=node.name, where=node.where, found=found, expected=expected, hint=hint)


def with_location(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A constructor that users call on its own line (`csv(...)`): its errors name that line."""

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except ExpressionError as error:
            raise at_location(error, "", caller(), f"{function.__name__}(...)") from None

    return call
