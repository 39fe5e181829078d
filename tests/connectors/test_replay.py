"""Refused lines go in again: each once, whatever dies in between."""

from __future__ import annotations

import gzip

import pyarrow as pa
import pytest

import penstock as ps
from penstock.connectors.files import replay
from penstock.connectors.files.replay import CUT, LATE, NO_HEADER, NO_TEXT, UNFINISHED, WHOLE, replay_letters
from penstock.store.dead_letters import DeadLetters

SCHEMA = "time TIMESTAMP, k INT"
ALL = {"out": 10**6}  # every train has its commit


def source(folder, **options):
    net = ps.Network("again")
    net.source("cars", ps.csv(str(folder / "in"), SCHEMA, **options), timestamp="time")
    return net.sources["cars"]


@pytest.fixture
def checkpoint(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("time,k\n1,x\n")
    put(
        tmp_path / "ck",
        0,
        [("1,x", "malformed: 'x'"), ("5,1", "late: timestamp 5 us is behind the horizon 7 us")],
    )
    put(
        tmp_path / "ck",
        1,
        [("2,y", "malformed: 'y'"), (None, "unreadable"), ("z" * 5000, "malformed"), ("\ufffd", "malformed")],
    )
    return tmp_path / "ck"


def put(checkpoint, train, letters, box="cars"):
    rows = [
        {"raw": raw, "reason": reason, "box": box, "source": "cars", "offset": 1, "line": 1}
        for raw, reason in letters
    ]
    DeadLetters(checkpoint).append("out", train, pa.Table.from_pylist(rows))


def given_in(folder):
    """The lines of all files that replays have made."""
    return [
        line for path in sorted((folder / "in").glob("replayed-*")) for line in path.read_text().splitlines()
    ]


def test_each_line_goes_in_once(checkpoint, tmp_path):
    (result,) = replay_letters(checkpoint, [source(tmp_path)], ALL)
    assert (result.lines, dict(result.left)) == (2, {LATE: 1, WHOLE: 1, CUT: 1, NO_TEXT: 1})
    assert given_in(tmp_path) == ["1,x", "2,y"]
    (result,) = replay_letters(checkpoint, [source(tmp_path)], ALL)
    assert result.lines == 0
    put(checkpoint, 2, [("3,z", "malformed: 'z'")])
    put(checkpoint, 3, [('{"k": 1}', "failed")], box="later")  # other boxes may have seen the tuple
    (result,) = replay_letters(checkpoint, [source(tmp_path)], ALL)
    assert result.lines == 1
    assert sorted(given_in(tmp_path)) == ["1,x", "2,y", "3,z"]


class CrashError(Exception):
    pass


POINTS = ["replay-intended", "replay-written", "replay-ready", "replay-given"]


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("tidied", [False, True])
def test_a_crash_in_between_neither_loses_nor_doubles(checkpoint, tmp_path, monkeypatch, point, tidied):
    def crash(name):
        intended = (checkpoint / "dead_letters" / "replayed.json").exists()
        if name == point and intended:  # the first call finishes nothing, so only the second time counts
            raise CrashError

    monkeypatch.setattr(replay, "crash_point", crash)
    with pytest.raises(CrashError):
        list(replay_letters(checkpoint, [source(tmp_path)], ALL))
    monkeypatch.undo()
    given = given_in(tmp_path)
    for path in (tmp_path / "in").glob("replayed-*") if tidied else ():
        path.unlink()  # the network has read the file, and somebody has moved it away
    (result,) = replay_letters(checkpoint, [source(tmp_path)], ALL)
    assert result.lines == 0
    assert given_in(tmp_path) == ([] if tidied and given else ["1,x", "2,y"])


def test_letters_of_a_train_that_will_run_again_stay(checkpoint, tmp_path):
    """Train 1 has no commit: with a mended schema it may let in what it refused, and give it in twice."""
    (result,) = replay_letters(checkpoint, [source(tmp_path)], {"out": 0})
    assert (result.lines, dict(result.left)) == (1, {LATE: 1, UNFINISHED: 4})
    (result,) = replay_letters(checkpoint, [source(tmp_path)], {"out": 1})
    assert (result.lines, dict(result.left)) == (1, {WHOLE: 1, CUT: 1, NO_TEXT: 1})
    assert sorted(given_in(tmp_path)) == ["1,x", "2,y"]


def letters_of(folder, file):
    row = {"raw": "x,1", "reason": "malformed", "box": "cars", "file": str(file), "line": 2}
    DeadLetters(folder / "ck").append("out", 0, pa.Table.from_pylist([row]))


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
@pytest.mark.parametrize("before", ["", "# cars of today\n", "\ufeff"])
def test_lines_keep_the_header_of_their_file(tmp_path, name, before):
    (tmp_path / "in").mkdir()
    text = f"{before}k,time\nx,1\n".encode()
    (tmp_path / "in" / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    letters_of(tmp_path, tmp_path / "in" / name)
    list(replay_letters(tmp_path / "ck", [source(tmp_path, header=True, comment="#")], ALL))
    assert given_in(tmp_path) == ["k,time", "x,1"]


def test_lines_whose_header_is_gone_stay(tmp_path):
    """Their columns may stand in any order: to guess would give in wrong values."""
    (tmp_path / "in").mkdir()
    letters_of(tmp_path, tmp_path / "in" / "gone.csv")
    (result,) = replay_letters(tmp_path / "ck", [source(tmp_path, header=True)], ALL)
    assert (result.lines, dict(result.left)) == (0, {NO_HEADER: 1})
    assert given_in(tmp_path) == []


def test_other_sources_are_told(checkpoint, tmp_path):
    net = ps.Network("again")
    net.source("cars", ps.parquet(str(tmp_path / "in"), SCHEMA), timestamp="time")
    (result,) = replay_letters(checkpoint, net.sources.values(), ALL)
    assert dict(result.left) == {"a parquet source takes no lines": 6}


@pytest.mark.parametrize("point", POINTS)
def test_the_folder_may_be_moved_in_between(checkpoint, tmp_path, monkeypatch, point):
    """Killed on the way, then the source gets another folder: no line is lost, none comes twice."""

    def crash(name):
        if name == point and (checkpoint / "dead_letters" / "replayed.json").exists():
            raise CrashError

    monkeypatch.setattr(replay, "crash_point", crash)
    with pytest.raises(CrashError):
        list(replay_letters(checkpoint, [source(tmp_path)], ALL))
    monkeypatch.undo()
    (tmp_path / "moved").mkdir()
    (tmp_path / "in").rename(tmp_path / "moved" / "in")
    for _ in range(2):
        list(replay_letters(checkpoint, [source(tmp_path / "moved")], ALL))
        assert given_in(tmp_path / "moved") == ["1,x", "2,y"]
