"""Costs from the records of trains: lines that odd trains do not bend, and counted trains only."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.costs import costs_in, costs_of
from penstock.control.line_fit import fit_line
from penstock.model.costs import Line, MeasuredBox
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.record_types import BoxCount, TrainRecord


def train(number, rows, *, cpu=None, alone=True, seconds=0.5, boxes=()):
    return TrainRecord("main", number, float(number), number + seconds, rows, boxes, (), cpu, alone)


@given(
    fixed=st.floats(0.01, 1),
    slope=st.floats(1e-7, 1e-4),
    seed=st.integers(0, 1000),
    odd=st.integers(0, 9),
)
def test_one_odd_train_in_seven_does_not_bend_the_line(fixed, slope, seed, odd):
    random = np.random.default_rng(seed)
    tuples = random.integers(1_000, 100_000, 64)
    seconds = (fixed + slope * tuples) * random.normal(1, 0.02, 64)
    seconds[random.choice(64, odd, replace=False)] *= 10
    line = fit_line(list(tuples), list(seconds))
    for n in (1_000, 50_000, 100_000):
        assert line.at(n) == pytest.approx(fixed + slope * n, rel=0.1, abs=0.05 * (fixed + slope * 50_000))


@given(st.lists(st.tuples(st.integers(0, 10**9), st.floats(0, 1e4)), max_size=80))
def test_no_part_of_a_cost_is_ever_negative(trains):
    line = fit_line([n for n, _ in trains], [s for _, s in trains])
    assert line is None or (line.fixed >= 0 and line.per_tuple >= 0)
    assert (line is None) == (not any(n for n, _ in trains))


def test_only_the_last_trains_count():
    old, new = [(n, 5.0) for n in range(1, 100)], [(1000 * n, 0.1 + 0.001 * n) for n in range(1, 65)]
    tuples, seconds = zip(*(old + new), strict=True)
    assert fit_line(tuples, seconds) == Line(0.1, 1e-06)


def test_estimated_trains_never_enter():
    trains = [
        train(0, 100, boxes=(BoxCount("slow", 100, 50, wall=0.2, cpu=0.1),)),
        train(1, 100, boxes=(BoxCount("slow", 100, 99, estimated=True, wall=0.2, cpu=9.0),)),
        train(2, 300, boxes=(BoxCount("slow", 300, 50, wall=0.4, cpu=0.2),)),
    ]
    box = costs_of({"main": trains}).boxes["slow"]
    assert box == MeasuredBox("slow", "main", 2, 400, 100, Line(0.05, 0.0005))
    assert box.selectivity == 0.25


def test_a_native_box_has_a_selectivity_but_no_cost_of_its_own():
    trains = [train(0, 100, cpu=1.0, boxes=(BoxCount("slow", 100, 50),))]
    costs = costs_of({"main": trains})
    assert costs.boxes["slow"].cpu is None
    assert costs.boxes["slow"].selectivity == 0.5
    assert costs.subnetworks["main"].around == Line(0.9998, 2e-6)


def test_what_boxes_do_not_use_is_around_them():
    trains = [
        train(k, n, cpu=0.3 + 0.002 * n, boxes=(BoxCount("score", n, n, wall=1.0, cpu=0.001 * n),))
        for k, n in enumerate([100, 200, 400, 800])
    ]
    sub = costs_of({"main": trains}).subnetworks["main"]
    assert sub.cpu == Line(0.3, 0.002)
    assert sub.around == Line(0.3, 0.001)
    assert sub.wall == Line(0.5, 0.0)


def test_trains_that_ran_alone_come_first_if_there_are_enough():
    beside = [train(k, 100 * (k + 1), cpu=5.0, alone=False) for k in range(20)]
    alone = [train(20 + k, 100 * (k + 1), cpu=0.1 * (k + 1)) for k in range(8)]
    assert costs_of({"main": beside + alone}).subnetworks["main"].cpu == Line(0.0, 0.001)
    mixed = costs_of({"main": beside + alone[:3]}).subnetworks["main"]
    assert (mixed.cpu.fixed, mixed.alone) == (pytest.approx(5.0), False)


def test_unknown_is_not_zero():
    assert costs_of({"main": []}).subnetworks["main"].cpu is None
    assert costs_of({"main": [train(0, 100)]}).subnetworks["main"].cpu is None
    assert costs_of({"main": [train(0, 0, cpu=1.0)]}).subnetworks["main"].wall is None


def test_costs_survive_in_the_catalog(tmp_path):
    catalog = Catalog(tmp_path / "catalog.db")
    for k, n in enumerate([100, 200, 400]):
        box = BoxCount("score", n, n // 2, wall=0.1, cpu=0.1 + 0.001 * n)
        catalog.record_train(train(k, n, cpu=0.2 + 0.002 * n, alone=k != 1, boxes=(box,)))
    catalog.close()
    costs = costs_in(tmp_path)
    assert costs.boxes["score"].cpu == Line(0.1, 0.001)
    assert costs.subnetworks["main"].cpu == Line(0.2, 0.002)
    assert not costs.subnetworks["main"].alone
