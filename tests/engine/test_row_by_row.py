"""Two evaluators that share no code give the same values and the same reasons, for every function of the
table.
"""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine import expression_cases as cases

from penstock.engine.arrow.columns.row_by_row import covered, rows_one_by_one
from penstock.engine.local.expressions.evaluate import ExpressionFailure, compile_row
from penstock.model.expressions.binding import bind
from penstock.model.expressions.functions import FUNCTIONS
from penstock.model.expressions.typed import Call, walk
from penstock.model.types import arrow_schema

ROWS = cases.rows()
TEXTS = [
    text
    for group in (cases.NUMBERS, cases.LOGIC, cases.TEXT, cases.TIME, cases.OURS)
    for text in cases.expressions(group)
]
# libm's and Arrow's own functions may differ in the last place
ROUGH = ("exp(", "pow", "ln(", "log")


def by_reference(text: str, rows: list[dict[str, Any]]) -> list[Any]:
    act, answers = compile_row(text, cases.SCHEMA), []
    for row in rows:
        try:
            answers.append(act(row))
        except ExpressionFailure as failure:
            answers.append(("failed", failure.reason))
    return answers


def by_rows(text: str, rows: list[dict[str, Any]]) -> list[Any]:
    table = pa.Table.from_pylist(rows, schema=arrow_schema(cases.SCHEMA, hidden=False))
    values, failures = rows_one_by_one(bind(text, cases.SCHEMA), table)
    return [("failed", failures[i]) if i in failures else v for i, v in enumerate(values.to_pylist())]


def same(left: Any, right: Any, text: str) -> bool:
    if not isinstance(left, float) or not isinstance(right, float):
        return type(left) is type(right) and left == right
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    if any(word in text for word in ROUGH):
        return left == right or math.isclose(left, right, rel_tol=1e-14)
    return left == right and math.copysign(1, left) == math.copysign(1, right)


def compare(text: str, rows: list[dict[str, Any]]) -> None:
    for row, theirs, ours in zip(rows, by_reference(text, rows), by_rows(text, rows), strict=True):
        shown = {name: row[name] for name in row if name in text}
        assert same(ours, theirs, text), f"{text}: rows say {ours!r}, the reference {theirs!r} in {shown}"


@pytest.mark.parametrize("text", TEXTS)
def test_rows_mean_what_the_reference_means(text: str) -> None:
    compare(text, ROWS)


def test_every_function_of_the_table_is_compared() -> None:
    used = {
        node.function for text in TEXTS for node in walk(bind(text, cases.SCHEMA)) if isinstance(node, Call)
    }
    rewritten = set(FUNCTIONS) - set(covered())  # into other functions, while binding
    assert set(FUNCTIONS) - rewritten <= used
    assert rewritten <= {"to_timestamp", "to_date", "INTERVAL"} | rewritten
    assert set(covered()) >= used


_INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


def _values(type_: str) -> st.SearchStrategy[Any]:
    edges = st.sampled_from(cases._VALUES[type_])
    if type_ in _INTEGERS:
        bound = 2 ** (_INTEGERS[type_] - 1)
        return edges | st.integers(-bound, bound - 1)
    if type_ in ("DOUBLE", "FLOAT"):
        return edges | st.floats(width=64 if type_ == "DOUBLE" else 32)
    return edges | st.text("0123456789+-.eE dt:Z", max_size=12) if type_ == "STRING" else edges


ROW = st.fixed_dictionaries({column.name: _values(column.type) for column in cases.SCHEMA})


@settings(max_examples=1500, deadline=None)
@given(text=st.sampled_from(TEXTS), row=ROW)
def test_on_any_row(text: str, row: dict[str, Any]) -> None:
    compare(text, [row])
