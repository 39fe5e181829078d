"""A run that cannot keep up: a growing backlog whose oldest tuple gets older, and nothing else."""

from __future__ import annotations

import pytest

from penstock.control.overload import AROUND, costliest, falling_behind, overload_now
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.record_types import BoxCount, InputLoad, TrainRecord


def loads(seconds, *, age, waiting=lambda _: None):
    return [InputLoad("cars", "main", float(t), 0, None, waiting(t), None, age(t)) for t in range(seconds)]


def test_a_growing_backlog_is_told_with_its_growth():
    (behind,) = falling_behind(loads(60, age=lambda t: 0.5 * t, waiting=lambda t: 1000 * t))
    assert behind.age == 29.5
    assert behind.aging == pytest.approx(0.5)
    assert behind.growth == pytest.approx(1000)
    assert str(behind).startswith("cars is 29.5 s behind, 0.5 s more each second; 59,000 tuples wait, 1,000")


def test_a_backlog_that_shrinks_is_no_overload_however_old_it_is():
    """A run over old files: all came at the same time, so their age grows until the end."""
    assert falling_behind(loads(60, age=float, waiting=lambda t: 100_000 - 1000 * t)) == []


def test_steady_delays_and_short_looks_are_no_overload():
    assert falling_behind(loads(60, age=lambda t: 20.0, waiting=lambda t: 5000)) == []
    assert falling_behind(loads(60, age=lambda t: 0.05 * t)) == []
    assert falling_behind(loads(9, age=lambda t: 10.0 * t)) == []
    assert falling_behind(loads(60, age=lambda t: None)) == []


def test_what_waited_while_an_input_was_held_is_no_overload():
    before = loads(20, age=lambda t: 0.1, waiting=lambda t: 10)
    later = loads(60, age=lambda t: 30.0, waiting=lambda t: 40_000 - 500 * t)[45:]
    assert falling_behind([*before, *later]) == []


def test_rare_looks_are_no_pause():
    (behind,) = falling_behind(loads(60, age=lambda t: 0.5 * t)[::10])
    assert behind.aging == pytest.approx(0.5)


def test_without_counts_the_age_decides():
    (behind,) = falling_behind(loads(60, age=lambda t: 0.5 * t))
    assert behind.waiting is None
    assert "tuples wait" not in str(behind)


def train(number, cpu, **boxes):
    counts = tuple(BoxCount(name, 10, 10, wall=1.0, cpu=used) for name, used in boxes.items())
    return TrainRecord("main", number, float(number), number + 1.0, 10, counts, cpu=cpu)


def test_what_costs_most():
    assert costliest([train(0, 10.0, score=7.0, filter=1.0)]) == ("score", 0.7)
    assert costliest([train(0, 10.0, score=2.0)]) == (AROUND, 0.8)
    assert costliest([train(0, None, score=2.0)]) == ("score", 1.0)
    assert costliest([]) == ("", 0.0)


def test_only_a_run_that_lives_is_judged(tmp_path):
    catalog = Catalog(tmp_path / "catalog.db")
    for load in loads(60, age=lambda t: 0.5 * t, waiting=lambda t: 1000 * t):
        catalog.record_second(int(load.time), [load], [])
    catalog.record_train(train(0, 10.0, score=7.0))
    (behind,) = overload_now(catalog, now=60.0)
    assert (behind.costliest, behind.share) == ("score", 0.7)
    assert overload_now(catalog, now=80.0) == []
    catalog.close()
