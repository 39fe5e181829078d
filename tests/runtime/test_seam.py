"""Attached at any moment under load: everything that is retained, then what comes.

No gap, nothing twice (A51).
"""

from __future__ import annotations

import random
import threading
import time

import pytest

import penstock as ps
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.local.engine import LocalEngine
from penstock.store.points.point import PointReader
from runtime.streams import SCHEMA, put, rows_of, source
from soak import SOAK, count

ATTACHES = count(3, soak=100)


class Feed:
    """Writes small files of numbered rows until told to stop."""

    def __init__(self, folder) -> None:
        self.folder, self.written, self._stop = folder, 0, threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._stop.set()
        self._thread.join()

    def _loop(self) -> None:
        number = 0
        while not self._stop.wait(0.1):
            put(self.folder, f"{number:06d}", [(n, n % 7, n) for n in range(self.written, self.written + 20)])
            self.written += 20
            number += 1


def numbers(sink) -> list[int]:
    return [row["v"] for row in list(sink.rows)]


def until(condition, running, seconds=120.0):
    end = time.monotonic() + seconds
    while not condition():
        running.check()
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.02)


def test_a_join_of_two_points_is_exact_at_the_seam(spark, tmp_path):
    """Attached in the middle: pairs within the history, across the seam and of what comes, each once."""

    def ask(s):
        return s.join(s.network.stream("doors"), on="k", within="3 seconds")

    def ask_one(s):
        return ask(s.filter("k = 3"))

    net = ps.Network("two")
    for name in ("a", "b"):
        source(net, tmp_path, name).filter("v >= 0", name=f"all {name}").connection_point(
            {"a": "cars", "b": "doors"}[name], key="k", keep="100 days"
        )
    rows = {name: [rows_of(at, 20, seed) for at in range(0, 100, 20)] for seed, name in enumerate("ab")}
    sink, only = ps.memory(), ps.memory()
    with ps.Runtime(net, spark, tmp_path / "checkpoint", policy=AsSoonAsPossible(50)) as running:
        for part in range(5):
            if part == 3:
                assert running.wait_idle(timeout=120)
                running.attach("pairs", "cars", ask, to=sink)
                running.attach("of three", "cars", ask_one, to=only)
            for name in "ab":
                put(tmp_path / name, str(part), rows[name][part])
        assert running.wait_idle(timeout=120)
        assert running.queries["pairs"].sub.inputs == ("cars", "doors")
    one = ps.Network("reference")
    a, b = (one.source(n, ps.rows([], SCHEMA), timestamp="time") for n in "ab")
    a.join(b, on="k", within="3 seconds").output("pairs", to=ps.memory())
    given = {name: [row for part in rows[name] for row in part] for name in "ab"}
    expected = LocalEngine(one).run([given], final=False).outputs["pairs"]
    assert len(expected) > 50
    # the last seconds wait for what may still come; they are the same ones for all that has been shown
    found = {tuple(row.values()) for row in sink.rows}
    assert len(found) == len(sink.rows)
    assert found == {tuple(row.values()) for row in expected}
    assert sorted(map(tuple, map(dict.values, only.rows))) == sorted(pair for pair in found if pair[1] == 3)


@pytest.mark.slow
@pytest.mark.timeout(3600 if SOAK else 900)
def test_no_gap_and_nothing_twice(spark, tmp_path, record_property):
    net = ps.Network("seam")
    files = ps.csv(str(tmp_path / "cars"), "time TIMESTAMP, k INT, v INT", wait=True)
    cars = net.source("cars", files, timestamp="time")
    cars.filter("v >= 0", name="all").connection_point("kept", key="k", keep="100 days")
    dice = random.Random(5)
    with (
        ps.Runtime(net, spark, tmp_path / "checkpoint", policy=AsSoonAsPossible(5000)) as running,
        Feed(tmp_path / "cars") as feed,
    ):
        reader = PointReader(tmp_path / "checkpoint", "kept")
        until(lambda: reader.latest() is not None, running)
        last = None
        for attempt in range(ATTACHES):
            time.sleep(dice.random() * 0.7)
            sink = ps.memory()
            there = reader.read().num_rows
            running.attach(f"asked {attempt}", "kept", lambda s: s.select("v"), to=sink)
            # some rows that came after the attach must arrive before it goes
            until(lambda rows=sink.rows, enough=there + 20: len(rows) > enough, running)
            running.detach(f"asked {attempt}")
            found = numbers(sink)
            assert sorted(found) == list(range(len(found))), f"attach {attempt}"
            assert there < len(found) <= feed.written
            last = found
        assert last is not None
        stayed = ps.memory()
        running.attach("stayed", "kept", lambda s: s.filter("k = 3").select("v"), to=stayed)
        there = feed.written
        until(lambda: feed.written > there + 100, running)
        feed.__exit__()
        assert running.wait_idle(timeout=300)
        assert sorted(numbers(stayed)) == list(range(3, feed.written, 7))
    record_property("attaches", ATTACHES)
