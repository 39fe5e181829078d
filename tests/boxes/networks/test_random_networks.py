"""Random networks on random streams, cut at random: the Spark engine gives what the local one gives, fused or
not.
"""

import os

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from penstock.engine.local import LocalEngine
from penstock.testing import assert_same_result
from penstock.testing.spark_run import run_on_spark
from penstock.testing.strategies import cases
from soak import count

PARTS = count(1, soak=4)  # `make soak` runs each as a piece of its own
CHECKS = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    # A train takes a good part of a second: shrinking is for a person with time.
    "phases": [Phase.explicit, Phase.reuse, Phase.generate],
    "print_blob": True,
}

pytestmark = pytest.mark.skipif(
    "spark" not in os.environ.get("PENSTOCK_ENGINES", ""), reason="spark is not in PENSTOCK_ENGINES"
)


def compare_many(spark, number, strategy):
    """Compare the engines on so many random networks; returns how many there were."""
    compared = 0

    @settings(max_examples=number, **CHECKS)
    @given(case=strategy)
    def compare(case):
        nonlocal compared
        compared += 1
        expected = LocalEngine(case.network).run([case.rows])
        for cutting, trains in enumerate(case.trains):
            fuse = (compared + cutting) % 2 == 0
            assert_same_result(run_on_spark(case.network, trains, spark, fuse=fuse), expected)

    compare()
    return compared


def test_small_networks(spark):
    compare_many(spark, 3, cases(number_of_cuttings=1, max_boxes=4, max_size=12))


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(PARTS))
def test_many_networks(spark, part, record_property):
    del part  # hypothesis draws others in each
    networks = compare_many(spark, count(48, soak=475), cases(number_of_cuttings=1, max_boxes=5, max_size=16))
    record_property("networks_on_spark", networks)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_larger_networks_cut_in_two_ways(spark, record_property):
    networks = compare_many(spark, count(10, soak=100), cases(number_of_cuttings=2, max_boxes=6, max_size=20))
    record_property("networks_on_spark", networks)
