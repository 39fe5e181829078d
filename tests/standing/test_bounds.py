"""What one query may take: pairs of a join, bytes and rows of an answer, seconds, files."""

from __future__ import annotations

import threading
from typing import Self

import numpy as np
import psutil
import pyarrow as pa
import pytest

from penstock.model.types import Schema
from penstock.standing.answers import joins
from penstock.standing.answers.query_engine import QueryEngine
from penstock.standing.deadline import check_time, time_limit
from penstock.standing.errors import LimitError, OutOfTimeError
from penstock.standing.language.query import StreamInfo
from penstock.standing.limits import Limits
from penstock.standing.stems import block as block_module

CARS = StreamInfo("cars", Schema.parse("k INT, v INT, s STRING"), keep=10**15)
SELF_JOIN = "SELECT COUNT(*) FROM cars a, cars b WHERE a.k = b.k"


def engine_of(rows: int, keys: int = 1, budget: int | None = None, **limits: float) -> QueryEngine:
    engine = QueryEngine([CARS], limits=Limits(**limits), budget=budget)  # type: ignore[arg-type]
    at = np.arange(rows)
    columns = {"k": (at % keys).astype(np.int32), "v": at.astype(np.int32), "s": ["x" * 100] * rows}
    engine.insert("cars", pa.table({**columns, "_ts": at, "_seq": at}))
    return engine


class Peak:
    """The most memory that this process takes inside the block, above what it took before."""

    def __enter__(self) -> Self:
        self._process, self._done = psutil.Process(), threading.Event()
        self.before = self.most = self._process.memory_info().rss
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def _look(self) -> None:
        while not self._done.wait(0.002):
            self.most = max(self.most, self._process.memory_info().rss)

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    @property
    def grown(self) -> int:
        return self.most - self.before


@pytest.mark.parametrize("mode", ["P", "C", "NoMat"])
def test_a_self_join_keeps_to_the_budget(mode: str) -> None:
    """Before, 20 million pairs took gigabytes at registration, and again at each restart."""
    engine = engine_of(4_500, budget=64 << 20)
    with Peak() as peak:
        registered = engine.register(SELF_JOIN, mode=mode, restored=True)
        with pytest.raises(LimitError, match="more pairs than memory allows"):
            engine.invoke(registered.handle)
    assert registered.mode == "NoMat"
    assert peak.grown < 128 << 20


def test_results_that_are_registered_one_by_one_share_the_budget() -> None:
    engine = engine_of(1_000, keys=20, budget=24 << 20)
    handles = [engine.register(f"{SELF_JOIN} AND a.v < {10_000 + i}", mode="C").handle for i in range(30)]
    assert sum(engine.registered(handle).nbytes for handle in handles) <= 24 << 20
    assert {engine.invoke(handle)[0][0].as_py() for handle in handles} == {50_000}


def test_a_join_looks_at_so_many_pairs_and_no_more() -> None:
    engine = engine_of(1_000, pairs=500_000)
    handle = engine.register(SELF_JOIN).handle
    with pytest.raises(LimitError, match="would look at 1,000,000 pairs"):
        engine.invoke(handle)


def test_portions_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joins, "_PORTION", 37)
    engine = engine_of(100, keys=7)
    text = "SELECT a.v, b.v FROM cars a, cars b WHERE a.k = b.k AND a.v < b.v AND a.v + b.v > 50"
    rows = engine.invoke(engine.register(text).handle).to_pylist()
    expected = {(i, j) for i in range(100) for j in range(i + 1, 100) if i % 7 == j % 7 and i + j > 50}
    assert {tuple(row.values()) for row in rows} == expected
    assert len(rows) == len(expected)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT v, k FROM cars WHERE v >= 0",
        "SELECT DISTINCT s FROM cars",
        "SELECT s FROM cars",
        "SELECT a.s FROM cars a, cars b WHERE a.v = b.v",
        "SELECT MAX(a.s) FROM cars a, cars b WHERE a.v = b.v",
    ],
)
def test_an_answer_takes_so_many_bytes_and_no_more(text: str) -> None:
    engine = engine_of(1_000, answer_bytes=10_000)
    handle = engine.register(text).handle
    with pytest.raises(LimitError, match="the answer takes"):
        engine.invoke(handle)


def test_work_without_end_is_cancelled() -> None:
    engine = engine_of(3_000)
    handle = engine.register(f"{SELF_JOIN} AND a.v + b.v < 0", mode="NoMat").handle
    with time_limit(0.0), pytest.raises(OutOfTimeError, match="at most 0 seconds"):
        engine.invoke(handle)
    assert engine.invoke(handle).num_rows == 1  # the limit ended with its block


def test_a_query_that_cannot_meet_its_data_in_time_is_answered_later() -> None:
    engine = engine_of(100)
    with time_limit(0.0):
        assert engine.register(SELF_JOIN, mode="C").mode == "NoMat"


def test_threads_have_limits_of_their_own() -> None:
    with time_limit(-1.0):
        thread = threading.Thread(target=check_time)
        thread.start()
        thread.join()
        with pytest.raises(OutOfTimeError):
            check_time()


def test_matches_that_blocks_remember_are_bounded() -> None:
    """Each query that an old block meets is remembered there; thousands must not outgrow the tuples."""
    engine = engine_of(2_000)
    [block] = engine.view.prefixes["cars"].blocks
    for i in range(300):
        engine.invoke(engine.register(f"SELECT v FROM cars WHERE v >= {i}", mode="P").handle)
    assert block.nbytes <= 2 * block.data_bytes


@pytest.mark.parametrize("most", [1, 300, 5_000, 1 << 24])
def test_conjunctions_are_probed_in_portions_that_change_nothing(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Thousands of queries that match every tuple would fill a task's memory if probed together."""
    monkeypatch.setattr(block_module, "_MOST_POSITIONS", most)
    engine = QueryEngine([CARS])
    conditions = [f"v >= {i}" for i in range(0, 1_000, 50)]
    conditions += [f"v IN ({i}, {i + 7}, {i + 300})" for i in range(0, 600, 40)]
    conditions += [f"v < {i} AND k = 3" for i in range(0, 1_000, 70)]
    conditions += ["v % 3 = 1 AND v > 500", "s LIKE 'x%'", "v = -1", "k IN (1, 2) AND v IN (8, 9, 10)"]
    handles = [engine.register(f"SELECT v FROM cars WHERE {c}", mode="P").handle for c in conditions]
    at = np.arange(1_000)
    rows = {"k": (at % 7).astype(np.int32), "v": at.astype(np.int32), "s": ["x"] * 1_000}
    engine.insert("cars", pa.table({**rows, "_ts": at, "_seq": at}))
    [block] = engine.view.prefixes["cars"].blocks
    assert block.late == {}  # all have met the train, none the block
    for handle, condition in zip(handles, conditions, strict=True):
        plain = engine.register(f"SELECT v FROM cars WHERE {condition}", mode="NoMat").handle
        assert engine.invoke(handle).equals(engine.invoke(plain))
    assert block.late == {}


def test_an_unknown_handle_names_no_other() -> None:
    engine = engine_of(1)
    handle = engine.register("SELECT v FROM cars").handle
    with pytest.raises(Exception, match="no standing query") as caught:
        engine.invoke(handle[:-1])
    assert handle not in str(caught.value)
