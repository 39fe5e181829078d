"""Going back after a change that failed: what was stopped for it runs again."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.model.errors import PenstockError
from penstock.rewrite.forms import Form
from runtime.dry.standins import SCHEMA, NoRecords, StandIn, chain, subs_of


def changed(*, more=False):
    """The chain with another predicate in front of its output, and perhaps one more output."""
    net = ps.Network("n")
    cars = net.source("cars", ps.csv("in", SCHEMA, wait=True), timestamp="time")
    point = cars.filter("v > 0").connection_point("p")
    point.filter("k > 1").output("out", to=ps.memory())
    if more:
        point.output("extra", to=ps.memory())
    return net


class NoCommits:
    def last_commit(self):
        return -1

    def commit(self, _train):
        return None


@pytest.fixture
def runtime(tmp_path, monkeypatch):
    """It runs the chain. What is begun now is noted in `begun`; `refused` cannot begin."""
    made = ps.Runtime(chain(), None, tmp_path)
    made.records = NoRecords()
    made.begun, made.refused = [], set()
    made.queries.update({name: StandIn(sub) for name, sub in subs_of(made.network).items()})

    def begin(sub, **_given):
        if sub.name in made.refused:
            raise PenstockError("the folder holds other rows")
        made.begun.append(sub.name)
        query = made.queries[sub.name] = StandIn(sub)
        return query

    monkeypatch.setattr(made, "begin", begin)
    return made


def test_what_was_stopped_for_a_failed_change_runs_again(runtime):
    before = runtime.network
    runtime.refused = {"out"}
    with pytest.raises(PenstockError, match="other rows"):
        runtime.replace(changed())
    runtime.refused = set()
    assert set(runtime.replace(before)) == {"out"}
    assert runtime.begun == ["out"]
    assert runtime.queries["p"].done == [], "nobody else has noticed"
    runtime.check()


def test_until_then_it_has_failed(runtime):
    """A run with `once` would wait for it for ever."""
    runtime.refused = {"out"}
    with pytest.raises(PenstockError):
        runtime.replace(changed())
    with pytest.raises(PenstockError, match="other rows"):
        runtime.wait(timeout=0.1)


def test_another_form_that_does_not_begin_leaves_a_failure(runtime):
    runtime.refused = {"out"}
    runtime.queries["out"].log = NoCommits()
    with pytest.raises(PenstockError):
        runtime.rewrite("out", Form())
    assert not runtime.runs_unchanged(subs_of(runtime.network)["out"])
    with pytest.raises(PenstockError, match="other rows"):
        runtime.check()


def test_an_output_that_never_began_is_taken_back(runtime):
    before = runtime.network
    runtime.refused = {"extra"}
    with pytest.raises(PenstockError, match="other rows"):
        runtime.replace(changed(more=True))
    runtime.replace(before)
    assert set(runtime.queries) == {"p", "out"}
    runtime.refused = set()
    runtime.replace(changed(more=True))
    assert set(runtime.queries) == {"p", "out", "extra"}
