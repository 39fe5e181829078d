"""A connection point's table: what is committed is read, exactly, from any position.

What is torn is refused.
"""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.model.types import Schema, arrow_schema
from penstock.store.errors import CorruptFileError, MissingFileError, StoreError
from penstock.store.points.manifest import Head
from penstock.store.points.point import PointReader, PointWriter
from penstock.store.points.ranges import Interval

from .points import SCHEMA, put, seqs, train


@pytest.fixture
def writer(tmp_path):
    return PointWriter(tmp_path, "minutes", SCHEMA)


def test_entries_come_in_order_with_gaps_and_horizons(tmp_path, writer):
    put(writer, 0, [(1, "a", 10, 0)], horizon=5, arrival=1.5)
    reader = PointReader(tmp_path, "minutes")
    put(writer, 3, [], horizon=7)
    put(writer, 4, [(2, "b", 20, 1), (1, "c", 12, 2)], horizon=9, final=True)
    found = reader.entries()
    assert [(e.number, e.rows, e.horizon, e.final, e.previous) for e in found] == [
        (0, 1, 5, False, -1),
        (3, 0, 7, False, 0),
        (4, 2, 9, True, 3),
    ]
    assert (found[0].arrival, found[2].min_ts, found[2].max_ts, found[1].min_ts) == (1.5, 12, 20, None)
    assert [e.number for e in reader.entries(after=3)] == [4]
    assert reader.latest().number == 4
    assert reader.oldest().number == 0
    table = reader.read(1, 4)
    assert seqs(table) == [2, 1]
    assert table.column_names == ["seg", "name", "_ts", "_seq", "_entry"]
    assert table["_entry"].to_pylist() == [4, 4]


def test_an_empty_point_has_nothing(tmp_path, writer):
    reader = PointReader(tmp_path, "minutes")
    assert (reader.entries(), reader.latest(), reader.oldest(), reader.read().num_rows) == ([], None, None, 0)


def test_staged_rows_are_unseen_before_the_commit(tmp_path, writer):
    files = writer.stage(0, [train([(1, "a", 1, 0)])])
    assert PointReader(tmp_path, "minutes").read().num_rows == 0
    writer.commit(0, files, 1)
    assert seqs(PointReader(tmp_path, "minutes").read()) == [0]


def test_a_replayed_train_writes_the_same_files_and_commits_once(tmp_path, writer):
    rows = [(n % 7, str(n), 100 - n, n) for n in range(50)]
    files = writer.stage(2, [train(rows)], partition=3)
    first = writer.commit(2, files, 4)
    again = PointWriter(tmp_path, "minutes", SCHEMA)
    # the same rows in another order and cut into other batches
    replayed = again.stage(2, [train(rows[30:]), train(rows[:30])], partition=3)
    assert replayed == files
    assert again.commit(2, replayed, 4) == first
    assert len(list((writer.manifest.path / "data").iterdir())) == 1


def test_another_content_is_refused_unless_asked_for(tmp_path, writer):
    put(writer, 0, [(1, "a", 1, 0)])
    put(writer, 1, [(1, "a", 1, 1)])
    reader = PointReader(tmp_path, "minutes")
    with pytest.raises(StoreError, match="entry 1 is committed already, with another content") as error:
        put(writer, 1, [(1, "a", 1, 2)])
    assert error.value.hint == "a replayed train must be the same; pass replace=True to change it"
    put(writer, 1, [(1, "a", 1, 2)], replace=True)
    assert seqs(reader.read()) == [0, 2]
    assert seqs(PointReader(tmp_path, "minutes").read()) == [0, 2]


def test_entries_must_grow(writer):
    put(writer, 5, [(1, "a", 1, 0)])
    with pytest.raises(StoreError, match="entry 3 comes too late"):
        put(writer, 3, [(1, "a", 1, 0)])


def test_the_log_decides_when_the_kill_came_before_head(tmp_path, writer):
    put(writer, 0, [(1, "a", 1, 0)])
    put(writer, 1, [(1, "a", 1, 1)])
    writer.manifest.tell(Head(0, 0))
    assert seqs(PointReader(tmp_path, "minutes").read()) == [0, 1]
    again = PointWriter(tmp_path, "minutes", SCHEMA)
    assert again.latest() == 1
    put(again, 2, [(1, "a", 1, 2)])
    assert [e.previous for e in PointReader(tmp_path, "minutes").entries()] == [-1, 0, 1]


def test_a_head_that_was_taken_back_hides_nothing(tmp_path, writer):
    """An owner that was suspended on its way to HEAD writes it after its follower."""
    put(writer, 0, [(1, "a", 1, 0)])
    reader = PointReader(tmp_path, "minutes")
    assert [e.number for e in reader.entries()] == [0]
    put(writer, 1, [(1, "a", 1, 1)])
    put(writer, 2, [(1, "a", 1, 2)])
    writer.manifest.tell(Head(0, 0), surely=True)
    assert [e.number for e in reader.entries()] == [0, 1, 2]


def test_a_poll_without_news_lists_no_directory(tmp_path, writer, monkeypatch):
    put(writer, 0, [(1, "a", 1, 0)])
    reader = PointReader(tmp_path, "minutes")
    monkeypatch.setattr("pathlib.Path.iterdir", lambda _: pytest.fail("listed"))
    monkeypatch.setattr("pathlib.Path.glob", lambda *_: pytest.fail("listed"))
    assert reader.entries(0) == []
    put(writer, 9, [(1, "a", 1, 1)])
    assert [e.number for e in reader.entries(0)] == [9]


def test_large_trains_are_split_by_key_range_and_pruned(tmp_path):
    writer = PointWriter(tmp_path, "p", SCHEMA, key="seg", file_rows=10)
    rows = [((n * 37) % 100, "x", n, n) for n in range(100)]
    files = writer.stage(0, [train(rows)])
    assert [f.rows for f in files] == [10] * 10
    assert [(f.min_key, f.max_key) for f in files] == [(k, k + 9) for k in range(0, 100, 10)]
    writer.commit(0, files, 0)
    reader = PointReader(tmp_path, "p")
    plan = reader.plan(0, 0, key_ranges=(Interval(42, 42),))
    assert (len(plan.files), plan.skipped_files, plan.rows, plan.skipped_rows) == (1, 9, 10, 90)
    assert 42 in pa.concat_tables(pickle.loads(pickle.dumps(plan)).tables())["seg"].to_pylist()
    assert reader.plan(0, 0, key_ranges=()).skipped_files == 10


def test_pruning_by_timestamp(tmp_path, writer):
    for n in range(5):
        put(writer, n, [(1, "x", n * 100, n), (1, "x", n * 100 + 50, n)])
    plan = PointReader(tmp_path, "minutes").plan(
        0, 4, ts_ranges=(Interval(150, 200, low_open=True, high_open=True),)
    )
    assert (len(plan.files), plan.skipped_files) == (0, 5)
    assert len(PointReader(tmp_path, "minutes").plan(0, 4, ts_ranges=(Interval(150, 200),)).files) == 2


@pytest.mark.parametrize(
    ("ddl", "values", "inside", "outside"),
    [
        ("k DOUBLE", [1.0, float("nan")], Interval(5.0, None), Interval(None, 0.5)),
        ("k DOUBLE", [float("nan")], Interval(5.0, None), Interval(None, 5.0)),
        ("k STRING", ["é" * 300, "b"], Interval("é" * 300, None), Interval(None, "a")),
        ("k BOOLEAN", [True, None], Interval(1, 1), Interval(0, 0)),
        ("k BINARY", [b"\x01", b"\xff"], Interval("fe", None), Interval("ff01", None)),
        ("k TINYINT", [None, None], None, Interval(None, None)),
    ],
)
def test_bounds_of_each_kind_of_key(tmp_path, ddl, values, inside, outside):
    writer = PointWriter(tmp_path, "p", Schema.parse(ddl), key="k")
    schema = arrow_schema(Schema.parse(ddl))
    n = len(values)
    table = pa.table(
        [pa.array(values, schema[0].type), pa.array([0] * n, pa.int64()), pa.array(range(n), pa.int64())],
        schema=schema,
    )
    writer.commit(0, writer.stage(0, [table]), 0)
    reader = PointReader(tmp_path, "p")
    assert inside is None or len(reader.plan(0, 0, (inside,)).files) == 1
    assert len(reader.plan(0, 0, (outside,)).files) == 0
    assert reader.read().num_rows == n


def test_a_writer_travels_to_tasks(tmp_path, writer):
    files = pickle.loads(pickle.dumps(writer)).stage(0, [train([(1, "a", 1, 0)])])
    writer.commit(0, files, 0)
    assert seqs(PointReader(tmp_path, "minutes").read()) == [0]


def test_other_columns_or_key_are_refused(tmp_path, writer):
    with pytest.raises(StoreError, match="other columns or another storage key") as error:
        PointWriter(tmp_path, "minutes", SCHEMA, key="seg")
    assert error.value.expected == "seg INT, name STRING, key seg"
    with pytest.raises(StoreError, match="lacks column 'name'"):
        writer.stage(0, [train([(1, "a", 1, 0)]).drop_columns(["name"])])


def test_an_unknown_point_is_named_with_the_nearest(tmp_path, writer):
    with pytest.raises(StoreError, match="there is no connection point 'minute'") as error:
        PointReader(tmp_path, "minute")
    assert error.value.hint == "did you mean 'minutes'?"
    with pytest.raises(StoreError, match="cannot name"):
        PointReader(tmp_path, "..")


def test_a_plan_can_be_checked_without_reading(tmp_path, writer):
    put(writer, 0, [(1, "a", 1, 0)])
    plan = PointReader(tmp_path, "minutes").plan(0, 0)
    plan.check()
    path = plan.directory / plan.files[0].name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptFileError, match="torn"):
        plan.check()
    path.unlink()
    with pytest.raises(MissingFileError, match="missing"):
        plan.check()


def test_missing_and_changed_files_are_refused(tmp_path, writer):
    put(writer, 0, [(1, "a", 1, 0)])
    path = next((writer.manifest.path / "data").iterdir())
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(CorruptFileError, match="content has changed"):
        PointReader(tmp_path, "minutes").read()
    path.unlink()
    with pytest.raises(MissingFileError, match="missing"):
        PointReader(tmp_path, "minutes").read()
    with pytest.raises(MissingFileError, match="not there whole"):
        writer.commit(1, writer.manifest.entry(0).files, 0)


def test_a_file_torn_at_any_byte_is_refused_or_ignored(tmp_path, writer):
    put(writer, 0, [(1, "a", 1, 0)])
    folder = writer.manifest.path
    for path in [*folder.glob("data/*"), *folder.glob("log/*"), folder / "point.json"]:
        whole = path.read_bytes()
        for cut in range(len(whole)):
            path.write_bytes(whole[:cut])
            with pytest.raises(CorruptFileError):
                PointReader(tmp_path, "minutes").read()
        path.write_bytes(whole)
    head = folder / "HEAD"
    whole = head.read_bytes()
    for cut in range(len(whole)):
        head.write_bytes(whole[:cut])
        assert seqs(PointReader(tmp_path, "minutes").read()) == [0]  # only a hint
    # what a killed writer leaves aside is nobody's
    (folder / "log" / ".000000000001.json.1.1.1.tmp").write_bytes(b"half")
    (folder / "data" / "000000000001-00000-0000-00000000.parquet").write_bytes(b"half")
    assert seqs(PointReader(tmp_path, "minutes").read()) == [0]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.lists(
            st.tuples(st.none() | st.integers(0, 9), st.sampled_from("abc"), st.integers(0, 50)), max_size=12
        ),
        max_size=6,
    ),
    st.sampled_from(["seg", "name", None]),
    st.integers(1, 5),
    st.integers(-1, 7),
)
def test_any_position_gives_exactly_the_rest(tmp_path_factory, trains, key, file_rows, position):
    root = tmp_path_factory.mktemp("p")
    writer = PointWriter(root, "p", SCHEMA, key=key, file_rows=file_rows)
    reader = PointReader(root, "p")
    model, seq = [], 0
    for number, rows in enumerate(trains):
        made = [(seg, name, ts, seq + n) for n, (seg, name, ts) in enumerate(rows)]
        seq += len(made)
        put(writer, number, made)
        model += [(*row, number) for row in made]
    wanted = sorted((row for row in model if row[4] > position), key=lambda row: row[3])
    found = reader.read(position + 1).to_pylist()
    assert sorted((tuple(row.values()) for row in found), key=lambda row: row[3]) == wanted
    assert [e.rows for e in reader.entries(position)] == [
        len(t) for n, t in enumerate(trains) if n > position
    ]
