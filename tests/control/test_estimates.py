"""Estimates of errors cover the exact answers as often as they say, on the reference engine."""

from __future__ import annotations

import random
import statistics

import pytest

import penstock as ps
from penstock.control.estimates import KeptSample
from penstock.engine.contract.valve import Valve
from penstock.engine.local import LocalEngine

KEYS = 5


def network():
    net = ps.Network("n")
    cars = net.source("cars", ps.rows([], "time TIMESTAMP, k INT, v DOUBLE"), timestamp="time")
    tens = cars.group_by("k").tumble(
        "10 seconds", n="count(*)", s="sum(v)", a="avg(v)", d="stddev_samp(v)", name="tens"
    )
    net.output("out", tens, to=ps.memory())
    return net


def rows(seed, per_second=150):
    """Keys of different weight; values that differ by key and by chance."""
    chance = random.Random(seed)
    return [
        {"time": second, "k": (k := min(chance.randrange(9), KEYS - 1)), "v": 10 + 3 * k + chance.gauss(0, 4)}
        for second in range(40)
        for _ in range(per_second)
    ]


def answers(given, valves=()):
    result = LocalEngine(network()).run([{"cars": given}], valves=[[valve.plain() for valve in valves]])
    return {(row["time"].timestamp() // 10, row["k"]): row for row in result.outputs["out"]}


@pytest.mark.parametrize(("share", "grain"), [(0.5, "tuples"), (0.2, "tuples")])
def test_two_standard_errors_cover_nearly_all_answers(share, grain):
    covered = {"n": [], "s": [], "a": []}
    for seed in range(3):
        given = rows(seed)
        exact = answers(given)
        thin = answers(given, [Valve("cars", share, grain, lot=seed)])
        for key, row in thin.items():
            window = sum(other["n"] for (at, _), other in thin.items() if at == key[0])
            sample, spread = KeptSample(share, share, window), row["d"] / row["a"]
            errors = {
                "n": (row["n"] / share, sample.count_error(row["n"])),
                "s": (row["s"] / share, sample.sum_error(row["n"], spread)),
                "a": (row["a"], sample.mean_error(row["n"], spread)),
            }
            for name, (estimate, error) in errors.items():
                covered[name].append(abs(estimate - exact[key][name]) <= 2 * error * abs(estimate))
    for name, hits in covered.items():
        assert statistics.mean(hits) >= 0.9, name
        assert len(hits) >= 50


def test_half_a_standard_error_does_not():
    """An estimate that covers always would be no estimate."""
    given = rows(5)
    exact, thin = answers(given), answers(given, [Valve("cars", 0.3, lot=4)])
    hits = [
        abs(row["n"] / 0.3 - exact[key]["n"])
        <= 0.5 * KeptSample(0.3, 0.3, 1500).count_error(row["n"]) * row["n"] / 0.3
        for key, row in thin.items()
    ]
    assert statistics.mean(hits) < 0.7
