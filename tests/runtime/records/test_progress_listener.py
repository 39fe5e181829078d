"""What Spark tells of each micro-batch reaches the status, as one text and not value by value."""

from __future__ import annotations

import time
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryProgress

import penstock as ps
from penstock.engine.spark.trains import query
from penstock.runtime.records.progress_listener import TriggerListener
from runtime.streams import SCHEMA, rows_of


def test_only_our_trains_count() -> None:
    trigger: dict[str, float] = {}
    listener = TriggerListener(trigger)
    listener.take({"name": "penstock-out", "durationMs": {"triggerExecution": 500, "addBatch": 380}})
    listener.take({"name": "penstock-idle", "durationMs": {"latestOffset": 1}})
    listener.take({"name": None, "durationMs": {"triggerExecution": 500, "addBatch": 1}})
    assert trigger == {"out": 0.12}


def test_a_trigger_takes_longer_than_its_train(spark: Any, tmp_path: Any, monkeypatch: Any) -> None:
    converted: list[Any] = []
    monkeypatch.setattr(StreamingQueryProgress, "fromJObject", converted.append)
    monkeypatch.setattr(query, "_MICRO_BATCH", 0.0)  # one train each
    net = ps.Network("n")
    net.source("cars", ps.rows(rows_of(0, 50), SCHEMA), timestamp="time").output("out", to=ps.memory())
    with ps.Runtime(net, spark, tmp_path / "checkpoint") as running:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            (status,) = running.status().subnetworks
            if status.trigger > status.train > 0:
                break
            time.sleep(0.05)
        running.check()
    assert status.trigger > status.train > 0
    assert not converted
