"""Attached at any moment under load: everything that is retained, then what comes; no gap, nothing twice (A51)."""

from __future__ import annotations

import os
import random
import threading
import time

import pytest

import penstock as ps
from penstock.engine.policy import AsSoonAsPossible
from penstock.store.point import PointReader
from runtime.streams import put

ATTACHES = 100 if os.environ.get("PENSTOCK_SOAK") == "1" else 3


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


@pytest.mark.slow
@pytest.mark.timeout(3600 if ATTACHES > 3 else 900)
def test_no_gap_and_nothing_twice(spark, tmp_path):
    net = ps.Network("seam")
    cars = net.source(
        "cars", ps.csv(str(tmp_path / "cars"), "time TIMESTAMP, k INT, v INT"), timestamp="time"
    )
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
            until(lambda: len(sink.rows) > there + 20, running)  # noqa: B023
            running.detach(f"asked {attempt}")
            found = numbers(sink)
            assert sorted(found) == list(range(len(found))), f"attach {attempt}"
            assert there < len(found) <= feed.written
            last = found
        assert last is not None
        stayed = ps.memory()
        running.attach("stayed", "kept", lambda s: s.filter("k = 3").select("v"), to=stayed)
        time.sleep(1.0)
        feed.__exit__()
        assert running.wait_idle(timeout=300, quiet=1.0)
        assert sorted(numbers(stayed)) == list(range(3, feed.written, 7))
