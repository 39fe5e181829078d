"""Expressions over whole columns: fast where pyarrow means what Spark means, row by row where it does not.

Every part of an expression gives a column and the rows it is not sure of. Rows still unsure at the top (they
overflowed, divided by zero or had an odd spelling) are computed again one by one (`row_by_row`), which gives
the value or the reason of the failure. CASE, AND, OR and COALESCE drop doubts about what they did not choose.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.arrow.columns.columns import one_array
from penstock.engine.arrow.columns.kernels import ARROW, Answer, Column, NotVectorised, equal, kernel, less
from penstock.engine.arrow.columns.row_by_row import constant, rows_one_by_one
from penstock.engine.arrow.columns.row_types import RowFailure
from penstock.model.expressions.binding import bind
from penstock.model.expressions.typed import Call, ColumnRef, Typed, walk
from penstock.model.types import Schema

Compiled = Callable[[pa.Table], tuple[pa.Array, dict[int, str]]]


def compile_arrow(text: str, schema: Schema) -> Compiled:
    """The function table -> (values, {row: reason of its failure}); the value of a failed row is null.

    >>> table = pa.table({"x": pa.array([5, 0], pa.int32())})
    >>> values, failures = compile_arrow("10 / x", Schema.parse("x INT"))(table)
    >>> values.to_pylist(), failures
    ([2.0, None], {1: 'division by zero'})
    """
    node = bind(text, schema)

    def evaluate(table: pa.Table) -> tuple[pa.Array, dict[int, str]]:
        values, unsure = _evaluate(node, table)
        values = _column(values, node.type, table.num_rows)
        return (
            (values, {})
            if unsure is None
            else _settled(node, table, values, _rows_of(unsure, table.num_rows))
        )

    return evaluate


def _column(values: Column, type_: str, rows: int) -> pa.Array:
    if isinstance(values, pa.Scalar):
        return pa.repeat(values, rows)
    values = one_array(values)
    return values if values.type == ARROW[type_] else values.cast(ARROW[type_])


def _rows_of(unsure: Column, rows: int) -> np.ndarray:
    if isinstance(unsure, pa.Scalar):
        return np.arange(rows if unsure.as_py() else 0)
    return np.flatnonzero(np.asarray(pc.fill_null(unsure, False)))


def _settled(
    node: Typed, table: pa.Table, values: pa.Array, rows: np.ndarray
) -> tuple[pa.Array, dict[int, str]]:
    """Compute the unsure rows again, one by one."""
    if not len(rows):
        return values, {}
    again, failures = rows_one_by_one(node, table.select(_columns(node)).take(pa.array(rows)))
    mask = np.zeros(table.num_rows, dtype=bool)
    mask[rows] = True
    return pc.replace_with_mask(values, pa.array(mask), again), {
        int(rows[at]): reason for at, reason in failures.items()
    }


def _columns(node: Typed) -> list[str]:
    return list(dict.fromkeys(n.name for n in walk(node) if isinstance(n, ColumnRef)))


# ---- columns of parts --------------------------------------------------------------------------------------


def _evaluate(node: Typed, table: pa.Table) -> Answer:
    if isinstance(node, ColumnRef):
        return one_array(table.column(node.name)), None
    if not _columns(node):
        return _of_constant(node)
    assert isinstance(node, Call)
    try:
        lazy = _LAZY.get(node.function)
        return lazy(node, table) if lazy else _strict(node, table)
    except (NotVectorised, pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # No kernel, or Arrow refused the whole column for one row.
        return _left_to_rows(node, table)


def _of_constant(node: Typed) -> Answer:
    """No column in it: one value for all rows, or one failure."""
    try:
        return constant(node), None
    except RowFailure:
        return pa.scalar(None, ARROW[node.type]), pa.scalar(True)


def _left_to_rows(node: Call, table: pa.Table) -> Answer:
    values, failures = rows_one_by_one(node, table.select(_columns(node)))
    if not failures:
        return values, None
    unsure = np.zeros(table.num_rows, dtype=bool)
    unsure[list(failures)] = True
    return values, pa.array(unsure)


def _strict(node: Call, table: pa.Table) -> Answer:
    parts = [_evaluate(arg, table) for arg in node.args]
    values, unsure = kernel(node, [part[0] for part in parts])
    return values, _either([*(part[1] for part in parts), unsure])


def _either(doubts: list[Column | None]) -> Column | None:
    """Rows that are unsure in any of them; a NULL doubt is none."""
    real = [pc.fill_null(doubt, False) for doubt in doubts if doubt is not None]
    return reduce(pc.or_, real) if real else None


def _where(condition: Column | None, doubt: Column | None) -> Column | None:
    return None if doubt is None else pc.and_(condition, pc.fill_null(doubt, False))


def _connective(act: Callable[..., Column], *, decisive: bool) -> Callable[[Call, pa.Table], Answer]:
    def evaluate(node: Call, table: pa.Table) -> Answer:
        (left, left_doubt), (right, right_doubt) = (_evaluate(arg, table) for arg in node.args)
        undecided = pc.fill_null(pc.not_equal(left, decisive), True) if right_doubt is not None else None
        return act(left, right), _either([left_doubt, _where(undecided, right_doubt)])

    return evaluate


def _case(node: Call, table: pa.Table) -> Answer:
    *pairs, otherwise = node.args
    values, doubt = _evaluate(otherwise, table)
    # Backwards: the first condition that is true has the last word.
    for when, then in reversed(list(zip(pairs[::2], pairs[1::2], strict=True))):
        condition, condition_doubt = _evaluate(when, table)
        chosen, chosen_doubt = _evaluate(then, table)
        condition = pc.fill_null(condition, False)
        doubt = _either(
            [condition_doubt, _where(condition, chosen_doubt), _where(pc.invert(condition), doubt)]
        )
        values = pc.if_else(condition, chosen, values)
    return values, doubt


def _coalesce(node: Call, table: pa.Table) -> Answer:
    parts = [_evaluate(arg, table) for arg in node.args]
    doubt = None
    # A doubt counts only where all arguments in front are NULL.
    for values, own in reversed(parts):
        doubt = _either([own, _where(pc.is_null(values), doubt)])
    return pc.coalesce(*(part[0] for part in parts)), doubt


def _all(act: Callable[..., Column]) -> Callable[[Call, pa.Table], Answer]:
    """A function that sees NULL, of all its arguments."""

    def evaluate(node: Call, table: pa.Table) -> Answer:
        parts = [_evaluate(arg, table) for arg in node.args]
        return act(*(part[0] for part in parts)), _either([part[1] for part in parts])

    return evaluate


def _same(left: Column, right: Column) -> Column:
    both = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(both, pc.fill_null(equal(left, right), False))


def _in(value: Column, *others: Column) -> Column:
    simple = all(isinstance(o, pa.Scalar) and o.is_valid for o in others) and not pa.types.is_floating(
        value.type
    )
    # is_in has rules of its own for NULL and NaN: use it only for plain constants, and put NULL back.
    if simple and not isinstance(value, pa.Scalar):
        contained = pc.is_in(value, value_set=pa.array([o.as_py() for o in others], value.type))
        return pc.if_else(pc.is_null(value), pa.scalar(None, pa.bool_()), contained)
    return reduce(pc.or_kleene, (equal(value, other) for other in others))


def _extreme(better: Callable[[Column, Column], Column]) -> Callable[..., Column]:
    """The first of the best, NULL passed over."""

    def choose(left: Column, right: Column) -> Column:
        take_right = pc.or_(pc.is_null(left), pc.fill_null(better(right, left), False))
        return pc.if_else(take_right, right, left)

    return lambda *values: reduce(choose, values)


_LAZY: dict[str, Callable[[Call, pa.Table], Answer]] = {
    "AND": _connective(pc.and_kleene, decisive=False),
    "OR": _connective(pc.or_kleene, decisive=True),
    "CASE": _case,
    "coalesce": _coalesce,
    "<=>": _all(_same),
    "IN": _all(_in),
    "isnull": _all(pc.is_null),
    "isnan": _all(lambda x: pc.fill_null(pc.is_nan(x), False)),
    "least": _all(_extreme(less)),
    "greatest": _all(_extreme(lambda a, b: less(b, a))),
}
