"""Tuples as dicts (the visible columns, then `_ts` and `_seq`), their canonical order, and dead letters.

The order makes results independent of how the input is cut into trains: it is total up to equal tuples, and
never looks at the moment of arrival.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from penstock.model.types import SEQ, STAMP

Value: TypeAlias = Any  # None, bool, int, float, str, bytes, date or datetime: the column says which
Row = dict[str, Value]
Key = tuple[Value, ...]  # the group of a tuple
SortKey = tuple[Value, ...]  # compares as canonical order does


@dataclass(frozen=True)
class DeadLetter:
    """A tuple that was refused, and why. `offset`: its `_seq`, or a text; `box`: who refused it."""

    raw: str
    reason: str
    source: str
    offset: int | str
    box: str
    train: int


@dataclass
class Answer:
    """What a box gives for one train: tuples, and refused tuples with the reason."""

    out: list[Row] = field(default_factory=list)
    dead: list[tuple[Row, str]] = field(default_factory=list)


class Logic(Protocol):
    """One box at work: its state lives in the object."""

    def process(self, inputs: list[list[Row]], horizons: tuple[int, ...], *, final: bool) -> Answer:
        """Take one train: the tuples of each input, and the promise about later ones."""
        ...


def value_order(value: Value) -> SortKey:
    """Nulls first, then by value, NaN last (as in Spark).

    >>> sorted([2.0, float("nan"), None, 1.0], key=value_order)
    [None, 1.0, 2.0, nan]
    """
    if value is None:
        return (0,)
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    return (1, value)


def canonical(row: Row, index: int, columns: Iterable[str]) -> SortKey:
    """The sort key of a tuple of input `index`: sorted by it, tuples are in canonical order."""
    return (value_order(row[STAMP]), index, row[SEQ], *(value_order(row[name]) for name in columns))


def group(row: Mapping[str, Value], keys: Iterable[str]) -> Key:
    """The group of a tuple: nulls are one group, so are all NaN; -0.0 is 0.0 (SQL's GROUP BY)."""
    return tuple(frozen(row[key]) for key in keys)


def frozen(value: Value) -> Value:
    """A value that is equal (and hashes equal) exactly when SQL says so, nulls aside."""
    if isinstance(value, float):
        # Adding 0.0 turns -0.0 into 0.0. NaN is not equal to itself, so a text stands for it.
        return "NaN" if math.isnan(value) else value + 0.0
    # True == 1 in Python, but a BOOLEAN is never compared to a number here: the check refuses it.
    return value


def visible(row: Mapping[str, Value]) -> Row:
    """The tuple without its hidden columns."""
    return {name: value for name, value in row.items() if name not in (STAMP, SEQ)}


def raw_text(row: Mapping[str, Value]) -> str:
    """A tuple as JSON, for a dead letter that has no raw text."""
    return json.dumps({name: _finite(value) for name, value in visible(row).items()}, default=_as_text)


def _finite(value: Value) -> Value:
    """JSON has no NaN and no infinity: they are texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _as_text(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
