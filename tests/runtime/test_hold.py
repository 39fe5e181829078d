"""Hold a sub-network, step it, let it go on (A38, A42); monitors on its arrows (A37)."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.engine.contract.steering import Monitor
from penstock.model.errors import PenstockError
from runtime.streams import put, rows_of, source, until


def test_a_held_sub_network_waits_and_is_stepped(spark, tmp_path):
    sink = ps.memory()
    net = ps.Network("held")
    kept = source(net, tmp_path).filter("v >= 0").connection_point("kept")
    net.output("out", kept.filter("k >= 0"), to=sink)
    put(tmp_path / "cars", "0", rows_of(0, 5))
    with ps.Runtime(net, spark, tmp_path / "checkpoint") as running:
        assert running.wait_idle(timeout=120)
        assert len(sink.rows) == 5
        with pytest.raises(PenstockError, match="'out' is not held"):
            running.step("out")
        running.hold("out")
        put(tmp_path / "cars", "1", rows_of(5, 5))
        put(tmp_path / "cars", "2", rows_of(10, 5))
        until(running, lambda: running.status().boxes["kept"].rows_in == 15)
        assert running.wait_idle(timeout=60)
        assert len(sink.rows) == 5, "its input waits, the others run on"
        # A point gives whole entries, at least one: a step of one tuple takes one train of its writer.
        running.step("out", tuples=1)
        until(running, lambda: len(sink.rows) > 5)
        assert running.wait_idle(timeout=60)
        stepped = len(sink.rows)
        running.hold("kept")
        put(tmp_path / "cars", "3", rows_of(15, 5))
        running.step("kept", tuples=1)
        until(running, lambda: running.status().boxes["kept"].rows_in > 15)
        assert running.wait_idle(timeout=60)
        assert running.status().boxes["kept"].rows_in == 16, "one tuple of the source"
        assert len(sink.rows) == stepped
        running.release("kept")
        running.release("out")
        until(running, lambda: len(sink.rows) == 20)
        kinds = [(event.kind, event.subject) for event in running.running_records().catalog.events()]
        assert [kind for kind in kinds if kind[0] in ("hold", "release")] == [
            ("hold", "out"),
            ("hold", "kept"),
            ("release", "kept"),
            ("release", "out"),
        ]


def test_monitors_show_what_leaves_native_boxes_and_stages(spark, tmp_path):
    sink, seen = ps.memory(), []
    net = ps.Network("watched")
    cars = source(net, tmp_path).filter("v >= 0", name="valid")
    cars.tumble("10 seconds", n="count(*)", name="windows").output("out", to=sink)
    with ps.Runtime(net, spark, tmp_path / "checkpoint") as running:
        running.on_train(lambda done: seen.append(done.samples))
        put(tmp_path / "cars", "0", rows_of(0, 30))
        assert running.wait_idle(timeout=120)
        assert seen
        assert not any(seen), "nobody has asked"
        running.queries["out"].steering.monitors = {
            "source": Monitor("cars", 5),
            "late": Monitor("valid", 50, "k = 3"),
            "windows": Monitor("windows", 1),
            "fails": Monitor("valid", 5, "1 / (k - 3) > 0"),
        }
        put(tmp_path / "cars", "1", rows_of(30, 40))
        until(running, lambda: any("windows" in each for each in seen))
        rows = {name: table for each in seen for name, table in each.items()}
        assert rows["source"].num_rows == 5
        threes = sorted(t for t, k, _ in rows_of(30, 40) if k == 3)
        assert sorted(t.timestamp() for t in rows["late"].column("time").to_pylist()) == threes
        assert 3 not in rows["fails"].column("k").to_pylist(), "a failing condition stops nobody"
        assert rows["windows"].num_rows == 1
        assert rows["windows"].column("n").to_pylist() == [10]
        assert running.status().dead == 0
        counts = running.status().boxes["cars"]
        assert (counts.rows_in, counts.rows_out) == (70, 70), "watched tuples are counted once"
