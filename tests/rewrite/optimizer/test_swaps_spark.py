"""Random networks on the Spark engine that change their form at any train, and are killed in between: the
rows, points, dead letters and accounts of the network as written.

Without a session the same tickets, tasks, state and files run here and now, so there may be many.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, assume, event, given, settings
from hypothesis import strategies as st
from pyspark import cloudpickle

from penstock.engine.local import LocalEngine
from penstock.engine.spark.jobs.forms import Form as TrainForm
from penstock.rewrite.forms import Form
from penstock.rewrite.settling import stateful
from penstock.rewrite.subnetworks import split
from penstock.testing import assert_same_result
from penstock.testing.spark_run import InForm
from soak import count

from . import random_cases
from .random_cases import optimizer_cases
from .spark_swapping import POINTS, Kill, Lengths, Moments, on_disk, run_swapping
from .test_random import figures

# Python workers do not find the modules of tests.
cloudpickle.register_pickle_by_value(random_cases)

CHECKS = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    # A train takes a good part of a second: shrinking is for a person with time.
    "phases": [Phase.explicit, Phase.reuse, Phase.generate],
    "print_blob": True,
}


def swap_many(session, number):
    """So many random networks through swaps and kills; returns swaps, kills and networks."""
    done = {"networks": 0, "swaps": 0, "kills": 0}

    @settings(max_examples=number, **CHECKS)
    @given(optimizer_cases(max_boxes=6, max_size=16), st.data())
    def check(case, data):
        with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
            network = on_disk(case.network, case.rows, Path(folder) / "out")
            moments = draw_moments(data, network)
            expected = LocalEngine(case.network).run([case.rows])
            found = run_swapping(network, Path(folder) / "checkpoint", session, moments)
            assert_same_result(found, expected)
        event(f"{moments.swaps} swaps")
        done["networks"] += 1
        done["swaps"] += moments.swaps
        done["kills"] += moments.kill.killed

    check()
    return done


def draw_moments(data, network):
    """Other forms for the sub-networks that have any, perhaps the way back, and one kill."""
    boxes = data.draw(figures(network)).boxes
    first = data.draw(st.integers(0, 4), label="train before which it swaps")
    back = data.draw(st.none() | st.integers(first + 1, 6), label="train before which it is undone")
    forms = {}
    for sub in split(network):
        form = Form(rewritten=True, boxes=boxes, in_use=stateful(sub.network))
        if form.of(sub) is not sub:
            forms[sub.name] = {first: form} | ({back: Form()} if back is not None else {})
    assume(forms)
    lengths = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3), label="lengths of trains")
    kill = Kill(data.draw(st.sampled_from(POINTS)), data.draw(st.integers(1, 4)))
    return Moments(Lengths(tuple(lengths)), forms, kill)


def test_swaps_and_kills_change_nothing_in_one_task():
    done = swap_many(InForm(TrainForm.ONE_TASK), 4)
    assert done["swaps"] > 0


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_swaps_and_kills_change_nothing_in_tasks(record_property):
    done = swap_many(InForm(TrainForm.TASKS), count(40, soak=1_000))
    assert done["kills"] > 0
    record_property("random_swaps_in_tasks", done["swaps"])
    record_property("kills_between_swaps_in_tasks", done["kills"])


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_swaps_and_kills_change_nothing_on_spark(spark, record_property):
    done = swap_many(spark, count(8, soak=200))
    assert done["swaps"] > 0
    record_property("random_swaps_on_spark", done["swaps"])
    record_property("kills_between_swaps_on_spark", done["kills"])
