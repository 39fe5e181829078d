"""The engine without Spark: retention, memory, limits, past windows, sharing, merging, changes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.model.boxes import NO_PROMISE
from penstock.model.types import Schema
from penstock.standing.answers.changes import changes
from penstock.standing.answers.query_engine import Archived, QueryEngine
from penstock.standing.answers.ranked_tree import RankedTree, Summary
from penstock.standing.answers.registered_query import UNKEPT
from penstock.standing.errors import LimitError, NotRetainedError, QueryError, UnknownHandleError
from penstock.standing.language.query import StreamInfo
from penstock.standing.limits import Limits
from penstock.standing.serving.point_feed import packed, unpacked
from penstock.standing.stems.block import Block, make_blocks
from penstock.standing.stems.data_stem import StreamPrefix

SECOND = 1_000_000
SCHEMA = Schema.parse("v INT")


def table(first: int, count: int, *, step: int = SECOND) -> pa.Table:
    numbers = np.arange(first, first + count)
    return pa.table({"v": pa.array(numbers.astype(np.int32)), "_ts": numbers * step, "_seq": numbers})


def engine(keep: int = 100, **more: object) -> QueryEngine:
    return QueryEngine([StreamInfo("s", SCHEMA, keep=keep * SECOND)], **more)  # type: ignore[arg-type]


def values(found: pa.Table) -> list[int]:
    return found["v"].to_pylist()


def test_equal_conjunctions_are_probed_once() -> None:
    made = engine()
    for text in ("SELECT v FROM s WHERE v < 5", "SELECT v FROM s WHERE v <= 4 BEGIN now - 3 seconds"):
        made.register(text)
    assert len(made.index("s").slots) == 1


def test_unregistered_queries_leave_no_trace_in_the_index() -> None:
    made = engine()
    handles = [made.register(f"SELECT v FROM s WHERE v > {i}").handle for i in range(300)]
    made.insert("s", table(0, 10))
    for handle in handles[1:]:
        made.unregister(handle)
    assert len(made.index("s").slots) == 1
    made.insert("s", table(10, 10))
    assert values(made.invoke(handles[0])) == list(range(1, 20))
    with pytest.raises(UnknownHandleError, match="no standing query"):
        made.invoke(handles[1])


def test_any_past_window_that_is_retained() -> None:
    made = engine()
    handle = made.register("SELECT v FROM s WHERE v >= 0 BEGIN now - 2 seconds", mode="C").handle
    for i in range(5):
        made.insert("s", table(10 * i, 10))
    assert values(made.invoke(handle)) == [47, 48, 49]
    assert values(made.invoke(handle, at=20 * SECOND)) == [18, 19, 20]


def test_what_is_older_than_the_retention_goes_and_is_not_answered() -> None:
    made = engine(keep=20)
    handle = made.register("SELECT v FROM s WHERE v >= 0 BEGIN 5 END now").handle
    for i in range(10):
        made.insert("s", table(10 * i, 10), entry=i)
    assert made.view.prefixes["s"].rows <= 40
    with pytest.raises(NotRetainedError, match="longer than what is retained"):
        made.invoke(handle)
    with pytest.raises(NotRetainedError):
        made.register("SELECT v FROM s BEGIN 5 END 6")


def test_one_budget_for_all_streams_and_results() -> None:
    made = QueryEngine([StreamInfo(name, SCHEMA, keep=10_000 * SECOND) for name in "abc"], budget=6000)
    current = made.register("SELECT v FROM a WHERE v >= 0 BEGIN now - 20 seconds", mode="C")
    pairs = made.register("SELECT a.v, b.v AS w FROM a, b WHERE a.v = b.v BEGIN now - 20 seconds")
    for i in range(30):
        for name in "abc":
            made.insert(name, table(10 * i, 10), entry=i)
        held = made.stored()
        assert held["data"] + held["results"] <= 6000
    assert (current.mode, pairs.mode) == ("C", "C")
    assert all(0 < prefix.rows < 100 for prefix in made.view.prefixes.values())
    many = made.register("SELECT a.v, b.v AS w FROM a, b WHERE a.v <> b.v BEGIN now - 20 seconds")
    made.insert("a", table(300, 10), entry=30)
    assert many.mode == "NoMat"
    assert current.mode == "C"


SELF_JOIN = (
    "SELECT a.v AS v, b.v AS w FROM s a, s b WHERE b.v = a.v + 3 "
    "BEGIN now - 95 seconds FOR a, BEGIN now - 85 seconds FOR b"
)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT v FROM s WHERE v >= 3 BEGIN 0 END now",
        "SELECT v FROM s WHERE v >= 3 BEGIN last 95 tuples",
        "SELECT v FROM s WHERE v >= 3 BEGIN last 5 tuples END now - 80 seconds",
        SELF_JOIN,
        "SELECT SUM(v) AS v FROM s WHERE v >= 3 BEGIN 0 END now",
    ],
)
def test_beyond_the_memory_budget_tuples_come_from_the_files(text: str) -> None:
    files: list[pa.Table] = []
    asked = []

    def archive(stream: str, through: int, begin: int, end: int, most: float) -> Archived:
        asked.append((stream, through))
        found = pa.concat_tables(files[: through + 1])
        return Archived(found.filter((pc.field("_ts") >= begin) & (pc.field("_ts") <= end)))

    made, whole = engine(1000, budget=1500, archive=archive), engine(1000)
    handles = made.register(text).handle, whole.register(text).handle
    for i in range(10):
        files.append(table(10 * i, 10))
        made.insert("s", files[-1], entry=i)
        whole.insert("s", files[-1])
    prefix: StreamPrefix = made.view.prefixes["s"]
    assert prefix.evicted is not None
    assert prefix.rows < 100 == prefix.count
    # rows of joins have no order
    assert sorted(values(made.invoke(handles[0]))) == sorted(values(whole.invoke(handles[1])))
    assert asked == [("s", prefix.evicted.entry)]


def test_a_window_is_refused_if_retention_was_ahead_of_what_is_seen_here() -> None:
    files: list[pa.Table] = []

    def archive(stream: str, through: int, begin: int, end: int, most: float) -> Archived:
        left = pa.concat_tables(files[: through + 1]).filter(pc.field("_ts") >= 30 * SECOND)
        return Archived(left, lost=30 * SECOND)

    made = engine(1000, budget=1500, archive=archive)
    for i in range(10):
        files.append(table(10 * i, 10))
        made.insert("s", files[-1], entry=i)
    kept = made.register("SELECT v FROM s WHERE v >= 0 BEGIN now - 69 seconds END now").handle
    assert values(made.invoke(kept)) == list(range(30, 100))
    gone = made.register("SELECT v FROM s WHERE v >= 0 BEGIN now - 70 seconds END now").handle
    with pytest.raises(NotRetainedError, match="longer than what is retained"):
        made.invoke(gone)


def test_a_train_that_leaves_memory_leaves_no_part_of_it_in_a_merged_block() -> None:
    ends: list[int] = []  # of each train
    made = engine(1 << 20, archive=lambda _, through, *__: Archived(table(0, ends[through])))
    handle, first = made.register("SELECT v FROM s WHERE v >= 0").handle, 0
    for entry, sizes in enumerate([(40_000, 100), *[(100,)] * 8]):
        made.budget = 400_000 if entry == 8 else None  # so the first train leaves after blocks were merged
        blocks: list[Block] = []
        for size in sizes:
            blocks += make_blocks(table(first, size), SCHEMA, None, entry)
            first += size
        ends.append(first)
        made.insert_blocks("s", blocks)
    assert made.view.prefixes["s"].evicted is not None
    assert values(made.invoke(handle)) == list(range(first))


@pytest.mark.parametrize("restarted", [False, True])
def test_without_a_horizon_the_newest_tuple_says_what_is_retained(restarted: bool) -> None:
    made = engine(keep=20)
    asked = made.register("SELECT v FROM s WHERE v >= 0").handle
    landmark = made.register("SELECT v FROM s WHERE v >= 0 BEGIN 0").handle
    made.insert("s", table(0, 50), horizon=NO_PROMISE)
    if restarted:
        made.set_lost("s", NO_PROMISE - 20 * SECOND)
    assert values(made.invoke(asked)) == list(range(29, 50))
    with pytest.raises(NotRetainedError, match="longer than what is retained"):
        made.invoke(landmark)


@pytest.mark.parametrize("mode", ["P", "C", "NoMat"])
def test_a_count_window_looks_at_tuples_up_to_its_end(mode: str) -> None:
    made = engine(keep=20)
    past = made.register(
        "SELECT v FROM s WHERE v >= 0 BEGIN last 5 tuples END now - 10 seconds", mode=mode
    ).handle
    long = made.register("SELECT v FROM s WHERE v >= 0 BEGIN last 30 tuples", mode=mode).handle
    made.insert("s", table(0, 10))
    assert values(made.invoke(long)) == list(range(10))  # a young stream has lost nothing
    for i in range(1, 5):
        made.insert("s", table(10 * i, 10))
    assert values(made.invoke(past)) == [35, 36, 37, 38, 39]
    with pytest.raises(NotRetainedError, match="at most 21 tuples now"):
        made.invoke(long)
    with pytest.raises(NotRetainedError, match="at most 3 tuples now"):
        made.invoke(past, at=41 * SECOND)


@pytest.mark.parametrize("mode", ["P", "C", "NoMat"])
def test_without_a_window_it_is_everything_retained(mode: str) -> None:
    made = engine(keep=20)
    handle = made.register("SELECT v FROM s WHERE v >= 0", mode=mode).handle
    total = made.register("SELECT COUNT(*) AS v FROM s WHERE v >= 0", mode=mode).handle
    pairs = made.register("SELECT a.v FROM s a, s b WHERE a.v = b.v", mode=mode).handle
    for i in range(10):
        # every train brings a tuple that is later than its time
        made.insert(
            "s",
            table(10 * i, 10)
            if i % 2
            else pa.concat_tables([table(10 * i, 10), table(max(0, 10 * i - 15), 1)]),
        )
        lost = max(0, made.view.prefixes["s"].lost // SECOND)
        assert values(made.invoke(handle))[-1] == 10 * i + 9
        assert min(values(made.invoke(handle))) >= lost
        assert values(made.invoke(total)) == [len(values(made.invoke(handle)))]
        assert len(set(values(made.invoke(pairs)))) == len(set(values(made.invoke(handle))))
    assert lost > 0


def test_what_is_retained_does_not_depend_on_where_blocks_end() -> None:
    made = engine(keep=20)
    made.insert("s", table(0, 60))
    with pytest.raises(NotRetainedError, match="a BEGIN at or after '1970-01-01 00:00:39"):
        made.register("SELECT v FROM s BEGIN 38 END now")
    assert values(made.invoke(made.register("SELECT v FROM s").handle)) == list(range(39, 60))
    assert values(made.invoke(made.register("SELECT v FROM s BEGIN 39 END now").handle)) == list(
        range(39, 60)
    )


def test_limits_are_told() -> None:
    made = engine(limits=Limits(queries=1, rows=5))
    handle = made.register("SELECT v FROM s", owner="ann").handle
    with pytest.raises(LimitError, match="there are 1 standing queries of ann"):
        made.register("SELECT v FROM s", owner="ann")
    with pytest.raises(LimitError):  # a label of the client's own choice does not help
        made.register("SELECT v FROM s", owner="ann", client="another")
    made.register("SELECT v FROM s", owner="bob")
    made.insert("s", table(0, 6))
    with pytest.raises(LimitError, match="the answer has 6 rows"):
        made.invoke(handle)
    made.unregister(handle)
    made.register("SELECT v FROM s", owner="ann")


def test_the_limit_of_rows_counts_those_that_are_answered() -> None:
    made = engine(limits=Limits(rows=2))
    texts = ("SELECT DISTINCT v FROM s", "SELECT DISTINCT a.v FROM s a, s b WHERE a.v = b.v")
    handles = [made.register(text).handle for text in texts]
    made.insert("s", pa.concat_tables([table(0, 2)] * 10))
    assert [sorted(values(made.invoke(handle))) for handle in handles] == [[0, 1], [0, 1]]
    made.insert("s", table(2, 1))
    for handle in handles:
        with pytest.raises(LimitError, match="the answer has 3 rows"):
            made.invoke(handle)


@pytest.mark.parametrize("mode", ["P", "C", "NoMat"])
def test_pairs_come_in_the_order_of_the_older_tuple_also_of_count_windows(mode: str) -> None:
    made = engine()
    windows = "BEGIN last 3 tuples FOR a, BEGIN last 4 tuples FOR b"
    text = f"SELECT a.v, b.v AS w FROM s a, s b WHERE a.v > b.v {windows}"
    handle = made.register(text, mode=mode)
    for i in range(4):
        made.insert("s", table(10 * i, 10))
    found = made.invoke(handle.handle)
    assert handle.mode == mode
    assert found["w"].to_pylist() == [36, 36, 36, 37, 37, 38]
    assert sorted(values(found)) == [37, 38, 38, 39, 39, 39]


def test_a_mode_that_there_is_not() -> None:
    with pytest.raises(QueryError, match="one of: P, C, NoMat"):
        engine().register("SELECT v FROM s", mode="X")


def test_small_trains_are_merged() -> None:
    made = engine(10_000)
    handle = made.register("SELECT COUNT(*) AS v FROM s WHERE v >= 10 BEGIN now - 500 seconds").handle
    for i in range(1000):
        made.insert("s", table(i, 1))
        if i % 100 == 50:
            assert values(made.invoke(handle)) == [max(0, min(501, i - 9))]
    assert len(made.view.prefixes["s"].blocks) < 40


def test_an_aggregate_touches_few_nodes() -> None:
    tree = RankedTree()
    for i in range(5000):
        tree.append(Summary(1, 1, i, i, i))
    for first, last in ((0, 5000), (1, 4999), (7, 8), (100, 3333)):
        assert tree.between(first, last) == Summary(
            last - first, last - first, sum(range(first, last)), first, last - 1
        )
        assert tree.touched <= 2 * 7 * 5 + 8
    tree.truncate(1234)
    tree.append(Summary(1, 1, 5, 5, 5))
    assert tree.between(1000, 1235).total == sum(range(1000, 1234)) + 5


def test_changes_tell_what_came_and_what_left() -> None:
    made = engine()
    handle = made.register("SELECT v FROM s BEGIN now - 2 seconds").handle
    made.insert("s", table(0, 3))
    stream = changes(made, handle, timeout=0.01)
    assert values(next(stream).added) == [0, 1, 2]
    made.insert("s", table(3, 1))
    change = next(stream)
    assert (values(change.added), values(change.removed)) == ([3], [0])
    assert next(stream, None) is None


def test_changes_end_when_the_query_does() -> None:
    made = engine()
    handle = made.register("SELECT v FROM s").handle
    stream = changes(made, handle)
    next(stream)
    moved, waits = made._moved, threading.Event()

    def waiting(timeout: float | None, wait: Callable[..., bool] = moved.wait) -> bool:
        waits.set()  # the lock is held: nobody unregisters before `wait` gives it back
        return wait(timeout)

    def end() -> None:
        assert waits.wait(60)
        made.unregister(handle)

    moved.wait = waiting  # type: ignore[method-assign]
    with ThreadPoolExecutor(1) as other:
        ended = other.submit(end)
        assert list(stream) == []
        ended.result()


def test_a_block_survives_the_way_back() -> None:
    made = engine()
    for i in range(200):
        made.register(f"SELECT v FROM s WHERE v > {i}")
    index = made.index("s")
    block = make_blocks(table(0, 100), SCHEMA, index, 7)[0]
    back = unpacked(packed(block), SCHEMA, index)
    assert back.table.equals(block.table)
    assert back.entry == 7
    for slot, conjunction in made.query_stem.live("s").items():
        assert sorted(back.kept(slot, conjunction)) == sorted(block.scan(conjunction))


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("v = 0.1", [0.1]),
        ("v <> 0.1", [0.2, 0.3]),
        ("v > 0.1", [0.2, 0.3]),
        ("v <= 0.3", [0.1, 0.2, 0.3]),
        ("v = 0.1e0", []),
    ],
)
def test_a_float_meets_a_decimal_as_a_float_in_every_mode(where: str, found: list[float]) -> None:
    tuples = pa.table({"v": pa.array([0.1, 0.2, 0.3], pa.float32()), "_ts": [0, 1, 2], "_seq": [0, 1, 2]})
    made = QueryEngine([StreamInfo("s", Schema.parse("v FLOAT"))])
    handles = [made.register(f"SELECT v FROM s WHERE {where}", mode=m).handle for m in ("P", "C", "NoMat")]
    made.insert("s", tuples)
    handles += [made.register(f"SELECT v FROM s WHERE {where}", mode=m).handle for m in ("P", "C", "NoMat")]
    for handle in handles:
        assert [round(v, 6) for v in values(made.invoke(handle))] == found


def test_texts_of_a_stream_that_gives_none_are_compared_all_the_same() -> None:
    schema = Schema.parse("k INT, name STRING")
    made = QueryEngine([StreamInfo("a", schema), StreamInfo("b", schema)])
    handle = made.register("SELECT a.k AS v FROM a, b WHERE a.k = b.k AND a.name = b.name").handle
    one = pa.table({"k": pa.array([1], pa.int32()), "name": ["x"], "_ts": [0], "_seq": [0]})
    made.insert("a", one)
    assert values(made.invoke(handle)) == []
    made.insert("b", one)
    assert values(made.invoke(handle)) == [1]


@pytest.mark.parametrize("mode", ["P", "C", "NoMat"])
def test_long_lists_of_values(mode: str) -> None:
    made = engine(10_000)
    every = ", ".join(str(i) for i in range(0, 3000, 3))
    handles = [made.register(f"SELECT v FROM s WHERE v > {i}").handle for i in range(3)]
    many = made.register(f"SELECT v FROM s WHERE v IN ({every}) AND v % 2 = 0", mode=mode).handle
    made.unregister(handles[1])
    made.insert("s", table(0, 4000))
    late = made.register(f"SELECT v FROM s WHERE v IN ({every})", mode=mode).handle
    assert values(made.invoke(many)) == list(range(0, 3000, 6))
    assert values(made.invoke(late)) == list(range(0, 3000, 3))
    assert len(values(made.invoke(handles[2]))) == 3997
    made.unregister(many)
    made.insert("s", table(4000, 10))
    assert len(values(made.invoke(handles[0]))) == 4009
    assert len(values(made.invoke(late))) == 1000


@pytest.mark.parametrize("mode", ["P", "C", "NoMat"])
@pytest.mark.parametrize("early", [True, False])
def test_truth_values_have_an_order(mode: str, early: bool) -> None:
    made = QueryEngine([StreamInfo("s", Schema.parse("v INT, ok BOOLEAN"))])
    truths = table(0, 3).append_column("ok", pa.array([True, False, None]))
    texts = ("ok > FALSE", "ok >= FALSE", "ok < TRUE", "ok <= TRUE")
    if not early:
        made.insert("s", truths)
    handles = [made.register(f"SELECT v FROM s WHERE {text}", mode=mode).handle for text in texts]
    if early:
        made.insert("s", truths)
    assert [values(made.invoke(handle)) for handle in handles] == [[0], [0, 1], [1], [0, 1]]


def test_distinct_takes_every_nan_for_the_same() -> None:
    made = QueryEngine([StreamInfo("s", Schema.parse("v DOUBLE"))])
    handle = made.register("SELECT DISTINCT v FROM s").handle
    # A division gives NaN with another sign than a text does.
    numbers = pa.array(np.array([np.nan, -np.nan, 0.0, -0.0]))
    made.insert("s", table(0, 4).set_column(0, "v", numbers))
    assert [str(value) for value in values(made.invoke(handle))] == ["nan", "0.0"]


def test_a_query_that_stops_keeping_results_while_it_is_answered_finds_its_own() -> None:
    made = engine()
    others = [made.register(f"SELECT v FROM s WHERE v = {v}", mode="P") for v in (3, 4)]
    made.insert("s", table(0, 10))
    block = made.view.prefixes["s"].blocks[0]
    conjunctions = [other.query.branches[0].parts[0] for other in others]
    # An invocation of the past holds no lock: the slot that it reads may be given back meanwhile.
    assert [block.kept(UNKEPT, each).tolist() for each in conjunctions] == [[3], [4]]
