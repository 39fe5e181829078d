"""Random networks on random streams, cut at random: the Spark engine gives what the local one gives, fused or not."""

import os

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from penstock.engine.local import LocalEngine
from penstock.testing import assert_same_result
from penstock.testing.spark_run import run_on_spark
from penstock.testing.strategies import cases

SOAK = bool(os.environ.get("PENSTOCK_SOAK"))
CHECKS = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    # a train takes a good part of a second: shrinking is for a person with time
    "phases": [Phase.explicit, Phase.reuse, Phase.generate],
    "print_blob": True,
}

pytestmark = pytest.mark.skipif(
    "spark" not in os.environ.get("PENSTOCK_ENGINES", ""), reason="spark is not in PENSTOCK_ENGINES"
)


def _same(case, spark):
    expected = LocalEngine(case.network).run([case.rows])
    for number, trains in enumerate(case.trains):
        assert_same_result(run_on_spark(case.network, trains, spark, fuse=number % 2 == 0), expected)


@settings(max_examples=5, **CHECKS)
@given(case=cases(number_of_cuttings=1, max_boxes=4, max_size=12))
def test_spark_gives_what_local_gives(spark, case):
    _same(case, spark)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@settings(max_examples=40 if SOAK else 4, **CHECKS)
@given(case=cases(number_of_cuttings=2, max_boxes=6, max_size=20))
def test_spark_gives_what_local_gives_at_length(spark, case):
    _same(case, spark)
