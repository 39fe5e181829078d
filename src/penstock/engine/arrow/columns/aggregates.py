"""Aggregates as partial results that can be merged in any order (A09-A12).

A tuple is lifted to a partial of one tuple; partials of one group are reduced to one; at the end each call
(sum, avg, ...) is read off. Reducing is the same for tuples of a train, for partials of several trains and
for a Latch's lifetime. Spark may make the partials by itself; it needs these columns, for the i-th distinct
call:

| call | columns | meaning |
|---|---|---|
| count | s{i} BIGINT | tuples whose argument is not null |
| sum, avg of whole numbers | s{i}, s{i}_low, s{i}_n BIGINT | sums of x >> 32 and x & 0xFFFFFFFF, count of x |
| sum, avg of FLOAT, DOUBLE | s{i}, s{i}_rest DOUBLE, s{i}_n BIGINT | sum, what rounding lost (or 0), count |
| stddev, variance | as sum of DOUBLE, and s{i}_sq, s{i}_sqrest DOUBLE | the same for x * x |
| min, max | s{i} of the argument's type | null if there is none |
| first, last | s{i} of the argument's type | only where partials come in canonical order |
| count_distinct | s{i} BIGINT | 0; the values go to a table of their own, see windows.py |
| window_start, window_end | none | |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.arrow.columns import exact_sums as doubles
from penstock.engine.arrow.columns.columns import Mask, one_array, to_arrow, to_numpy
from penstock.engine.arrow.columns.grouping import Groups
from penstock.model.expressions.casts import FIRST_STAMP, LAST_STAMP
from penstock.model.expressions.expression import AggregateCall, infer
from penstock.model.types import INTEGRAL, Column, Schema, arrow_schema

Values = tuple[np.ndarray, Mask]
Failures = dict[int, str]
_LOW = np.int64(0xFFFFFFFF)


@dataclass(frozen=True)
class Slot:
    """One distinct call of a box: its number, the type of its argument, the measured column that holds it."""

    number: int
    call: AggregateCall
    argument: str | None  # type of the argument
    measure: str | None  # column with its values

    @property
    def name(self) -> str:
        return f"s{self.number}"

    def columns(self) -> list[tuple[str, str]]:
        """Names and types of its partial columns."""
        return _COLUMNS[self.call.function](self)

    @property
    def whole(self) -> bool:
        return self.argument in INTEGRAL


def _sums(slot: Slot) -> list[tuple[str, str]]:
    kind, lost = ("BIGINT", "_low") if slot.whole else ("DOUBLE", "_rest")
    return [(slot.name, kind), (slot.name + lost, kind), (slot.name + "_n", "BIGINT")]


def _moments(slot: Slot) -> list[tuple[str, str]]:
    doubles_ = [(slot.name + end, "DOUBLE") for end in ("", "_rest", "_sq", "_sqrest")]
    return [*doubles_, (slot.name + "_n", "BIGINT")]


def _same(slot: Slot) -> list[tuple[str, str]]:
    return [(slot.name, str(slot.argument))]


def _number(slot: Slot) -> list[tuple[str, str]]:
    return [(slot.name, "BIGINT")]


_COLUMNS: dict[str, Callable[[Slot], list[tuple[str, str]]]] = {
    "count": _number, "count_distinct": _number, "sum": _sums, "avg": _sums, "stddev": _moments,
    "variance": _moments, "min": _same, "max": _same, "first": _same, "last": _same,
    "window_start": lambda _: [], "window_end": lambda _: [],
}  # fmt: skip


def slots_of(calls: list[AggregateCall], schema: Schema) -> list[Slot]:
    """Equal calls share a slot, equal arguments a measured column."""
    slots: dict[tuple[str, str | None], Slot] = {}
    measures: dict[str, str] = {}
    for call in calls:
        if call.argument is not None:
            measures.setdefault(call.argument, f"_m{len(measures)}")
        if (call.function, call.argument) not in slots:
            type_ = None if call.argument is None else infer(call.argument, schema)
            measure = None if call.argument is None else measures[call.argument]
            slots[call.function, call.argument] = Slot(len(slots), call, type_, measure)
    return list(slots.values())


def partial_schema(slots: list[Slot]) -> pa.Schema:
    """The columns of a partial, without keys."""
    return arrow_schema(
        Schema(tuple(Column(*column) for slot in slots for column in slot.columns())), hidden=False
    )


def lift(slots: list[Slot], rows: pa.Table) -> dict[str, Values]:
    """Each row as the partial of itself alone."""
    lifted: dict[str, Values] = {}
    for slot in slots:
        values = (
            (np.zeros(rows.num_rows), None) if slot.measure is None else to_numpy(rows.column(slot.measure))
        )
        lifted |= _lift_one(slot, *values)
    return lifted


def _lift_one(slot: Slot, values: np.ndarray, valid: Mask) -> dict[str, Values]:
    name, function = slot.name, slot.call.function
    # A null has the value 0 here, so it adds nothing to a sum; it must not count either.
    present = np.ones(len(values), np.int64) if valid is None else valid.astype(np.int64)
    if function == "count":
        return {name: (present, None)}
    if function == "count_distinct":
        return {name: (np.zeros(len(values), np.int64), None)}
    if function in ("sum", "avg") and slot.whole:
        # Sums of halves of 32 bits cannot overflow on the way, so the order of the terms does not matter.
        wide = values.astype(np.int64)
        return {name: (wide >> 32, None), f"{name}_low": (wide & _LOW, None), f"{name}_n": (present, None)}
    if function in ("sum", "avg", "stddev", "variance"):
        return _lift_double(slot, values.astype(np.float64), present)
    return {name: (values, valid)} if slot.columns() else {}


def _lift_double(slot: Slot, values: np.ndarray, present: np.ndarray) -> dict[str, Values]:
    name, nothing = slot.name, np.zeros(len(values))
    lifted: dict[str, Values] = {
        name: (values, None),
        f"{name}_rest": (nothing, None),
        f"{name}_n": (present, None),
    }
    if slot.call.function in ("stddev", "variance"):
        square, rest = doubles.product(values, values)
        lifted |= {f"{name}_sq": (square, None), f"{name}_sqrest": (rest, None)}
    return lifted


def unpack(slots: list[Slot], partials: pa.Table) -> dict[str, Values]:
    """Partials of a table as numpy columns."""
    return {name: to_numpy(partials.column(name)) for slot in slots for name, _ in slot.columns()}


def pack(slots: list[Slot], columns: dict[str, Values]) -> list[pa.Array]:
    """The inverse: Arrow arrays in the order of `partial_schema`."""
    return [to_arrow(*columns[field.name], field.type) for field in partial_schema(slots)]


def reduce(slots: list[Slot], columns: dict[str, Values], groups: Groups) -> dict[str, Values]:
    """One partial for each group."""
    reduced: dict[str, Values] = {}
    for slot in slots:
        reduced |= _reduce_one(slot, columns, groups)
    return reduced


def _reduce_one(slot: Slot, columns: dict[str, Values], groups: Groups) -> dict[str, Values]:
    function, name = slot.call.function, slot.name
    if function in ("first", "last"):
        at = groups.first if function == "first" else groups.last
        values, valid = columns[name]
        return {name: (values[at], None if valid is None else valid[at])}
    if function in ("min", "max"):
        return {name: _extreme(function, *columns[name], groups)}
    reduced: dict[str, Values] = {}
    for column, type_ in slot.columns():
        if type_ == "BIGINT":
            reduced[column] = (np.add.reduceat(columns[column][0][groups.order], groups.starts), None)
    if f"{name}_rest" in columns:
        reduced |= _reduce_double(name, "_rest", columns, groups)
    if f"{name}_sq" in columns:
        reduced |= _reduce_double(f"{name}_sq", "rest", columns, groups)
    return reduced


def _reduce_double(name: str, rest: str, columns: dict[str, Values], groups: Groups) -> dict[str, Values]:
    pair = columns[name][0][groups.order], columns[name + rest][0][groups.order]
    total, lost = doubles.segment_sums(pair, groups.starts)
    return {name: (total, None), name + rest: (lost, None)}


def _extreme(function: str, values: np.ndarray, valid: Mask, groups: Groups) -> Values:
    if values.dtype == object:
        return _extreme_of_objects(function, values, valid, groups)
    if values.dtype == bool:
        best, known = _extreme(function, values.astype(np.int8), valid, groups)
        return best.astype(bool), known
    ordered = values[groups.order]
    known = None
    if valid is not None:
        # Nulls take no part: put in their stead what loses against every value.
        ordered = np.where(valid[groups.order], ordered, _neutral(function, values.dtype))
        known = np.logical_or.reduceat(valid[groups.order], groups.starts)
    return _REDUCERS[function](ordered, groups.starts), known


# NaN is larger than every number (Spark): fmin passes it over, maximum keeps it.
_REDUCERS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "min": np.fmin.reduceat,
    "max": np.maximum.reduceat,
}


def _neutral(function: str, dtype: np.dtype) -> int | np.floating:
    if dtype.kind == "f":
        extreme: np.floating = dtype.type(np.nan if function == "min" else -np.inf)
        return extreme
    return np.iinfo(dtype).max if function == "min" else np.iinfo(dtype).min


def _extreme_of_objects(function: str, values: np.ndarray, valid: Mask, groups: Groups) -> Values:
    """Texts and bytes by their rank (byte order, as in Spark)."""
    array = pa.array(values, mask=None if valid is None else ~valid, from_pandas=False)
    if pa.types.is_null(array.type):
        return values[groups.first], np.zeros(len(groups.starts), bool)
    # NumPy cannot take the least of objects for each group: take the least rank instead.
    encoded = one_array(pc.dictionary_encode(array))
    rank = (
        pc.rank(encoded.dictionary, tiebreaker="dense").to_numpy()
        if len(encoded.dictionary)
        else np.zeros(0, np.int64)
    )
    codes = pc.fill_null(encoded.indices, 0).to_numpy()
    ranks = rank[codes].astype(np.int64)
    best, known = _extreme(function, ranks, valid, groups)
    # Ranks start at 1; 0 stands for a group without a value.
    back = np.empty(len(rank) + 1, object)
    back[rank] = encoded.dictionary.to_numpy(zero_copy_only=False)
    known_best = best if known is None else np.where(known, best, 0)
    return back[known_best], known


def finish(slot: Slot, columns: dict[str, Values], edges: dict[str, np.ndarray]) -> tuple[pa.Array, Failures]:
    """What the call gives for each group, in its declared type; and the groups where it fails."""
    function, type_ = slot.call.function, _arrow(slot.call.type)
    if function in ("window_start", "window_end"):
        return _finish_edge(function, edges[function], type_)
    if function in ("sum", "avg", "stddev", "variance"):
        return _finish_sum(slot, columns, type_)
    values, valid = columns[slot.name]
    array = to_arrow(
        values,
        valid,
        _arrow(slot.argument or "BIGINT") if function in ("min", "max", "first", "last") else pa.int64(),
    )
    return (array if array.type == type_ else array.cast(type_)), {}


def _finish_edge(function: str, times: np.ndarray, type_: pa.DataType) -> tuple[pa.Array, Failures]:
    beyond = (times < FIRST_STAMP) | (times > LAST_STAMP)
    reason = f"{function} is out of the range of TIMESTAMP"
    return to_arrow(times, ~beyond, type_), dict.fromkeys(np.flatnonzero(beyond).tolist(), reason)


def _finish_sum(slot: Slot, columns: dict[str, Values], type_: pa.DataType) -> tuple[pa.Array, Failures]:
    name, count = slot.name, columns[f"{slot.name}_n"][0]
    if slot.call.function in ("stddev", "variance"):
        return _finish_moments(name, columns, count, root=slot.call.function == "stddev"), {}
    if not slot.whole:
        total = columns[name][0] + columns[f"{name}_rest"][0]
    elif slot.call.function == "avg":
        low = columns[f"{name}_low"][0]
        # Both halves in one pair, so that the sum is rounded once.
        total = doubles.add(
            (columns[name][0] * 2.0**32, np.zeros(len(low))), (low.astype(float), np.zeros(len(low)))
        )[0]
    else:
        return _finish_whole(columns[name][0], columns[f"{name}_low"][0], count > 0, type_)
    if slot.call.function == "avg":
        total = total / np.maximum(count, 1)
    return to_arrow(total, count > 0, pa.float64()), {}


def _finish_whole(
    high: np.ndarray, low: np.ndarray, known: np.ndarray, type_: pa.DataType
) -> tuple[pa.Array, Failures]:
    # Carry from the low half; the sum is a BIGINT if the high half then fits in 32 bits.
    carried = high + (low >> 32)
    beyond = known & ((carried >= 2**31) | (carried < -(2**31)))
    total = (np.where(beyond, 0, carried) << 32) + (low & _LOW)
    array = to_arrow(total, known & ~beyond, pa.int64())
    reason = "sum is out of the range of BIGINT"
    return array.cast(type_), dict.fromkeys(np.flatnonzero(beyond).tolist(), reason)


def _finish_moments(name: str, columns: dict[str, Values], count: np.ndarray, *, root: bool) -> pa.Array:
    known = count >= 2
    total, squares = (
        (columns[n][0], columns[n + r][0]) for n, r in ((name, "_rest"), (f"{name}_sq", "rest"))
    )
    # 2 only avoids a division by zero: these groups become null.
    variance = doubles.variance(total, squares, np.where(known, count, 2).astype(float))
    return to_arrow(np.sqrt(variance) if root else variance, known, pa.float64())


def _arrow(type_: str) -> pa.DataType:
    return arrow_schema(Schema((Column("x", type_),)), hidden=False).field(0).type


def distinct_type(slot: Slot) -> pa.DataType:
    """The Arrow type of the values that a count(distinct) has seen."""
    assert slot.argument is not None
    return _arrow(slot.argument)
