"""What the files of a source hold: headers, archives, and lines that are still being added."""

from __future__ import annotations

import bz2
import gzip
import json

import pyarrow as pa
import pytest

from connectors.source_reader import TEXT, Reader, put, source, values_of
from penstock.connectors.files import line_cut, tail, text_file
from penstock.connectors.loading import input_for
from penstock.model.errors import NetworkError
from penstock.model.formats.files import csv
from penstock.model.formats.files import json as json_lines

# -- headers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k,v\na,1\n", [1]),
        ("v,k\n1,a\n2,b\n", [1, 2]),
        ('more,"v", k ,more\n9,1,a,x\n8,2,b,y\n', [1, 2]),
        ("\ufeffv,k\r\n1,a\r\n", [1]),
        ("v,k,x\n1,a,\n2,b\n3,c,\n", None),  # a line lacks a field: the slow way
        ("k,v\n", []),
        ("", []),
    ],
)
def test_columns_go_by_their_names(tmp_path, folder, text, expected):
    put(folder / "a.csv", text)
    src = source(csv(str(folder), TEXT, header=True))
    if expected is not None:
        for limit in (1, 2, 1000):
            reader = Reader(src, tmp_path / f"p{limit}")
            values = []
            while (taken := reader.input.take(reader.position, limit)).slices:
                reader.position = taken.position
                values += [v for s in taken.slices for v in values_of(src, s)]
            assert values == expected
    else:
        piece = input_for(src, tmp_path / "p").take(None, 10).slices[0]
        assert piece.tuples(src).tuples.column("v").to_pylist() == [1, 3]
        assert "2 fields, expected 3" in piece.tuples(src).refused.to_pylist()[0]["reason"]


def test_a_header_that_lacks_a_column_refuses_its_file(tmp_path, folder, caplog):
    put(folder / "a.csv", "k,speed\na,1\n\na,2\n", at=1_000_000)
    put(folder / "b.csv", "v,k,v\n1,a,2\n", at=1_000_001)
    put(folder / "c.csv", "v,k,extra\n7,a,2\n", at=1_000_002)
    values, letters = Reader(source(csv(str(folder), TEXT, header=True)), tmp_path / "p").drain()
    assert values == [7]
    assert letters == [
        ("column 'v' is missing in the header, which is 'k, speed'", 2),
        ("column 'v' is twice in the header, which is 'v, k, v'", 1),
    ]
    assert "c.csv: columns that the source does not declare: extra" in caplog.text


# -- archives

PACK = {"gz": gzip.compress, "bz2": bz2.compress, "zst": lambda b: pa.compress(b, "zstd", asbytes=True)}


@pytest.mark.parametrize("end", PACK)
@pytest.mark.parametrize("kept", [0, 1 << 20])
def test_archives_are_read(tmp_path, folder, monkeypatch, end, kept):
    monkeypatch.setattr(text_file, "_KEPT", kept)
    monkeypatch.setattr(text_file, "_BLOCK", 1000)
    monkeypatch.setattr(line_cut, "MAX_SLICE_BYTES", 3000)
    lines = "v,k\n" + "".join(f"{n},key {n}\n" for n in range(2000))
    put(folder / f"a.csv.{end}", PACK[end](lines[:5000].encode()) + PACK[end](lines[5000:].encode()))
    reader = Reader(source(csv(str(folder), TEXT, header=True)), tmp_path / "p")
    values = []
    while (taken := reader.input.take(reader.position, 300)).slices:
        reader.position = taken.position
        values += [v for s in taken.slices for v in values_of(reader.src, s)]
        # what was unpacked is a copy: without it the archive itself is read
        for path in (tmp_path / "p" / "unpacked").iterdir():
            path.unlink()
        assert [v for s in taken.slices for v in values_of(reader.src, s)] == values[-taken.rows :]
        reader = Reader(reader.src, tmp_path / "p", reader.position)
    assert values == list(range(2000))


def test_unpacked_text_is_deleted_when_it_is_committed(tmp_path, folder):
    put(folder / "a.json.gz", gzip.compress(b'{"k": "a", "v": 1}\n{"k": "a", "v": 2}\n'))
    reader = Reader(source(json_lines(str(folder), TEXT)), tmp_path / "p")
    assert reader.drain() == ([1, 2], [])
    assert len(list((tmp_path / "p" / "unpacked").iterdir())) == 1
    reader.input.committed(reader.position)
    assert list((tmp_path / "p" / "unpacked").iterdir()) == []


@pytest.mark.parametrize("end", PACK)
def test_a_broken_archive_is_a_dead_letter(tmp_path, folder, end):
    whole = PACK[end]("".join(f"a,{n}\n" for n in range(5000)).encode())
    put(folder / f"a.csv.{end}", whole[: len(whole) // 2], at=1_000_000)
    put(folder / f"b.csv.{end}", b"a,1\na,2\n", at=1_000_001)
    put(folder / f"c.csv.{end}", PACK[end](b"a,1\n"), at=1_000_002)
    reader = Reader(source(csv(str(folder), TEXT)), tmp_path / "p")
    values, letters = reader.drain()
    assert values == [1]
    assert [tuples for _, tuples in letters] == [1, 1]
    assert all(reason.startswith("the file was refused: not a sound ") for reason, _ in letters)
    put(folder / f"a.csv.{end}", whole, at=1_000_003)  # it was still being written
    assert reader.drain() == (list(range(5000)), [])


def test_an_archive_that_unpacks_to_far_too_much_is_refused(tmp_path, folder, monkeypatch):
    monkeypatch.setattr(text_file, "_LARGE", 1 << 20)
    put(folder / "bomb.csv.gz", gzip.compress(b"0" * (4 << 20)))
    values, [(reason, tuples)] = Reader(source(csv(str(folder), TEXT)), tmp_path / "p").drain()
    assert (values, tuples) == ([], 1)
    assert reason == "the file was refused: it unpacks to more than 1,048,576 bytes, 200 times its size"


def test_a_line_without_end_is_refused(tmp_path, folder, monkeypatch):
    monkeypatch.setattr(line_cut, "MAX_SLICE_BYTES", 100)
    monkeypatch.setattr(line_cut, "MAX_LINE_BYTES", 1000)
    put(folder / "a.csv", "a,1\n" + "x" * 5000 + "\na,2\n")
    values, letters = Reader(source(csv(str(folder), TEXT)), tmp_path / "p").drain()
    assert (values, letters) == ([1], [("a line is longer than 1,000 bytes", 1)])


# -- files that grow, followed


def add(path, text):
    with path.open("a") as file:
        file.write(text)


def test_a_growing_file_is_followed_by_complete_lines(tmp_path, folder):
    add(folder / "a.csv", "v,k\n1,a\n2,b\n3")
    src = source(csv(str(folder / "a.csv"), TEXT, header=True, tail=True))
    reader = Reader(src, tmp_path / "p")
    assert reader.drain() == ([1, 2], [])
    add(folder / "a.csv", ",c\n")
    assert reader.drain() == ([3], [])
    add(folder / "a.csv", "4,d\n5")
    again = Reader(
        src, tmp_path / "p", type(reader.position)(**json.loads(json.dumps(vars(reader.position))))
    )
    assert again.drain() == ([4], [])


def test_a_header_is_read_when_its_line_is_whole(tmp_path, folder):
    add(folder / "a.csv", "# made by hand\n")
    reader = Reader(source(csv(str(folder), TEXT, header=True, comment="#", tail=True)), tmp_path / "p")
    assert reader.drain() == ([], [])
    add(folder / "a.csv", "v")
    assert reader.drain() == ([], [])
    add(folder / "a.csv", ",k\n7,a\n")
    assert reader.drain() == ([7], [])


def test_several_growing_files_are_followed(tmp_path, folder):
    reader = Reader(source(csv(str(folder), TEXT, tail=True)), tmp_path / "p")
    expected, values = [], []
    for number in range(30):
        add(folder / f"{number % 3}.csv", f"a,{number}\na,")
        add(folder / f"{number % 3}.csv", f"{number + 100}\n")
        expected += [number, number + 100]
        reader.position = (taken := reader.input.take(reader.position, 1)).position
        values += [v for s in taken.slices for v in values_of(reader.src, s)]
    values += reader.drain()[0]
    assert sorted(values) == sorted(expected)


@pytest.mark.parametrize(("text", "what"), [("b,7\n", "became shorter"), ("b,7\nb,8\nb,9\n", "was replaced")])
def test_a_followed_file_that_is_replaced_is_told_and_read_anew(tmp_path, folder, text, what):
    add(folder / "a.csv", "a,1\na,2\n")
    reader = Reader(source(csv(str(folder), TEXT, tail=True)), tmp_path / "p")
    reader.drain()
    put(tmp_path / "new", text)
    (tmp_path / "new").rename(folder / "a.csv")
    values, letters = reader.drain()
    assert values == [7, 8, 9][: text.count("\n")]
    assert letters == [(f"the file {what} after 2 lines were read; it is read from its beginning now", 1)]
    assert reader.drain() == ([], [])


def test_too_many_files_to_follow(tmp_path, folder, monkeypatch):
    monkeypatch.setattr(tail, "MOST_FILES", 2)
    for number in range(3):
        add(folder / f"{number}.csv", "a,1\n")
    with pytest.raises(NetworkError, match="too many files to follow"):
        Reader(source(csv(str(folder), TEXT, tail=True)), tmp_path / "p").drain()
