"""Aggregates over a list of tuples, with Spark's meaning.

Nulls do not count, an empty list gives null, and NaN is the largest number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from penstock.engine.local.expressions.evaluate import Evaluate, ExpressionFailure, Row, compile_row
from penstock.engine.local.rows import Value, frozen, value_order
from penstock.model.expressions.expression import AggregateCall, split_aggregates
from penstock.model.expressions.values import in_range, moment
from penstock.model.types import Column, Schema

Window = tuple[int, int]
# For one tuple: the value of the argument, for each aggregate and each of its calls.
Measures = tuple[tuple[Value, ...], ...]


@dataclass(frozen=True)
class _Compiled:
    """One aggregate: its calls, the argument of each, and the expression around them."""

    name: str
    calls: tuple[AggregateCall, ...]
    arguments: tuple[Evaluate, ...]
    result: Evaluate


class Aggregator:
    """The aggregates of a windowed box."""

    def __init__(self, aggregates: Iterable[tuple[str, str]], schema: Schema, keys: tuple[str, ...]) -> None:
        self.compiled = [_compile(name, text, schema, keys) for name, text in aggregates]

    def measure(self, row: Row) -> Measures:
        """All arguments for one tuple; ExpressionFailure if one fails: the tuple takes part in nothing."""
        return tuple(tuple(argument(row) for argument in each.arguments) for each in self.compiled)

    def results(self, measures: list[Measures], keys: Row, window: Window | None) -> dict[str, Value]:
        """The aggregate columns over these tuples (in canonical order)."""
        columns = {}
        for number, each in enumerate(self.compiled):
            # `split_aggregates` has put a0, a1 and so on in the place of the calls.
            parts = {
                f"a{i}": _aggregate(call, [measured[number][i] for measured in measures], window)
                for i, call in enumerate(each.calls)
            }
            columns[each.name] = each.result({**keys, **parts})
        return columns


def _compile(name: str, text: str, schema: Schema, keys: tuple[str, ...]) -> _Compiled:
    split = split_aggregates(text, schema, keys)
    arguments = tuple(_argument(call, schema) for call in split.calls)
    inner = split.schema(Column(key, schema.type_of(key)) for key in keys)
    return _Compiled(name, split.calls, arguments, compile_row(split.result, inner))


def _argument(call: AggregateCall, schema: Schema) -> Evaluate:
    if call.argument is None:
        return lambda row: True  # noqa: ARG005 - count(*): every tuple counts
    return compile_row(call.argument, schema)


def _aggregate(call: AggregateCall, values: list[Value], window: Window | None) -> Value:
    if call.function in ("window_start", "window_end"):
        return _edge(call.function, window)
    if call.function in ("first", "last"):
        # The only ones that see nulls: Spark's default is RESPECT NULLS.
        return values[0 if call.function == "first" else -1] if values else None
    return _FUNCTIONS[call.function]([value for value in values if value is not None])


def _edge(function: str, window: Window | None) -> datetime | None:
    if window is None:
        return None
    try:
        return moment(window[0] if function == "window_start" else window[1])
    except OverflowError:
        raise ExpressionFailure(f"{function} is out of the range of TIMESTAMP") from None


def _sum(values: list[float]) -> float | None:
    if not values:
        return None
    total = _total(values, 0.0 if isinstance(values[0], float) else 0)
    if isinstance(total, int) and not in_range(total, "BIGINT"):
        raise ExpressionFailure("sum is out of the range of BIGINT")
    return total


def _total(values: Iterable[float], total: float) -> float:
    """The sum one by one, as Spark adds. Python's `sum` corrects rounding, but only from 3.12 on."""
    for value in values:
        total += value
    return total


def _average(values: list[float]) -> float | None:
    return _total(map(float, values), 0.0) / len(values) if values else None


def _variance(values: list[float]) -> float | None:
    if len(values) < 2:
        return None
    mean = _total(map(float, values), 0.0) / len(values)
    return _total(((value - mean) * (value - mean) for value in values), 0.0) / (len(values) - 1)


def _stddev(values: list[float]) -> float | None:
    variance = _variance(values)
    return None if variance is None else math.sqrt(variance)


_FUNCTIONS: dict[str, Callable[[list[Value]], Value]] = {
    "count": len,
    "count_distinct": lambda values: len({frozen(value) for value in values}),
    "sum": _sum,
    "avg": _average,
    "min": lambda values: min(values, key=value_order, default=None),
    "max": lambda values: max(values, key=value_order, default=None),
    "variance": _variance,
    "stddev": _stddev,
}
