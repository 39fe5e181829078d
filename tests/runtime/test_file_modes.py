"""What a run writes is for its owner only: driver, JVM and workers, in folders that others may enter."""

from __future__ import annotations

import os

import pytest

import penstock as ps
from file_modes import open_to_others
from penstock.store.durable import make_directory, open_text, whole_file, write_record


@pytest.fixture(autouse=True)
def _usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_files_and_folders_made_by_us_are_private(tmp_path):
    make_directory(tmp_path / "a/b/c")
    write_record(tmp_path / "a/record", {})
    with open_text(tmp_path / "a/text", "a") as file:
        file.write("x")
    with whole_file(tmp_path / "a/whole") as aside:
        aside.write_text("x")
    assert (tmp_path / "a/whole").read_text() == "x"
    assert open_to_others(tmp_path) == {}
    (tmp_path / "open").mkdir(mode=0o755)
    make_directory(tmp_path / "open/inner")
    assert open_to_others(tmp_path) == {"open": "0o755"}, "a folder that exists keeps its mode"


def test_a_run_leaves_nothing_that_others_can_read(spark, tmp_path):
    (tmp_path / "in").mkdir()
    rows = "".join(f"{second},{second % 5},{second}\n" for second in range(300)) + "bad\n"
    (tmp_path / "in" / "one.csv").write_text(rows)
    root = tmp_path / "run"
    root.mkdir(mode=0o755)
    (root / "checkpoint").mkdir(mode=0o755)
    net = ps.Network("modes")
    cars = net.source(
        "cars", ps.csv(tmp_path / "in", "time TIMESTAMP, k INT, v INT", settle="0"), timestamp="time"
    )
    point = cars.filter("v >= 0").connection_point("kept")
    point.filter("v > 1").output("native", to=ps.parquet(root / "deep/native"))
    minutes = point.group_by("k").tumble("1 minute", n="count(*)")
    minutes.output("text", to=ps.csv(root / "text"))
    minutes.output("lines", to=ps.json(root / "lines"))
    with ps.Runtime(net, spark, root / "checkpoint", once=True, close=True) as running:
        running.wait(timeout=120)
    assert list(root.glob("deep/native/*.parquet"))
    assert list(root.glob("text/*.csv"))
    assert list(root.rglob("dead_letters/**/*.*"))
    assert open_to_others(root) == {"checkpoint": "0o755"}, "it was there"
