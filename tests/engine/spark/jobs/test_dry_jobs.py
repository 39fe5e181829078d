"""Random networks as jobs of tasks, without Spark: rows, dead letters and accounts as in the reference."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from penstock.engine.local import LocalEngine
from penstock.engine.spark.jobs.forms import Form
from penstock.testing import assert_same_result
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
