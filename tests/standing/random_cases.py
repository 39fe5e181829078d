"""Random streams, queries, windows and moments; and what DuckDB says to the same query on the same prefix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from penstock.model.types import Schema, arrow_schema
from penstock.standing.language.query import StreamInfo
from penstock.standing.language.windows import Last, Window

SECOND = 1_000_000
SCHEMAS = {
    "cars": Schema.parse("time TIMESTAMP, k INT, v DOUBLE, name STRING, big BIGINT, ok BOOLEAN, f FLOAT"),
    "tolls": Schema.parse("time TIMESTAMP, k INT, toll INT, name STRING"),
}
INFOS = {name: StreamInfo(name, schema, keep=7200 * SECOND) for name, schema in SCHEMAS.items()}

_NAMES = ["", "a", "ab", "b", "ü", None]
_SPEEDS = [0.0, -0.0, 0.5, 1.5, 20.0, float("nan"), float("inf"), -3.25, None]
_FLOATS = [0.1, 0.2, 0.3, 0.5, -0.0, 16777216.0, float("nan"), float("-inf"), None]
_BIGS = [0, 1, -1, 2**62, -(2**62), 7, None]


@st.composite
def trains(draw: Any, most: int = 5) -> list[tuple[str, pa.Table]]:
    """Trains of two streams with disorder, ties in time, nulls and extremes."""
    found, newest, seqs = [], 100, {"cars": 0, "tolls": 0}
    for _ in range(draw(st.integers(1, most))):
        name = draw(st.sampled_from(["cars", "cars", "tolls"]))
        rows = []
        for _ in range(draw(st.integers(0, 12))):
            newest += draw(st.integers(0, 3))
            at = (newest - draw(st.integers(0, 5))) * SECOND
            row = {
                "time": at,
                "k": draw(st.sampled_from([None, 0, 1, 2, 3, 4])),
                "_ts": at,
                "_seq": seqs[name],
            }
            row["name"] = draw(st.sampled_from(_NAMES))
            if name == "cars":
                row |= {
                    "v": draw(st.sampled_from(_SPEEDS)),
                    "big": draw(st.sampled_from(_BIGS)),
                    "ok": draw(st.sampled_from([True, False, None])),
                    "f": draw(st.sampled_from(_FLOATS)),
                }
            else:
                row["toll"] = draw(st.sampled_from([None, 0, 5, 9]))
            seqs[name] += 1
            rows.append(row)
        schema = arrow_schema(SCHEMAS[name])
        columns = [
            pa.array([r[f.name] for r in rows], f.type if f.name != "time" else pa.int64()) for f in schema
        ]
        table = pa.table(columns, names=schema.names).cast(schema)
        found.append((name, table))
    return found


_ATOMS = [
    "k = 2",
    "k < 3",
    "k >= 1",
    "k BETWEEN 1 AND 3",
    "k <> 2",
    "k IN (0, 4)",
    "k NOT IN (1, 2)",
    "2 < k",
    "k > 1.5",
    "k = 1.5",
    "v < 20",
    "v >= 0.5",
    "v = 0",
    "v BETWEEN -5 AND 1",
    "v <> 20",
    "name = 'a'",
    "name < 'b'",
    "name >= 'ab'",
    "name LIKE 'a%'",
    "name IS NULL",
    "name IS NOT NULL",
    "v IS NOT NULL",
    "big > 0",
    "big <= -1",
    "big = 4611686018427387904",
    "big < 99999999999999999999",
    "ok = true",
    "ok",
    "NOT ok",
    "k + 1 > 3",
    "big = k",
    "time >= TIMESTAMP '1970-01-01 00:01:45'",
    "NOT (k > 2)",
    "f = 0.1",
    "f <> 0.1",
    "f > 0.1",
    "f <= 0.3",
    "f < 0.2",
    "f >= 0.1e0",
    "f IN (0.1, 0.3)",
    "NOT (f BETWEEN 0.1 AND 0.3)",
    "k = 1 OR k = 3 OR 4 = k",
    "v IN (0.5, 20, -3.25)",
    "name IN ('a', 'ü', NULL)",
    "big IN (7, 4611686018427387904)",
    "k IN (1, 2.5, 3) AND k > 1",
    "ok IN (true)",
    "NOT (k = 1 OR k IN (2, 3))",
    "f > -0.1",
    "f = 16777217",
    "f + 0 > 0.25",
    "NOT (k BETWEEN 1 AND 2)",
]
_TOLL_ATOMS = ["t.k > 0", "t.toll < 9", "t.name = 'a'", "t.toll IN (5, 9)", "t.k IS NOT NULL"]
_TIES = [
    "c.k = t.k",
    "c.k < t.k",
    "c.k >= t.toll",
    "c.name = t.name",
    "c.v > t.toll",
    "c.k + 1 = t.k",
    "c.k <> t.k",
    "c.big <= t.k",
    "c.f <= t.toll",
]


@st.composite
def conditions(draw: Any, atoms: list[str], depth: int = 2) -> str:
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(atoms))
    left, right = draw(conditions(atoms, depth - 1)), draw(conditions(atoms, depth - 1))
    text = f"({left} {draw(st.sampled_from(['AND', 'AND', 'OR']))} {right})"
    return f"NOT {text}" if draw(st.integers(0, 5)) == 0 else text


@st.composite
def windows(draw: Any) -> str:
    kind = draw(st.integers(0, 6))
    back, later = draw(st.integers(0, 40)), draw(st.integers(0, 10))
    match kind:
        case 0:
            return ""
        case 1:
            return f"BEGIN now - {back} seconds END now"
        case 2:
            return f"BEGIN now - {back + later} seconds END now - {later} seconds"
        case 3:
            return f"BEGIN last {back + 1} tuples"
        case 4:
            return f"BEGIN last {back + 1} tuples END now - {later} seconds"
        case 5:
            return f"BEGIN {100 + back} END {100 + back + later}"
        case _:
            return f"BEGIN '1970-01-01 00:01:{40 + later:02d}' END now"


@dataclass(frozen=True)
class Case:
    """A query for us, and its parts for DuckDB."""

    text: str
    select: str
    where: str
    distinct: bool
    parts: tuple[tuple[str, str], ...]  # alias, stream


_AGGREGATES = [
    "COUNT(*) AS n",
    "COUNT(v) AS c",
    "SUM(k) AS s",
    "AVG(v) AS a",
    "MIN(v) AS l",
    "MAX(v) AS m",
    "MIN(name) AS ln",
    "MAX(time) AS mt",
    "SUM(v) AS sv",
    "MAX(big) AS mb",
    "AVG(k) AS ak",
]


@st.composite
def selections(draw: Any) -> Case:
    where = draw(st.one_of(st.just(""), conditions(_ATOMS)))
    if draw(st.integers(0, 3)) == 0:
        select, distinct = (
            ", ".join(draw(st.lists(st.sampled_from(_AGGREGATES), min_size=1, max_size=4, unique=True))),
            False,
        )
    else:
        columns = draw(st.lists(st.sampled_from(SCHEMAS["cars"].names), min_size=1, max_size=4, unique=True))
        select, distinct = ", ".join(columns), draw(st.integers(0, 4)) == 0
    text = f"SELECT {'DISTINCT ' if distinct else ''}{select} FROM cars" + (
        f" WHERE {where}" if where else ""
    )
    return Case(f"{text} {draw(windows())}", select, where, distinct, (("cars", "cars"),))


@st.composite
def joins(draw: Any) -> Case:
    atoms = [f"c.{a}" for a in ("k = 2", "k < 3", "v < 20", "name >= 'ab'")] + _TOLL_ATOMS
    where = " AND ".join(draw(st.lists(st.sampled_from(_TIES), min_size=1, max_size=2, unique=True)))
    if draw(st.booleans()):
        where += f" AND {draw(conditions(atoms, 1))}"
    if draw(st.integers(0, 4)) == 0:
        where = f"({where}) OR (c.k = t.k AND t.toll = 5)"
    parts = [("c", "cars"), ("t", "tolls")]
    if draw(st.integers(0, 4)) == 0:
        parts.append(("d", "cars"))
        where = f"({where}) AND d.k = t.k AND d.v > 0"
    select = draw(
        st.sampled_from(
            ["c.k AS a, c.v AS b, t.toll AS d", "t.name AS x, c.time AS y", "COUNT(*) AS n, SUM(t.toll) AS s"]
        )
    )
    streams = ", ".join(f"{stream} {alias}" for alias, stream in parts)
    each = (
        draw(windows())
        if draw(st.booleans())
        else ", ".join(f"{w} FOR {a}" for a, _ in parts if (w := draw(windows())))
    )
    distinct = "COUNT" not in select and draw(st.integers(0, 3)) == 0
    text = f"SELECT {'DISTINCT ' if distinct else ''}{select} FROM {streams} WHERE {where} {each}"
    return Case(text, select, where, distinct, tuple(parts))


def expected(
    case: Case, asked: tuple[Window, ...], prefixes: dict[str, pa.Table], con: Any, at: int | None = None
) -> list[tuple[Any, ...]]:
    """DuckDB's answer on the prefix: the windows as conditions and limits, the rest as it stands. `at`: an
    earlier now.
    """
    newest = [
        max(t["_ts"].to_pylist())
        for n, t in prefixes.items()
        if t.num_rows and n in {s for _, s in case.parts}
    ]
    now = at if at is not None else max(newest) if newest else -(1 << 62)
    sources = []
    for (alias, stream), window in zip(case.parts, asked, strict=True):
        con.register(f"all_{stream}", prefixes[stream])
        begin, end = window.span(now)
        part = f"SELECT * FROM all_{stream} WHERE _ts <= {end} AND _ts >= {begin}"
        if isinstance(window.begin, Last):
            part += f" ORDER BY _ts DESC, _seq DESC LIMIT {window.begin.tuples}"
        sources.append(f"({part}) {alias}")
    where = f" WHERE {case.where}" if case.where else ""
    sql = f"SELECT {'DISTINCT ' if case.distinct else ''}{case.select} FROM {', '.join(sources)}{where}"
    return canonical(con.sql(sql).fetchall())


def canonical(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows that can be compared: sorted, times as numbers, floats to nine digits, NaN as a word."""
    return sorted((tuple(_plain(v) for v in row) for row in rows), key=repr)


def _plain(value: Any) -> Any:
    if isinstance(value, float | np.floating):
        return "nan" if value != value else float(f"{value + 0.0:.9g}")
    if hasattr(value, "timestamp"):
        return round(value.timestamp() * SECOND)
    return float(value) if hasattr(value, "as_tuple") else value


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return canonical([tuple(row.values()) for row in table.to_pylist()])


def connection() -> Any:
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    con.execute("SET threads = 1")
    return con
