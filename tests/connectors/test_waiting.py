"""What waits at an input: looked at without taking it, at little cost."""

from __future__ import annotations

import gzip
import json
import os
import time
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from connectors.test_inputs import TEXT, put, source
from penstock.connectors import rate
from penstock.connectors.contract import Taken, Waiting
from penstock.connectors.files.discovery import source_files
from penstock.connectors.loading import input_for
from penstock.engine.contract import backlog as backlog_module
from penstock.engine.contract.arrivals import arrivals_of, merged
from penstock.engine.contract.backlog import InputBacklog
from penstock.model.formats.feed import LISTING


def folder(tmp_path, files, *, rows=10):
    (tmp_path / "in").mkdir(exist_ok=True)
    for number in range(files):
        put(tmp_path / "in" / f"{number:06d}.csv", "".join(f"{k},a,1\n" for k in range(rows)), 100 + number)
    return input_for(source(ps.csv(str(tmp_path / "in"), TEXT)), tmp_path / "p")


def test_text_files_tell_bytes_at_once_and_tuples_after_the_first_train(tmp_path):
    before = time.time()
    given = folder(tmp_path, 3)
    first = given.waiting(None)
    assert (first.tuples, first.bytes) == (None, 180)
    assert before <= first.arrived <= time.time()
    taken = given.take(None, 5)
    assert given.waiting(taken.position) == Waiting(25, 150, first.arrived)
    rest = given.take(taken.position, 100)
    assert given.waiting(rest.position) == Waiting(0, 0)


def test_new_files_are_seen_while_known_ones_last(tmp_path, monkeypatch):
    monkeypatch.setattr(source_files, "_COARSE", 1e9)  # list at every look
    given = folder(tmp_path, 2)
    taken = given.take(None, 1)
    before = given.waiting(taken.position).bytes
    put(tmp_path / "in" / "later.csv", "1,a,1\n", 300)
    assert given.waiting(taken.position).bytes == before + 6


def test_an_archive_counts_by_its_size_on_disk(tmp_path):
    (tmp_path / "in").mkdir()
    for number in range(2):
        path = tmp_path / "in" / f"{number}.csv.gz"
        path.write_bytes(gzip.compress(b"1,a,1\n" * 1000, mtime=0))
        os.utime(path, (100 + number, 100 + number))
    size = path.stat().st_size
    given = input_for(source(ps.csv(str(tmp_path / "in"), TEXT)), tmp_path / "p")
    whole = given.take(None, 1000)
    assert whole.rows == 1000
    waiting = given.waiting(whole.position)
    assert (waiting.tuples, waiting.bytes) == (1000, size)
    begun = given.take(whole.position, 10)
    assert given.waiting(begun.position).bytes == size


def test_parquet_counts_inside_of_a_file_too(tmp_path):
    (tmp_path / "in").mkdir()
    table = pa.table({"time": pa.array(range(100), pa.timestamp("us", tz="UTC")), "v": range(100)})
    for number in range(2):
        pq.write_table(table, tmp_path / "in" / f"{number}.parquet", row_group_size=25)
    src = source(ps.parquet(str(tmp_path / "in"), schema="time TIMESTAMP, v BIGINT"))
    given = input_for(src, tmp_path / "p")
    taken = given.take(None, 25)
    assert taken.rows == 25
    waiting = given.waiting(taken.position)
    assert waiting.tuples == pytest.approx(175, abs=4)


def test_lines_added_to_a_followed_file_are_as_old_as_the_look_that_found_them(tmp_path, monkeypatch):
    """The file itself may be followed for hours: its first lines say nothing about its last ones."""
    now = time.time()
    clock = [now]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "log.csv"
    path.write_text("1,a,1\n")
    given = input_for(source(ps.csv(str(tmp_path / "in"), TEXT, tail=True)), tmp_path / "p")
    first = given.take(None, 100)
    clock[0] = now + 5000
    path.write_text("1,a,1\n2,a,1\n")
    assert given.waiting(first.position).arrived == now + 5000
    clock[0] = now + 5003
    path.write_text("1,a,1\n2,a,1\n3,a,1\n")
    assert given.waiting(first.position).arrived == now + 5000
    second = given.take(first.position, 1)
    assert (second.rows, second.arrived) == (1, now + 5000)
    assert given.waiting(second.position).arrived == now + 5003
    third = given.take(second.position, 100)
    assert (third.rows, third.arrived) == (1, now + 5003)
    assert given.waiting(third.position) == Waiting(0, 0)


def test_a_feed_knows_exactly(tmp_path):
    folder = tmp_path / "feed"
    folder.mkdir()
    before = time.time()
    lines = []
    for at in range(4):
        (folder / f"{at}.txt").write_text("x\n" * 5)
        lines.append(json.dumps({"at": at, "files": [[f"{at}.txt", 0, 10, 5]]}))
    (folder / LISTING).write_text("\n".join(lines) + "\n")
    schema = "time TIMESTAMP, v INT"
    given = input_for(source(ps.feed(str(folder), schema, decode=len)), tmp_path / "p")
    assert given.waiting(None).tuples == 20
    taken = given.take(None, 10)
    assert [tuples for _, tuples in taken.arrivals] == [5, 5]
    waiting = given.waiting(taken.position)
    assert (waiting.tuples, waiting.bytes) == (10, 20)
    assert before - 1 < waiting.arrived <= time.time()  # the clock of files may lag by a tick


def test_a_rate_knows_when_its_rows_were_due(tmp_path, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(rate, "time", SimpleNamespace(time=lambda: now[0], monotonic=lambda: now[0]))
    given = input_for(source(ps.rate(1000)), tmp_path / "p")
    begun = given.take(None, 1).position
    assert given.waiting(begun) == Waiting(0, 0)
    now[0] += 0.5
    assert given.waiting(begun) == Waiting(500, 0, pytest.approx(1000.001))


class Slow:
    """An input whose looks take time, on a clock of its own."""

    def __init__(self, seconds):
        self.seconds, self.looks, self.now = seconds, 0, 0.0

    def waiting(self, position):
        del position
        self.looks += 1
        self.now += self.seconds
        return Waiting(100 * self.looks, 5, 50.0)


def test_looks_take_at_most_a_two_hundredth_of_a_core(monkeypatch):
    now = [0.0]
    slow = Slow(0.01)
    monkeypatch.setattr(backlog_module, "time", SimpleNamespace(perf_counter=lambda: slow.now))
    backlog = InputBacklog({"a": slow}, lambda: now[0], lambda: 60.0)
    while now[0] < 20:
        backlog.look({})
        now[0] += 0.05
    assert slow.looks == 10
    assert backlog.situation("a").oldest_age == 10.0


def test_the_offered_rate_counts_what_waits_and_what_was_taken():
    now, waiting = [0.0], [0]

    class Growing:
        def waiting(self, position):
            del position
            return Waiting(waiting[0], 0)

    backlog = InputBacklog({"a": Growing()}, lambda: now[0], lambda: 0.0)
    for second in range(20):
        now[0], waiting[0] = float(second), waiting[0] + 100
        backlog.look({})
        if second % 2:  # a train takes 150 of 200 in two seconds
            waiting[0] -= 150
            backlog.took("a", Taken([object()], None, 150, more=True))
    assert backlog.situation("a").offered_rate == pytest.approx(100, rel=0.01)
    assert backlog.situation("a").taken_tuples == 1500


def test_what_a_train_took_does_not_grow_older_at_its_input():
    """The next look may be seconds away; until then nobody is to think that all of it still waits."""

    class Full:
        def waiting(self, position):
            del position
            return Waiting(300, 9, 10.0)

    backlog = InputBacklog({"a": Full()}, lambda: 0.0, lambda: 14.0)
    backlog.look({})
    assert backlog.situation("a").oldest_age == 4.0
    backlog.took("a", Taken([object()], None, 200, more=True, arrivals=[(10.0, 100), (12.5, 100)]))
    assert backlog.situation("a").oldest_age == 1.5
    backlog.took("a", Taken([object()], None, 100, arrivals=[(13.0, 100)]))
    assert backlog.situation("a").oldest_age is None


def test_arrivals_of_a_train_are_few_and_never_too_young():
    many = [(float(k), 3) for k in range(1000)]
    few = merged(many)
    assert len(few) <= 32
    assert sum(tuples for _, tuples in few) == 3000
    assert few[0][0] == 0.0
    passed = 0
    for at, tuples in few:
        assert at <= many[passed // 3][0]
        passed += tuples
    taken = [
        Taken([object()], None, 7, arrived=None),
        Taken([], None, 0),
        Taken([object()], None, 2, arrived=5.0),
    ]
    assert arrivals_of(taken, now=9.0) == ((5.0, 2), (9.0, 7))
