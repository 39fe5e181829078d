"""Random networks as jobs of tasks, without Spark: rows, dead letters and accounts as in the reference."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import penstock as ps
from penstock.engine.arrow.logic import dead_letters
from penstock.engine.local import LocalEngine
from penstock.engine.spark.jobs.forms import Form
from penstock.engine.spark.jobs.letters import as_spark_words
from penstock.model.types import Schema
from penstock.testing import assert_same_result
from penstock.testing.dry_run import DryRun
from penstock.testing.spark_run import InForm, run_on_spark
from penstock.testing.strategies import cases

CHECKS = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "phases": [Phase.explicit, Phase.reuse, Phase.generate],
    "print_blob": True,
}


@pytest.mark.parametrize("form", [Form.ONE_TASK, Form.TASKS])
def test_random_networks(form):
    @settings(max_examples=30, **CHECKS)
    @given(case=cases(number_of_cuttings=1, max_boxes=5, max_size=16))
    def compare(case):
        expected = LocalEngine(case.network).run([case.rows])
        for trains in case.trains:
            found = run_on_spark(case.network, trains, InForm(form))
            assert_same_result(found, expected)

    compare()


def test_a_train_tells_where_its_time_went(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.csv").write_text("".join(f"2026-01-01T00:00:{n:02d}Z,{n}\n" for n in range(60)))
    net = ps.Network("n")
    cars = net.source("cars", ps.csv(str(tmp_path / "in"), "time TIMESTAMP, v INT"), timestamp="time")
    tens = cars.tumble("10 seconds", n="count(*)")
    net.output("out", tens, to=ps.parquet(str(tmp_path / "out")))
    done = []
    DryRun(net, tmp_path / "checkpoint", listen=done.append).run_all()
    first = done[0]
    assert set(first.phases) == {"run", "read", "write", "state"}
    assert all(seconds > 0 for seconds in first.phases.values())
    assert first.phases["run"] <= first.seconds


def test_bytes_in_the_letters_of_native_boxes_are_base64_as_in_spark():
    rows = pa.table({"b": [b"\x00\xff"], "_ts": [0], "_seq": [0]})
    letters = as_spark_words(dead_letters(rows, ["r"], "f"), Schema.parse("b BINARY"))
    assert letters.column("raw").to_pylist() == ['{"b":"AP8="}']
