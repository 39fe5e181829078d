"""One meaning on three engines: row by row, over Arrow columns, on Spark.

And the meaning is Spark's own with ANSI on.
"""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engine import expression_cases as cases

from penstock.engine.arrow.columns.expressions import compile_arrow
from penstock.engine.local.expressions.evaluate import ExpressionFailure, compile_row
from penstock.engine.spark.layout.expressions import to_spark
from penstock.model.expressions.expression import columns_of, infer
from penstock.model.types import arrow_schema, canonical_type

ROWS = cases.rows()
TABLE = pa.Table.from_pylist(ROWS, schema=arrow_schema(cases.SCHEMA, hidden=False))
GROUPS = {
    "numbers": cases.NUMBERS,
    "logic": cases.LOGIC,
    "text": cases.TEXT,
    "time": cases.TIME,
    "ours": cases.OURS,
    "sample": cases.SAMPLE,
}
# Java's StrictMath and C's libm may differ in the last place, and Java before 19 may print a digit too many
ROUGH = ("exp(", "pow", "ln(", "log", "CAST(x AS STRING)", "k || (a / b)")


def reference(text: str) -> tuple[list[Any], dict[int, str]]:
    act, values, failures = compile_row(text, cases.SCHEMA), [], {}
    for at, row in enumerate(ROWS):
        try:
            values.append(act(row))
        except ExpressionFailure as failure:
            values.append(None)
            failures[at] = failure.reason
    return values, failures


def same(left: Any, right: Any, rough: bool) -> bool:
    if isinstance(left, str) and isinstance(right, str) and rough:
        return left == right or left[:14] == right[:14]
    if not isinstance(left, float) or not isinstance(right, float):
        return left == right and type(left) is type(right)
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    if rough:
        return left == right or math.isclose(left, right, rel_tol=1e-14)
    return left == right and math.copysign(1, left) == math.copysign(1, right)


def differences(text: str, values: list[Any], others: list[Any], where: str) -> list[str]:
    rough = any(word in text for word in ROUGH)
    return [
        f"{where}: {text}: {v!r} is not {o!r} in {_shown(text, at)}"
        for at, (v, o) in enumerate(zip(values, others, strict=True))
        if not same(v, o, rough)
    ]


def _shown(text: str, at: int) -> dict[str, Any]:
    return {name: ROWS[at][name] for name in columns_of(text)}


def report(wrong: list[str]) -> None:
    assert not wrong, "\n".join([f"{len(wrong)} differences", *wrong[:60]])


@pytest.mark.parametrize("group", GROUPS)
def test_columns_mean_what_rows_mean(group: str) -> None:
    wrong = []
    for text in cases.expressions(GROUPS[group]):
        values, failures = reference(text)
        columns, column_failures = compile_arrow(text, cases.SCHEMA)(TABLE)
        assert (
            columns.type
            == arrow_schema(type(cases.SCHEMA).of([("v", infer(text, cases.SCHEMA))]), hidden=False)
            .field(0)
            .type
        ), text
        wrong += differences(text, values, columns.to_pylist(), "arrow")
        wrong += (
            [f"arrow: {text}: {failures} is not {column_failures}"] if failures != column_failures else []
        )
    report(wrong)


# compiling hundreds of expressions takes Spark a while, longer still on a busy machine
LONG = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(
    scope="module",
    params=["sample", *(pytest.param(group, marks=LONG) for group in GROUPS if group != "sample")],
)
def answers(spark: Any, request: Any, tmp_path_factory: Any) -> tuple[str, pa.Table, Any]:
    """What Spark says to a group of expressions, from one job over a file: our value and failure, and the
    plain text.

    The plain expression is evaluated only on rows where we do not fail, because there it would end the job.
    """
    columns, table = ["place"], TABLE.append_column("place", pa.array(range(TABLE.num_rows)))
    for i, text in enumerate(cases.expressions(GROUPS[request.param])):
        sql, failures = to_spark(text, cases.SCHEMA), reference(text)[1]
        columns += [f"{sql.value} AS v{i}", f"{sql.failure or 'CAST(NULL AS STRING)'} AS f{i}"]
        if request.param != "ours":
            table = table.append_column(f"ok{i}", pa.array([at not in failures for at in range(len(ROWS))]))
            columns.append(f"CASE WHEN ok{i} THEN {text} END AS p{i}")
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pq.write_table(table, path)
    frame = spark.read.parquet(str(path)).selectExpr(*columns)
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    return request.param, frame.toArrow().sort_by("place"), frame.schema


def test_spark_means_what_rows_mean(answers: Any) -> None:
    group, answer, _ = answers
    wrong = []
    for i, text in enumerate(cases.expressions(GROUPS[group])):
        values, failures = reference(text)
        wrong += differences(text, values, answer[f"v{i}"].to_pylist(), "spark")
        found = {at: reason for at, reason in enumerate(answer[f"f{i}"].to_pylist()) if reason is not None}
        wrong += [f"spark: {text}: {failures} is not {found}"] if failures != found else []
    report(wrong)


def test_the_meaning_is_plain_spark_with_ansi(answers: Any) -> None:
    group, answer, types = answers
    if group == "ours":
        pytest.skip("here we differ on purpose")
    wrong = []
    for i, text in enumerate(cases.expressions(GROUPS[group])):
        wrong += differences(text, reference(text)[0], answer[f"p{i}"].to_pylist(), "plain Spark")
        inferred = infer(text, cases.SCHEMA)
        for column in (f"p{i}", f"v{i}"):
            spark_type = canonical_type(types[column].dataType.simpleString())
            wrong += [f"type of {text}: {inferred} is not {spark_type}"] if inferred != spark_type else []
    report(wrong)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("group", ["numbers", "logic", "text", "time"])
def test_where_we_fail_spark_fails(spark: Any, group: str) -> None:
    wrong = []
    for text in cases.expressions(GROUPS[group]):
        failures = reference(text)[1]
        # operands of a NULL are not evaluated by Spark, so take a row without any
        full = [at for at in failures if None not in _shown(text, at).values()]
        if full:
            frame = spark.createDataFrame(TABLE.slice(full[0], 1)).selectExpr(f"{text} AS v")
            said = _outcome(frame)
            wrong += (
                []
                if any(word in said for word in ("OVERFLOW", "BY_ZERO", "CAST_INVALID"))
                else [f"{text} in {_shown(text, full[0])}: {said}"]
            )
    report(wrong)


def _outcome(frame: Any) -> str:
    try:
        return repr(frame.collect()[0][0])
    except Exception as error:
        return str(error)
