"""What may happen to the files of a source: they grow, change, vanish, move, come late. Nothing is silent."""

from __future__ import annotations

import errno
import gzip
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from connectors.source_reader import TEXT, Reader, parquet_bytes, put, source, values_of
from penstock.connectors.contract import SliceChangedError, SliceGoneError
from penstock.connectors.files import parquet as files_parquet
from penstock.connectors.files import text, text_file
from penstock.connectors.files.discovery import source_files
from penstock.connectors.files.discovery.file_log import FileLog, KnownFile
from penstock.connectors.files.discovery.settling import Signature
from penstock.connectors.files.discovery.source_path import SourcePath, source_path
from penstock.connectors.loading import input_for
from penstock.model.errors import ExpressionError, NetworkError
from penstock.model.formats.files import csv, parquet
from penstock.store.errors import CorruptFileError

# -- whole files


def test_a_text_file_is_taken_when_it_has_settled(tmp_path, folder, clock):
    put(folder / "a.csv", "a,1\na,", at=1_000_000)
    reader = Reader(source(csv(str(folder), TEXT, settle="1 second")), tmp_path / "p")
    assert reader.look() == ([], [])
    assert reader.taken.waiting
    clock[0] += 0.9
    put(folder / "a.csv", "a,1\na,2", at=1_000_000)  # it grows within the same second of its clock
    assert reader.look() == ([], [])
    clock[0] += 0.9
    put(folder / "a.csv", "a,1\na,2\n", at=1_000_001)
    clock[0] += 0.9
    assert reader.look() == ([], [])
    clock[0] += 1.0
    assert reader.look() == ([1, 2], [])
    assert not reader.taken.waiting


def test_an_old_file_need_not_wait_and_neither_need_a_renamed_one(tmp_path, folder, clock):
    put(folder / "old.csv", "a,1\n", at=clock[1] - 61)
    put(folder / "new.csv", "a,2\n", at=clock[1] - 59)
    reader = Reader(source(csv(str(folder), TEXT, settle="1 second")), tmp_path / "p")
    assert reader.look() == ([1], [])
    assert reader.taken.waiting
    assert Reader(source(csv(str(folder), TEXT, settle="0")), tmp_path / "q").look() == ([1, 2], [])


def test_files_keep_the_order_of_their_times_while_one_settles(tmp_path, folder, clock):
    put(folder / "b.csv", "b,1\n", at=1_000_001)
    reader = Reader(source(csv(str(folder), TEXT, settle="1 second")), tmp_path / "p")
    reader.look()
    clock[0] += 0.9
    put(folder / "a.csv", "a,2\n", at=1_000_000)
    reader.look()
    clock[0] += 0.2
    assert reader.look() == ([], [])  # a is older but not whole yet
    clock[0] += 1.0
    assert reader.look() == ([2, 1], [])


def test_settle_is_a_length_of_time_or_a_number_of_seconds():
    spelt = [dict(csv("in", TEXT, settle=s).options)["settle"] for s in ("0", 0, "2", 90, "1 min")]
    assert spelt == ["0 seconds", "0 seconds", "2 seconds", "1 minute 30 seconds", "1 minute"]
    with pytest.raises(ExpressionError, match="below zero"):
        csv("in", TEXT, settle=-1)


def test_names_that_are_left_alone(tmp_path, folder):
    for name in (".a.csv", "_a.csv", "a.csv.tmp", "b.tmp"):
        put(folder / name, "a,1\n")
    put(folder / "a.csv", "a,2\n")
    assert Reader(source(csv(str(folder), TEXT)), tmp_path / "p").drain() == ([2], [])
    # a file that the source itself names is taken, whatever it is called
    assert Reader(source(csv(str(folder / "_a.csv"), TEXT)), tmp_path / "q").drain() == ([1], [])


def test_a_parquet_file_is_whole_when_it_has_a_footer(tmp_path, folder, clock):
    whole = parquet_bytes([1, 2])
    put(folder / "a.parquet", whole[:-5])
    reader = Reader(source(parquet(str(folder), TEXT, settle="1 second")), tmp_path / "p")
    assert reader.look() == ([], [])
    assert reader.taken.waiting
    put(folder / "a.parquet", whole)
    assert reader.look() == ([1, 2], [])


def test_a_parquet_file_without_a_footer_is_refused_and_read_if_it_gets_one(tmp_path, folder, clock):
    whole = parquet_bytes([1, 2])
    put(folder / "a.parquet", whole[:-5])
    reader = Reader(source(parquet(str(folder), TEXT, settle="1 second")), tmp_path / "p")
    reader.look()
    clock[0] += 1.0
    values, letters = reader.look()
    assert values == []
    assert letters[0][0].startswith("not a readable Parquet file")
    put(folder / "a.parquet", whole, at=1_000_009)
    assert reader.drain() == ([1, 2], [])


def test_a_refused_parquet_file_counts_its_rows(tmp_path, folder):
    pq.write_table(pa.table({"k": ["a"] * 7}), folder / "a.parquet")
    (folder / "b.parquet").write_bytes(b"junk")
    values, letters = Reader(source(parquet(str(folder), TEXT)), tmp_path / "p").drain()
    assert values == []
    assert sorted(tuples for _, tuples in letters) == [1, 7]


# -- files that change


def test_a_file_that_grows_after_it_was_read(tmp_path, folder):
    put(folder / "a.csv", "a,1\na,2\n")
    reader = Reader(source(csv(str(folder), TEXT)), tmp_path / "p")
    assert reader.drain() == ([1, 2], [])
    with (folder / "a.csv").open("a") as file:
        file.write("a,3\n\na,4\n")
    values, letters = reader.drain()
    assert values == []
    grew = "the file grew after it was read, from 8 to 17 bytes; what was added is not read"
    assert letters == [(f"{grew} (tail=True follows a growing file)", 2)]
    assert Reader(reader.src, tmp_path / "p", reader.position).drain() == ([], [])  # once, restarts included


@pytest.mark.parametrize("text", ["b,9\nb,8\nb,7\n", "b,9\nb,8\n", "b,9\n"])
def test_a_file_that_is_replaced_after_it_was_read(tmp_path, folder, text):
    put(folder / "a.csv", "a,1\na,2\n")
    reader = Reader(source(csv(str(folder), TEXT)), tmp_path / "p")
    reader.drain()
    put(folder / "a.csv", text, at=2_000_000)
    again = Reader(reader.src, tmp_path / "p", reader.position)
    values, [(reason, tuples)] = again.drain()
    assert (values, tuples) == ([], text.count("\n"))
    assert reason == "the file was changed after it was read; what it holds now is not read"


def test_a_parquet_file_that_is_replaced_after_it_was_read(tmp_path, folder):
    put(folder / "a.parquet", parquet_bytes([1, 2]))
    reader = Reader(source(parquet(str(folder), TEXT)), tmp_path / "p")
    assert reader.drain() == ([1, 2], [])
    put(folder / "a.parquet", parquet_bytes([3, 4, 5]), at=2_000_000)
    values, [(reason, tuples)] = reader.drain()
    assert (values, tuples) == ([], 3)
    assert reason.startswith("the file was changed after it was read")


@pytest.mark.parametrize("form", [csv, parquet])
def test_a_file_that_is_copied_touched_or_deleted_after_it_was_read(tmp_path, folder, form):
    put(folder / "a", "a,1\n" if form is csv else parquet_bytes([1]))
    put(folder / "b", "a,2\n" if form is csv else parquet_bytes([2]))
    reader = Reader(source(form(str(folder), TEXT)), tmp_path / "p")
    reader.drain()
    os.utime(folder / "a")
    (folder / "b").unlink()
    assert reader.drain() == ([], [])


def test_a_file_that_changes_before_it_is_read_is_read_as_it_is(tmp_path, folder):
    for number in range(3):
        put(folder / f"{number}.csv", f"a,{number}\n", at=1_000_000 + number)
    reader = Reader(source(csv(str(folder), TEXT)), tmp_path / "p")
    reader.input.take(None, 1)
    put(folder / "1.csv", "a,11\na,12\n", at=2_000_000)
    assert reader.drain() == ([0, 2, 11, 12], [])


def test_a_file_that_counts_as_new_still_does_after_a_restart(tmp_path):
    """The ticket has left it out by then, so nobody would read it."""
    files = FileLog(tmp_path / "memory")
    files.add([KnownFile("a.csv", Signature(2, 1), 0.0), KnownFile("b.csv", Signature(2, 1), 0.0)])
    files.anew("a.csv")
    assert set(FileLog(tmp_path / "memory").current) == {"b.csv"}


def test_a_file_that_is_deleted_before_it_is_read(tmp_path, folder):
    for number in range(3):
        put(folder / f"{number}.csv", f"a,{number}\n", at=1_000_000 + number)
    reader = Reader(source(csv(str(folder), TEXT)), tmp_path / "p")
    reader.input.take(None, 1)
    (folder / "1.csv").unlink()
    assert reader.drain() == ([0, 2], [("the file was deleted before it was read", 1)])


@pytest.mark.parametrize("text", ["a,1\n", "b,1\nb,2\nb,3\nb,4\n"])
def test_a_file_that_changes_while_it_is_read(tmp_path, folder, text):
    put(folder / "a.csv", "a,1\na,2\na,3\n")
    reader = Reader(source(csv(str(folder), TEXT)), tmp_path / "p")
    reader.position = reader.input.take(None, 2).position
    put(folder / "a.csv", text, at=2_000_000)
    reason = "the file was changed while it was read; its first 2 lines were read, the rest is lost"
    assert reader.drain() == ([], [(reason, 1)])


def test_a_parquet_file_that_changed_is_not_read_on_after_a_kill(tmp_path, folder):
    """The list of files knows the change by then, the ticket not yet: nobody has been told."""

    def write(values):
        table = pa.table({"k": ["a"] * len(values), "v": pa.array(values, pa.int32())})
        pq.write_table(table, folder / "a.parquet", row_group_size=1)

    write([1, 2, 3])
    reader = Reader(source(parquet(str(folder), TEXT)), tmp_path / "p")
    reader.position = reader.input.take(None, 1).position
    write([7, 8, 9, 10])
    reason = "the file was changed while it was read; its first 1 rows were read, the rest is lost"
    for killed in (reader, Reader(reader.src, tmp_path / "p", reader.position)):
        taken = killed.input.take(reader.position, 100)
        assert (list(taken.slices), [letter["reason"] for letter in taken.refused]) == ([], [reason])


def test_a_file_that_grows_while_it_is_read(tmp_path, folder):
    put(folder / "a.csv", "a,1\na,2\na,3\n")
    reader = Reader(source(csv(str(folder), TEXT)), tmp_path / "p")
    reader.position = reader.input.take(None, 2).position
    put(folder / "a.csv", "a,1\na,2\na,3\na,4\n", at=2_000_000)
    values, [(reason, tuples)] = reader.drain()
    assert (values, tuples) == ([3], 1)
    assert reason.startswith("the file grew after it was read, from 12 to 16 bytes")


@pytest.mark.parametrize("form", [csv, parquet])
def test_a_slice_whose_file_has_changed_since_its_ticket(tmp_path, folder, form):
    src = source(form(str(folder), TEXT))
    put(folder / "a", "a,1\na,2\n" if form is csv else parquet_bytes([1, 2]))
    piece = input_for(src, tmp_path / "p").take(None, 10).slices[0]
    put(folder / "a", "a,1\na,3\n" if form is csv else parquet_bytes([1, 3]), at=2_000_000)
    with pytest.raises(SliceChangedError) as caught:
        piece.tuples(src) if form is csv else piece.check()
    assert (caught.value.path, caught.value.tuples) == (str(folder / "a"), 2)
    (folder / "a").unlink()
    with pytest.raises(SliceGoneError):
        piece.read()


def test_a_symlink_loop_and_a_file_that_may_not_be_read(tmp_path, folder):
    (folder / "a").symlink_to(folder / "b")
    (folder / "b").symlink_to(folder / "a")
    put(folder / "c.csv", "a,1\n")
    values, letters = Reader(source(csv(str(folder), TEXT)), tmp_path / "p").drain()
    assert values == [1]
    assert letters == [("the file cannot be read: Too many levels of symbolic links", 1)] * 2


# -- the same folder


def test_a_folder_spelt_differently_is_the_same(tmp_path, folder, monkeypatch):
    put(folder / "a.csv", "a,1\n")
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "x").mkdir()
    monkeypatch.chdir(tmp_path)
    position = None
    folders = ("in", "./x/../in", str(folder), f"{folder}/", "link", f"file://{folder}", f"file:{folder}")
    for path in (*folders, "in/*.csv", "in/a.csv", "link/a.csv"):
        reader = Reader(source(csv(path, TEXT)), tmp_path / "p", position)
        expected = [1] if position is None else []
        assert reader.drain() == (expected, []), path
        position = reader.position


def test_a_moved_folder_is_told(tmp_path, folder):
    put(folder / "a.csv", "a,1\n")
    reader = Reader(source(csv(str(folder), TEXT)), tmp_path / "p")
    reader.drain()
    folder.rename(tmp_path / "moved")
    put(tmp_path / "moved" / "b.csv", "a,2\n")
    with pytest.raises(NetworkError) as caught:
        Reader(source(csv(str(tmp_path / "moved"), TEXT)), tmp_path / "p")
    assert "it has read another folder so far" in str(caught.value)
    assert f"moved_from='{folder}'" in caught.value.hint
    for _ in range(2):  # it may stay there
        again = source(csv(str(tmp_path / "moved"), TEXT, moved_from=str(folder)))
        values, letters = Reader(again, tmp_path / "p", reader.position).drain()
        assert (values, letters) == ([2], [])
    with pytest.raises(NetworkError):
        Reader(source(csv(str(tmp_path), TEXT, moved_from="elsewhere")), tmp_path / "p")


@pytest.mark.parametrize("form", [csv, parquet])
def test_a_ticket_from_before_a_move_is_read_where_the_folder_is_now(tmp_path, folder, form):
    put(folder / "a", "a,1\na,2\n" if form is csv else parquet_bytes([1, 2]))
    src = source(form(str(folder), TEXT))
    [piece] = input_for(src, tmp_path / "p").take(None, 10).slices
    folder.rename(tmp_path / "moved")
    moved = source(form(str(tmp_path / "moved"), TEXT, moved_from=str(folder)))
    assert values_of(moved, input_for(moved, tmp_path / "p").here(piece)) == [1, 2]


def test_a_moved_file_is_told(tmp_path, folder):
    put(folder / "a.csv", "a,1\n")
    reader = Reader(source(csv(str(folder / "a.csv"), TEXT)), tmp_path / "p")
    reader.drain()
    (tmp_path / "else").mkdir()
    (folder / "a.csv").rename(tmp_path / "else" / "b.csv")
    moved = csv(str(tmp_path / "else" / "b.csv"), TEXT, moved_from=str(folder / "a.csv"))
    assert Reader(source(moved), tmp_path / "p", reader.position).drain() == ([], [])


def test_a_missing_folder_is_refused_unless_the_source_waits(tmp_path):
    for path in ("nowhere", "nowhere/a.csv", "nowhere/*.csv"):
        with pytest.raises(NetworkError, match=r"there is no .*nowhere"):
            Reader(source(csv(str(tmp_path / path), TEXT)), tmp_path / "p")
    reader = Reader(source(csv(str(tmp_path / "nowhere"), TEXT, wait=True)), tmp_path / "p")
    assert reader.drain() == ([], [])
    (tmp_path / "nowhere").mkdir()
    put(tmp_path / "nowhere" / "a.csv", "a,1\n")
    assert reader.drain() == ([1], [])


def test_a_run_over_a_missing_folder_ends_before_anything_is_started(tmp_path):
    net = ps.Network("late")
    net.source("cars", csv(str(tmp_path / "nowhere"), TEXT)).output("out", to=ps.memory())
    with pytest.raises(NetworkError, match=r"there is no .*nowhere"):
        ps.Runtime(net, checkpoint=tmp_path / "checkpoint").start()
    assert not (tmp_path / "checkpoint").exists()


# -- the log


@pytest.mark.parametrize("harm", ["flip", "drop", "double", "swap"])
def test_a_log_that_was_tampered_with_is_refused(tmp_path, folder, harm):
    for number in range(3):
        put(folder / f"{number}.csv", f"a,{number}\n", at=1_000_000 + number)
    src = source(csv(str(folder), TEXT))
    Reader(src, tmp_path / "p").drain()
    log = tmp_path / "p" / "files.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    match harm:
        case "flip":
            lines[2] = lines[2].replace(b"1.csv", b"9.csv")
        case "drop":
            del lines[1]
        case "double":
            lines.insert(1, lines[1])
        case "swap":
            lines[1], lines[2] = lines[2], lines[1]
    log.write_bytes(b"".join(lines))
    with pytest.raises(CorruptFileError, match="was changed, or lines are missing"):
        Reader(src, tmp_path / "p")


def test_a_log_that_was_lost_is_refused(tmp_path, folder):
    put(folder / "a.csv", "a,1\n")
    reader = Reader(source(csv(str(folder), TEXT)), tmp_path / "p")
    reader.drain()
    (tmp_path / "p" / "files.jsonl").unlink()
    with pytest.raises(CorruptFileError, match="the list of files that were read is lost"):
        Reader(reader.src, tmp_path / "p", reader.position).drain()


def test_a_look_at_a_large_folder_costs_little(tmp_path, folder, monkeypatch):
    """A folder that has not changed is not listed again, and its files are checked in portions."""
    for number in range(50):
        put(folder / f"{number}.csv", "a,1\n")
    reader = Reader(source(csv(str(folder), TEXT)), tmp_path / "p")
    reader.drain()
    monkeypatch.setattr(source_files, "_COARSE", -1e9)
    monkeypatch.setattr(source_files, "_WATCH_FILES", 10)
    looked = []
    monkeypatch.setattr(source_files, "_regular_file", looked.append)
    monkeypatch.setattr(source_files.SourcePath, "names", lambda path: pytest.fail("it was listed"))
    reader.look()
    assert len(looked) == 10
    for _ in range(4):
        reader.look()
    assert len(set(looked)) == 50


def test_a_file_of_the_same_size_and_time_does_not_go_on_for_another(tmp_path, folder):
    put(folder / "a.csv", "a,1\na,2\n")
    reader = Reader(source(csv(str(folder), TEXT)), tmp_path / "p")
    first = reader.input.take(None, 1)
    put(folder / ".a", "a,8\na,9\n")
    (folder / ".a").replace(folder / "a.csv")
    again = Reader(reader.src, tmp_path / "p", first.position)
    values, ((reason, _),) = again.drain()
    assert values == []
    assert reason.startswith("the file was changed while it was read")


# -- what is no fault of the file


@pytest.mark.parametrize(
    ("name", "content", "form"),
    [
        ("a.csv", b"a,1\na,2\n", csv),
        ("a.csv.gz", gzip.compress(b"a,1\na,2\n"), csv),
        ("a.parquet", parquet_bytes([1, 2]), parquet),
    ],
    ids=["text", "archive", "parquet"],
)
def test_a_good_file_stays_good_while_descriptors_are_short(
    tmp_path, folder, monkeypatch, name, content, form
):
    put(folder / name, content)
    reader = Reader(source(form(str(folder), TEXT)), tmp_path / "p")
    reader.input.waiting(None)  # the file is known

    def short(*_):
        raise OSError(errno.EMFILE, "too many open files")

    with monkeypatch.context() as patch:
        for module in (text, text_file, files_parquet):
            for opener in ("plain_text", "native_file"):
                patch.setattr(module, opener, short, raising=False)
        with pytest.raises(OSError, match="too many open files"):
            reader.look()
    assert reader.drain() == ([1, 2], [])


def test_a_folder_that_comes_during_the_look_is_a_folder(tmp_path, monkeypatch):
    """It was taken for a single file, and nothing in it was ever read."""
    asked = Path.is_dir

    def is_dir(path):
        was = asked(path)
        if not was:
            os.mkdir(path)  # noqa: PTH102 - `Path.mkdir` would ask again
        return was

    monkeypatch.setattr(Path, "is_dir", is_dir)
    assert source_path(str(tmp_path / "cars")) is None
    assert source_path(str(tmp_path / "cars")) == SourcePath(str(tmp_path / "cars"))
