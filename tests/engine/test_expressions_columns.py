"""The column engine's own promises: shapes of tables, doubts settled, and that common expressions need no row
at all.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock.engine.arrow.columns import expressions
from penstock.engine.arrow.columns.expressions import compile_arrow
from penstock.engine.spark.layout.expressions import to_spark
from penstock.model.types import Schema, arrow_schema

CARS = Schema.parse("time TIMESTAMP, vid INT, speed DOUBLE, name STRING, dist BIGINT")


def table(rows: int = 10, **columns: Any) -> pa.Table:
    made = {
        "time": range(rows),
        "vid": range(rows),
        "speed": [i / 2 for i in range(rows)],
        "name": [f"n{i}" for i in range(rows)],
        "dist": range(rows),
        **columns,
    }
    schema = arrow_schema(CARS, hidden=False)
    return pa.table(
        [
            pa.array(list(made[f.name]), pa.int64()).cast(f.type)
            if f.name == "time"
            else pa.array(made[f.name], f.type)
            for f in schema
        ],
        schema=schema,
    )


COMMON = [
    "vid < 40", "speed * 1.5 + vid", "vid + 1", "dist DIV 60", "vid % 7 = 0", "name = 'n1' OR vid > 5",
    "CASE WHEN speed > 2 THEN 'fast' ELSE 'slow' END", "coalesce(speed, 0.0)",
    "name LIKE 'n%'", "length(name)", "upper(name)", "substring(name, 1, 2)", "hour(time)",
    "date_trunc('minute', time)", "time + INTERVAL 5 SECONDS", "CAST(speed AS INT)",
    "CAST(vid AS STRING)", "vid IN (1, 2, 3)", "speed IS NULL", "round(speed / 3, 2)", "abs(vid)",
    "least(vid, dist)", "unix_micros(time) DIV 1000000", "pmod(vid, 5)", "name || '-'",
    "IF(vid > 0, speed / vid, 0.0)", "floor(speed)", "sqrt(speed)", "vid BETWEEN 2 AND 5", "NOT (vid = 3)",
    "speed <=> 1.5", "year(time)", "timestamp_seconds(dist)", "CAST(substring(name, 2) AS INT)",
]  # fmt: skip


@pytest.mark.parametrize("text", COMMON)
def test_common_expressions_never_go_row_by_row(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("done row by row")

    monkeypatch.setattr(expressions, "rows_one_by_one", refuse)
    values, failures = compile_arrow(text, CARS)(table())
    assert (len(values), failures) == (10, {})


def test_only_doubtful_rows_are_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []
    reference = expressions.rows_one_by_one

    def counted(node: Any, rows: pa.Table) -> Any:
        done.append(rows.num_rows)
        return reference(node, rows)

    monkeypatch.setattr(expressions, "rows_one_by_one", counted)
    values, failures = compile_arrow("vid + 2147483640", CARS)(table(1000))
    assert values[7].as_py() == 2147483647
    assert len(failures) == 992
    assert failures[8] == "INT overflow"
    values, failures = compile_arrow("100 / (vid - 3)", CARS)(table(1000))
    assert failures == {3: "division by zero"}
    assert done == [992, 1]


def test_chunks_slices_and_empty_tables() -> None:
    act = compile_arrow("10 / vid", CARS)
    parts = pa.concat_tables([table(3), table(4).slice(2)])
    values, failures = act(parts)
    assert values.to_pylist() == [None, 10.0, 5.0, 5.0, 10 / 3]
    assert failures == {0: "division by zero"}
    values, failures = act(table(0))
    assert (values.type, len(values), failures) == (pa.float64(), 0, {})


def test_constants_fill_the_column_and_fail_on_every_row() -> None:
    assert compile_arrow("1 + 1", CARS)(table(3))[0].to_pylist() == [2, 2, 2]
    values, failures = compile_arrow("vid + 1 DIV 0", CARS)(table(2))
    assert values.to_pylist() == [None, None]
    assert failures == {0: "division by zero", 1: "division by zero"}
    assert compile_arrow("CASE WHEN vid < 0 THEN 1 DIV 0 ELSE 5L END", CARS)(table(2))[1] == {}


def test_extra_columns_do_no_harm() -> None:
    wide = table(3).append_column("_ts", pa.array([1, 2, 3])).append_column("_seq", pa.array([1, 2, 3]))
    assert compile_arrow("pow(vid, 2)", CARS)(wide)[0].to_pylist() == [0.0, 1.0, 4.0]


def test_spark_sql_is_plain_where_nothing_can_fail() -> None:
    made = to_spark("speed < 40 AND name LIKE 'a%' AND vid % 10 = 3", CARS)
    assert made.failure is None
    assert "try_" not in made.value


def test_spark_sql_quotes_names_and_texts() -> None:
    odd = Schema.of([("a b", "STRING")])
    assert to_spark("`a b` = 'it''s \\\\'", odd).value == "(`a b` = 'it\\'s \\\\')"


def test_the_edge_of_a_word_is_spelt_out_for_java() -> None:
    """Before version 19, Java's \\b counts letters beyond ASCII as parts of a word."""
    sql = to_spark(r"name RLIKE '\\b[0-9]\\\\b'", CARS).value
    assert sql == r"(`name` RLIKE '(?:(?<=\\w)(?!\\w)|(?<!\\w)(?=\\w))[0-9]\\\\b')"
