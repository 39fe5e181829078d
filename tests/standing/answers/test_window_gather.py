"""The compiled way to an answer gives what the plain way gives, and is taken where it can be."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.model.types import Schema
from penstock.standing.answers import invocation as answers
from penstock.standing.answers.query_engine import QueryEngine
from penstock.standing.errors import LimitError
from penstock.standing.language.query import StreamInfo
from penstock.standing.limits import Limits
from penstock.standing.stems.block import make_blocks

SCHEMA = Schema.parse("t TIMESTAMP, v INT, w DOUBLE, s SMALLINT, b TINYINT, n INT, x STRING, f BOOLEAN")


def train(rng: np.random.Generator, count: int, first: int, *, spread: int) -> pa.Table:
    """Tuples whose times overlap with those of the trains beside it."""
    at = np.sort(rng.integers(max(0, first - spread), first + spread, count))
    v = rng.integers(0, 100, count)
    return pa.table(
        {
            "t": pa.array(at).cast(pa.timestamp("us", "UTC")),
            "v": pa.array(v, pa.int32()),
            "w": pa.array(v / 7),
            "s": pa.array(v * 3, pa.int16()),
            "b": pa.array(v, pa.int8()),
            "n": pa.array([None if n % 5 == 0 else int(n) for n in v], pa.int32()),
            "x": pa.array([str(n) for n in v]),
            "f": pa.array(v > 50),
            "_ts": pa.array(at),
            "_seq": pa.array(np.arange(first, first + count)),
        }
    )


def filled(
    rng: np.random.Generator, *, spread: int = 50, trains: int = 5, limits: Limits | None = None
) -> QueryEngine:
    engine = QueryEngine([StreamInfo("cars", SCHEMA)], limits=limits)
    engine.register("SELECT v FROM cars WHERE v > 200")
    for n in range(trains):
        engine.insert("cars", train(rng, int(rng.integers(1, 1200)), n * 100, spread=spread))
    return engine


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the compiled way answered, for each invocation."""
    seen: list[bool] = []
    at_once = answers._at_once

    def watched(*given: object) -> object:
        table = at_once(*given)  # type: ignore[arg-type]
        seen.append(table is not None)
        return table

    monkeypatch.setattr(answers, "_at_once", watched)
    return seen


def both(engine: QueryEngine, handle: str) -> tuple[pa.Table, pa.Table]:
    """The answer as it comes, and the plain way's."""
    made = engine.registered(handle)
    plain = answers._one_by_one(engine, made, engine.view, engine.view.now(made.query), fresh=False)
    return engine.invoke(handle), plain


@settings(max_examples=60, deadline=None)  # the first compiles
@given(st.integers(0, 1 << 30), st.integers(1, 400), st.sampled_from([0.02, 0.3]), st.booleans())
def test_equal_to_the_plain_way(seed: int, window: int, share: float, counted: bool) -> None:
    rng = np.random.default_rng(seed)
    engine = filled(rng, spread=int(rng.integers(1, 300)))
    low = int(rng.integers(0, 90))
    begin = f"BEGIN last {window} tuples" if counted else f"BEGIN now - {window / 1e6:.6f} seconds END now"
    query = engine.register(
        f"SELECT t, v, w, s AS s3, b FROM cars WHERE v BETWEEN {low} AND {low + int(100 * share)} {begin}"
    )
    # which the query has met, as the blocks before have not
    engine.insert("cars", train(rng, 400, 600, spread=200))
    # which no query has met, as when it was loaded from files
    engine.insert_blocks("cars", make_blocks(train(rng, 400, 700, spread=200), SCHEMA, None))
    answer, plain = both(engine, query.handle)
    assert answer.equals(plain)


def test_taken_where_it_fits(taken: list[bool]) -> None:
    engine = filled(np.random.default_rng(3))
    numbers = engine.register(
        "SELECT t, v, w, s, b FROM cars WHERE v BETWEEN 3 AND 6 BEGIN now - 1 second END now"
    )
    dense = engine.register("SELECT v FROM cars WHERE v >= 3 BEGIN now - 1 second END now")
    engine.insert("cars", train(np.random.default_rng(6), 900, 500, spread=50))
    for each in (numbers, dense):
        answer, plain = both(engine, each.handle)
        assert answer.num_rows
        assert answer.equals(plain)
    assert any(block.matches and block.matches.bitmaps for block in engine.view.prefixes["cars"].blocks)
    assert taken == [True, True]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT x FROM cars WHERE v BETWEEN 3 AND 6",
        "SELECT f FROM cars WHERE v BETWEEN 3 AND 6",
        "SELECT n FROM cars WHERE v BETWEEN 3 AND 6",
        "SELECT v FROM cars WHERE v = 3 OR w > 9",
    ],
)
def test_else_the_plain_way(taken: list[bool], query: str) -> None:
    engine = filled(np.random.default_rng(4))
    handle = engine.register(query, mode="P").handle
    answer, plain = both(engine, handle)
    assert taken == [False]
    assert answer.num_rows
    assert answer.equals(plain)


def test_limits_hold() -> None:
    engine = filled(np.random.default_rng(5), limits=Limits(rows=3))
    handle = engine.register("SELECT v FROM cars WHERE v BETWEEN 3 AND 6").handle
    with pytest.raises(LimitError, match="at most 3"):
        engine.invoke(handle)
    few = engine.register("SELECT DISTINCT v FROM cars WHERE v BETWEEN 3 AND 4")
    assert sorted(engine.invoke(few.handle)["v"].to_pylist()) == [3, 4]
