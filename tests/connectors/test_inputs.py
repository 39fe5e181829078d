"""What an input offers to a train: however it is cut, the same tuples with the same numbers."""

from __future__ import annotations

import itertools
import json
import os
import random
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.connectors import rate as rate_module
from penstock.connectors.contract import MAX_TRAIN_BYTES, Slice
from penstock.connectors.files import line_cut
from penstock.connectors.files.discovery.source_files import SourceFiles
from penstock.connectors.files.discovery.source_path import SourcePath
from penstock.connectors.loading import input_for
from penstock.connectors.rows import RowsInput
from penstock.connectors.tables import SEQ_BITS
from penstock.engine.spark.entry.stamping import stamped
from penstock.model.boxes import Source
from penstock.model.formats.files import csv, parquet
from penstock.model.formats.files import json as json_lines
from penstock.model.formats.rate import rate
from penstock.model.formats.rows import rows
from penstock.model.types import Schema

TEXT = "time TIMESTAMP, k STRING, v INT"
SCHEMA = Schema.parse(TEXT)


def source(format_):
    return Source(
        name="cars",
        where="here",
        format=format_,
        schema=getattr(format_, "schema", None) or SCHEMA,
        timestamp="time",
    )


def put(path, text, at):
    """A file with a time of its own: files are taken in the order of their times."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.utime(path, (at, at))


def read_slices(src, slices):
    return [stamped(src, piece.tuples(src)) for piece in slices]


def all_of(src, place, limits, position=None, max_bytes=MAX_TRAIN_BYTES):
    """Take until nothing is left, with these limits in turn; (tuples, dead letters, position, trains)."""
    taken_from = input_for(src, place)
    taken_from.max_bytes = max_bytes
    tuples, dead, trains, turn = [], [], 0, 0
    while True:
        taken = taken_from.take(position, limits[turn % len(limits)])
        if not taken.slices and not taken.more and not taken.refused:
            return tuples, sorted(dead, key=lambda d: d["offset"]), taken.position, trains
        turn, trains, position = turn + 1, trains + bool(taken.slices), taken.position
        # what goes into a ticket is JSON
        for admitted in read_slices(src, [Slice.of(json.loads(json.dumps(s.plain()))) for s in taken.slices]):
            tuples += admitted.tuples.to_pylist()
            dead += [{**letter, "box": ""} for letter in admitted.dead.to_pylist()]
        dead += [{**r, "box": ""} for r in taken.refused]


def dirty(count, seed=1):
    """Lines of a CSV file, good and bad."""
    dice = random.Random(seed)
    forms = [
        "{},a,{}",
        "{},b,{}",
        '{},"x, y",{}',
        "{},,",
        "{},a,many",
        "{},a",
        "",
        '{},"",{}',
        '{},"open,{}',
        "{}, a, 1",
    ]
    return [dice.choice(forms).format(n, n) for n in range(count)]


CUTS = [[1], [2], [3], [7], [1000], [1, 5, 2], [4096]]


@pytest.mark.parametrize("ending", ["\n", ""])
@pytest.mark.parametrize("header", [False, True])
def test_csv_cut_anywhere_is_the_same(tmp_path, header, ending):
    folder = tmp_path / "in"
    folder.mkdir()
    top = ["time,k,v"] if header else []
    for number, count in enumerate((40, 1, 0, 9)):
        put(folder / f"{number}.csv", "\n".join([*top, *dirty(count, number)]) + ending, 100 + number)
    src = source(csv(str(folder), TEXT, header=header))
    whole = all_of(src, tmp_path / "whole", [10_000])
    assert len(whole[0]) > 10
    assert len(whole[1]) > 10
    for cut in CUTS:
        found = all_of(src, tmp_path / str(cut), cut)
        assert found[:2] == whole[:2], cut
    for most in (1, 7, 25, 60, 1000):
        found = all_of(src, tmp_path / f"bytes-{most}", [10_000], max_bytes=most)
        assert found[:2] == whole[:2], most


def test_a_train_has_no_more_bytes_than_it_may_or_one_line(tmp_path):
    lines = ["time,k,v", "# a comment", *dirty(60), f"1,{'x' * 300},2", *dirty(20)]
    put(tmp_path / "one.csv", "\n".join(lines), 1)
    longest = max(map(len, lines)) + 1
    for tail, most in itertools.product((False, True), (1, 50, 120, 400)):
        src = source(csv(str(tmp_path / "one.csv"), TEXT, header=True, tail=tail))
        cut, position = input_for(src, tmp_path / f"{tail}{most}"), None
        cut.max_bytes = most
        while (taken := cut.take(position, 10_000)).slices:
            size = sum(piece.weight() for piece in taken.slices)
            rows = sum(piece.offered(src, piece.read()) for piece in taken.slices)
            assert size <= most or rows <= 1, (tail, most, taken.slices)
            assert size <= most + longest + len("time,k,v\n")
            position = taken.position


def test_a_parquet_train_has_no_more_bytes_than_it_may_or_one_row_group(tmp_path):
    table = pa.table(
        {
            "time": pa.array(range(1000), pa.timestamp("us", "UTC")),
            "k": ["a"] * 1000,
            "v": pa.array(range(1000), pa.int32()),
        }
    )
    pq.write_table(table, tmp_path / "one.parquet", row_group_size=100)
    src = source(parquet(str(tmp_path / "one.parquet"), TEXT))
    whole = all_of(src, tmp_path / "whole", [10_000])
    few = all_of(src, tmp_path / "few", [10_000], max_bytes=1)
    assert few[0] == whole[0]
    assert (whole[3], few[3]) == (1, 10)


def test_json_cut_anywhere_is_the_same(tmp_path):
    lines = [
        '{"time": 1, "k": "a", "v": 1}', "{", '{"time": 2}',
        '{"time": "1970-01-01T00:00:03Z", "k": "ä", "v": 2.0, "more": [1]}', "",
        '{"time": 4, "v": "x"}', "[1]", '{"time": 5, "v": 99999999999}', '{"k": "no time"}',
        '{"time": 7, "k": 8, "v": null}',
    ]  # fmt: skip
    put(tmp_path / "one.json", "\n".join(lines), 1)
    src = source(json_lines(str(tmp_path / "one.json"), TEXT))
    whole = all_of(src, tmp_path / "whole", [10_000])
    assert {r["_seq"] for r in whole[0]} >= {0, 2, 3}
    for cut in CUTS:
        assert all_of(src, tmp_path / str(cut), cut)[:2] == whole[:2], cut


def test_numbers_are_file_and_line(tmp_path):
    put(tmp_path / "b.csv", "1,a,1\n2,a,2\n", 100)
    put(tmp_path / "a.csv", "3,a,3\n", 200)
    tuples, _, _, trains = all_of(source(csv(f"{tmp_path}/*.csv", TEXT)), tmp_path / "p", [1])
    assert [(r["v"], r["_seq"]) for r in tuples] == [(1, 0), (2, 1), (3, 1 << SEQ_BITS)]
    assert trains == 3


def test_a_train_takes_at_most_so_many_lines(tmp_path):
    put(tmp_path / "a.csv", "".join(f"{n},a,{n}\n" for n in range(25)), 1)
    put(tmp_path / "b.csv", "".join(f"{n},a,{n}\n" for n in range(25)), 2)
    taken = input_for(source(csv(f"{tmp_path}/*.csv", TEXT)), tmp_path / "p").take(None, 30)
    assert taken.rows == 30
    assert [(s.file, s.line) for s in taken.slices] == [(0, 0), (1, 0)]
    assert taken.more


def test_large_files_are_cut_into_slices_for_all_cores(tmp_path, monkeypatch):
    monkeypatch.setattr(line_cut, "MAX_SLICE_BYTES", 64)
    lines = [f"{n},{'x' * (200 if n == 7 else 3)},{n}" for n in range(50)]
    put(tmp_path / "a.csv", "\n".join(lines) + "\n", 1)
    src = source(csv(str(tmp_path / "a.csv"), TEXT))
    taken = input_for(src, tmp_path / "p").take(None, 1000)
    assert len(taken.slices) > 5
    assert taken.rows == 50
    tuples = [r for a in read_slices(src, taken.slices) for r in a.tuples.to_pylist()]
    assert [(r["v"], r["_seq"]) for r in tuples] == [(n, n) for n in range(50)]


def test_a_short_train_of_one_file_has_slices_for_several_cores(tmp_path):
    """A train of a megabyte was one slice, so one task did all of its work."""
    put(tmp_path / "a.csv", "".join(f"{n},{'x' * 20},{n}\n" for n in range(40_000)), 1)
    src = source(csv(str(tmp_path / "a.csv"), TEXT))
    taken = input_for(src, tmp_path / "p").take(None, 30_000)
    assert len(taken.slices) >= 4
    assert max(piece.rows for piece in taken.slices) < 10_000
    assert taken.rows == 30_000


def test_files_that_come_later_follow(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    src = source(csv(str(folder), TEXT))
    put(folder / "z.csv", "1,a,1\n", 500)
    _, _, position, _ = all_of(src, tmp_path / "p", [10])
    # older by its time, but discovered later: the numbers of what is known do not change
    put(folder / "a.csv", "2,a,2\n", 100)
    put(folder / ".hidden.csv", "9,a,9\n", 100)
    put(folder / "_aside.csv", "9,a,9\n", 100)
    tuples, _, _, _ = all_of(src, tmp_path / "p", [10], position)
    assert [(r["v"], r["_seq"]) for r in tuples] == [(2, 1 << SEQ_BITS)]
    tuples, _, _, _ = all_of(src, tmp_path / "p", [10])
    assert [r["v"] for r in tuples] == [1, 2]


def names_of(files):
    return [file.name for file in files.log.known]


def test_a_file_that_a_listing_has_missed_keeps_its_turn(tmp_path, monkeypatch):
    """It came while the folder was being listed, and one that came after it is in the list already."""
    (tmp_path / "in").mkdir()
    for name, at in (("a", 100), ("b", 200), ("c", 300), ("d", 400)):
        put(tmp_path / "in" / f"{name}.csv", "1,a,1\n", at)
    files = SourceFiles(source(csv(str(tmp_path / "in"), TEXT)), tmp_path / "p", lambda _: ("", 0))
    whole, looks = SourcePath.names, [{"a.csv", "c.csv"}]

    def listed(path):
        seen = looks.pop() if looks else None
        yield from (name for name in whole(path) if seen is None or name in seen)

    monkeypatch.setattr(SourcePath, "names", listed)
    files.look(0)
    # What is newer than all of the first list is left for the next look: something may have been missed
    # again.
    assert names_of(files) == ["a.csv", "b.csv", "c.csv"]
    files.look(0)
    assert names_of(files) == ["a.csv", "b.csv", "c.csv", "d.csv"]


def test_the_log_of_files_survives_a_torn_line(tmp_path):
    put(tmp_path / "a.csv", "1,a,1\n", 100)
    src = source(csv(str(tmp_path / "a.csv"), TEXT))
    files = SourceFiles(src, tmp_path / "p", lambda _: ("", 0))
    files.look(0)
    path = tmp_path / "p" / "files.jsonl"
    with path.open("a") as file:
        file.write('1f2e3d4c {"is": "file", "name": "wh')
    again = SourceFiles(src, tmp_path / "p", lambda _: ("", 0))
    assert again.log.known == files.log.known
    assert path.read_text().endswith("\n")


def renamed(path, to):
    """Rename a file; when it got its new name."""
    path.rename(to)
    return to.stat().st_ctime


def test_when_the_oldest_tuple_of_a_train_arrived(tmp_path, monkeypatch):
    """Whatever lies there at the first look has come just then; later ones when they got their name here."""
    folder = tmp_path / "in"
    folder.mkdir()
    src = source(csv(str(folder), TEXT))
    put(folder / "a.csv", "1,a,1\n2,a,2\n", 100)
    before = time.time()
    taken_from = input_for(src, tmp_path / "p")
    after = time.time()
    put(folder / "b.csv", "3,a,3\n", 200)
    one = taken_from.take(None, 1)
    two = taken_from.take(one.position, 9)
    assert before <= two.arrived == one.arrived <= after
    put(tmp_path / "c.csv", "4,a,4\n", 300)  # old by its own time
    written = (tmp_path / "c.csv").stat().st_ctime
    while (named := renamed(tmp_path / "c.csv", folder / "c.csv")) == written:
        (folder / "c.csv").rename(tmp_path / "c.csv")  # within one tick of the kernel's clock
    three = input_for(src, tmp_path / "p").take(two.position, 9)
    assert three.arrived == named
    # the time is remembered with the file
    assert input_for(src, tmp_path / "p").take(two.position, 9).arrived == three.arrived
    assert input_for(src, tmp_path / "p").take(three.position, 9).arrived is None


def test_rows_of_a_rate_arrive_when_they_are_due(tmp_path, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(rate_module.time, "time", lambda: now[0])
    monkeypatch.setattr(rate_module.time, "monotonic", lambda: now[0])
    taken_from = input_for(source(rate(10)), tmp_path / "p")
    position = taken_from.take(None, 100).position
    now[0] += 3.0
    one = taken_from.take(position, 20)
    assert (one.rows, one.arrived) == (20, pytest.approx(1000.1))
    assert taken_from.take(one.position, 20).arrived == pytest.approx(1002.1)


@pytest.mark.parametrize("path", ["nowhere", "nowhere/*.csv", "none.csv"])
def test_nothing_there_yet(tmp_path, path):
    taken = input_for(source(csv(f"{tmp_path}/{path}", TEXT, wait=True)), tmp_path / "p").take(None, 10)
    assert (taken.slices, taken.rows, taken.more) == ([], 0, False)


# -- parquet


def table(first, count):
    stamps = pa.array([n * 1_000_000 for n in range(first, first + count)]).cast(pa.timestamp("us", tz="UTC"))
    return pa.table(
        {"time": stamps, "k": ["a"] * count, "v": pa.array(range(first, first + count), pa.int32())}
    )


def parquet_folder(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for number, (count, group) in enumerate([(10, 100), (30, 10), (5, 100)]):
        path = folder / f"{number}.parquet"
        pq.write_table(table(number * 100, count), path, row_group_size=group)
        os.utime(path, (100 + number, 100 + number))
    return source(parquet(str(folder), TEXT))


def kinds(src, place, limit):
    """The slices of each train."""
    taken_from, position, found = input_for(src, place), None, []
    while (taken := taken_from.take(position, limit)).slices:
        position = taken.position
        found.append([(type(s).__name__, s.file, s.rows) for s in taken.slices])
    return found


def test_whole_parquet_files_where_they_fit_else_row_groups(tmp_path):
    src = parquet_folder(tmp_path)
    assert kinds(src, tmp_path / "p1", 100) == [
        [("WholeParquet", 0, 10), ("WholeParquet", 1, 30), ("WholeParquet", 2, 5)]
    ]
    assert kinds(src, tmp_path / "p2", 45) == [
        [("WholeParquet", 0, 10), ("WholeParquet", 1, 30), ("WholeParquet", 2, 5)]
    ]
    # one at least, never mixed in one train
    for limit in (1, 10, 20, 35):
        found = kinds(src, tmp_path / f"q{limit}", limit)
        assert all(len({kind for kind, _, _ in train}) == 1 for train in found)
        assert sum(rows for train in found for _, _, rows in train) == 45
    assert kinds(src, tmp_path / "p3", 20)[1] == [("RowGroups", 1, 20)]


def test_row_groups_have_the_numbers_of_the_whole_file(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(table(0, 30), folder / "a.parquet", row_group_size=7)
    src = source(parquet(str(folder), TEXT))
    for limit in (1, 8, 15, 29):
        tuples, dead, _, _ = all_of(src, tmp_path / str(limit), [limit])
        assert [(r["v"], r["_seq"], r["_ts"]) for r in tuples] == [(n, n, n * 1_000_000) for n in range(30)]
        assert dead == []


def test_a_broken_parquet_file_is_refused_with_the_reason(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for number, data in enumerate(
        [
            table(0, 3),
            b"PAR1 but not really",
            table(10, 3).drop(["v"]),
            table(20, 3).set_column(2, "v", pa.array(["x"] * 3)),
            table(30, 3),
        ]
    ):
        path = folder / f"{number}.parquet"
        path.write_bytes(data) if isinstance(data, bytes) else pq.write_table(data, path)
        os.utime(path, (100 + number, 100 + number))
    taken = input_for(source(parquet(str(folder), TEXT)), tmp_path / "p").take(None, 100)
    assert [s.file for s in taken.slices] == [0, 4]
    assert [(r["raw"].rsplit("/", 1)[-1], r["offset"] >> SEQ_BITS) for r in taken.refused] == [
        ("1.parquet", 1),
        ("2.parquet", 2),
        ("3.parquet", 3),
    ]
    assert taken.refused[0]["reason"].startswith("not a readable Parquet file: ")
    assert taken.refused[1]["reason"] == "the file lacks the column 'v'; it has: time, k"
    assert taken.refused[2]["reason"] == "column 'v' is string, expected int32"


def test_the_footer_tells_the_least_time(tmp_path):
    pq.write_table(table(5, 20), tmp_path / "a.parquet", row_group_size=10)
    taken = input_for(source(parquet(str(tmp_path / "a.parquet"), TEXT)), tmp_path / "p").take(None, 100)
    assert taken.slices[0].least == 5_000_000


# -- Python iterables


def test_an_iterable_is_spooled_and_goes_on_after_a_restart(tmp_path):
    def numbers():
        return ({"time": n, "k": "a", "v": n} for n in range(10))

    src = source(rows(numbers, TEXT))
    first = input_for(src, tmp_path / "p")
    one = first.take(None, 3)
    two = first.take(one.position, 3)
    # what was taken is read again from the spool, whatever the limit is now
    again = input_for(src, tmp_path / "p")
    assert again.take(None, 100).slices == one.slices
    assert again.take(one.position, 1).slices == two.slices
    rest, _, _, _ = all_of(src, tmp_path / "p", [4], two.position)
    assert [(r["v"], r["_seq"]) for r in rest] == [(n, n) for n in range(6, 10)]
    whole, _, _, _ = all_of(src, tmp_path / "p", [100])
    assert [(r["v"], r["_seq"]) for r in whole] == [(n, n) for n in range(10)]


def test_an_iterable_cut_anywhere_is_the_same(tmp_path):
    data = [
        {"time": 1, "v": 2, "k": None},
        (2, "a", 3),
        ("x", "a", 3),
        (3,),
        {"time": 4, "k": b"bytes", "v": True},
        7,
        (None, "a", 1),
    ]
    src = source(rows(data, TEXT))
    whole = all_of(src, tmp_path / "whole", [100])
    assert [r["_seq"] for r in whole[0]] == [0, 1]
    assert sorted(r["offset"] for r in whole[1]) == [2, 3, 4, 5, 6]
    for cut in ([1], [2], [3, 1]):
        assert all_of(src, tmp_path / str(cut), cut)[:2] == whole[:2]


def test_a_slow_iterable_sends_short_trains(tmp_path, monkeypatch):
    monkeypatch.setattr(RowsInput, "patience", 0.0)
    taken = input_for(source(rows([(n, "a", n) for n in range(3)], TEXT)), tmp_path / "p").take(None, 100)
    assert taken.rows == 0


def test_rate_counts_up_without_gaps(tmp_path, monkeypatch):
    now = 1000.0
    monkeypatch.setattr(rate_module.time, "time", lambda: now)
    monkeypatch.setattr(rate_module.time, "monotonic", lambda: now)
    src = Source(name="cars", where="here", format=rate(10), schema=rate(10).schema, timestamp="timestamp")
    counter = input_for(src, tmp_path / "p")
    position = counter.take(None, 100).position
    found = []
    for now, limit in ((1000.55, 100), (1001.0, 3), (1001.0, 100)):  # noqa: B007 - the clock reads `now`
        taken = counter.take(position, limit)
        position = taken.position
        found += [
            (r["value"], r["_seq"], r["_ts"])
            for admitted in read_slices(src, taken.slices)
            for r in admitted.tuples.to_pylist()
        ]
    assert found == [(n, n, 1_000_000_000 + n * 100_000) for n in range(10)]


@pytest.mark.parametrize("limits", CUTS)
def test_comments_in_front_of_the_header(tmp_path, limits):
    (tmp_path / "in").mkdir()
    put(tmp_path / "in" / "a.csv", "# made by hand\n# twice\ntime,k,v\n1,a,1\n# in between\n2,b,2\n", 1)
    put(tmp_path / "in" / "b.csv", "time,k,v\n3,c,3\n", 2)
    src = source(csv(str(tmp_path / "in"), TEXT, header=True, comment="#"))
    tuples, dead, _, _ = all_of(src, tmp_path / "place", limits)
    assert [(t["v"], t["_seq"] & ((1 << SEQ_BITS) - 1)) for t in tuples] == [(1, 3), (2, 5), (3, 1)]
    assert dead == []
