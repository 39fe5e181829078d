"""What the functions on single rows have in common: values, rows, and how a row fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from penstock.model.expressions.typed import Call

Value: TypeAlias = Any  # None, bool, int, float, str or bytes: the type of the expression says which
Row = dict[str, Value]
Act = Callable[..., Value]


class RowFailure(Exception):  # noqa: N818 - it becomes a dead letter
    """The expression failed on a row; `reason` goes to the dead letter."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def without_node(act: Act) -> Act:
    """A function of the values alone: it does not ask how the expression was written."""

    def called(_node: Call, *args: Value) -> Value:
        return act(*args)

    return called
