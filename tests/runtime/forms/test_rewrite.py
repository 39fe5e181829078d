"""A sub-network that runs in another form: the same rows, and everybody speaks of the boxes as written."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.model.errors import NetworkError, PenstockError
from penstock.rewrite.forms import Form
from penstock.rewrite.settling import stateful
from penstock.testing import assert_same_rows
from runtime.streams import local, put, rows_of, source, until


def network(folder, sink, *, predicate="k = 1"):
    net = ps.Network("rewritten")
    cars = source(net, folder).filter("v >= 0", name="seen").filter("v < 90", name="slow")
    windows = cars.group_by("k", name="by_k").tumble("20 seconds", n="count(*)", name="windows")
    windows.filter(predicate, name="first").output("out", to=sink)
    return net


def form(net):
    return Form(rewritten=True, in_use=stateful(net))


def taken(running):
    counted = running.status().boxes.get("cars")
    return 0 if counted is None else counted.rows_in


def fed(running, folder, number):
    put(folder / "cars", str(number), rows_of(60 * number, 60))
    until(running, lambda: taken(running) == 60 * (number + 1))
    assert running.wait_idle(timeout=60)


def test_a_form_comes_goes_and_returns(spark, tmp_path):
    sink = ps.memory()
    net = network(tmp_path, sink)
    with ps.Runtime(net, spark, tmp_path / "checkpoint") as running:
        fed(running, tmp_path, 0)
        assert running.rewrite("out", form(net)) > 0
        assert [n for n in running.queries["out"].sub.network.nodes if "first" in n] != ["first"]
        fed(running, tmp_path, 1)
        assert running.network is net
        text = running.explain()
        assert "runs in another form" in text
        assert "filter 'first' moves in front of tumble 'windows'" in text
        boxes = running.status().boxes
        assert {"cars", "seen", "slow", "by_k", "windows", "first", "out"} >= boxes.keys() >= {"seen", "slow"}
        assert boxes["cars"].rows_out == 120
        assert 60 <= boxes["seen"].rows_in <= 120  # the filter on keys may come before it
        assert boxes["seen"].estimated
        # The network as written is the one that runs: nothing to replace.
        assert running.replace(network(tmp_path, sink)) == {}
    with ps.Runtime(net, spark, tmp_path / "checkpoint") as running:  # the form returns by itself
        assert "slow" not in running.queries["out"].sub.network.nodes
        fed(running, tmp_path, 2)
        running.rewrite("out", Form())  # undone
        assert running.queries["out"].sub.network == running.queries["out"].sub.as_written
        fed(running, tmp_path, 3)
        fed(running, tmp_path, 4)
        # State lacks what the filter removed, so another filter would miss groups.
        with pytest.raises(NetworkError, match="its state lacks what filter 'first' behind it removes"):
            running.replace(network(tmp_path, sink, predicate="k >= 1"))
        assert running.replace(network(tmp_path, sink, predicate="k >= 1"), fresh_state=True)
        assert running.forms.form("out") is None
    shown = [row for row in sink.rows if row["k"] == 1]
    rows = local(net, cars=[row for number in range(5) for row in rows_of(60 * number, 60)]).outputs["out"]
    assert_same_rows(shown, rows[: len(shown)])
    assert len(shown) == 14  # of fifteen windows, the last one is open


def test_a_form_that_changes_what_state_gets_is_refused(spark, tmp_path):
    net = network(tmp_path, ps.memory())
    with ps.Runtime(net, spark, tmp_path / "checkpoint") as running:
        fed(running, tmp_path, 0)
        with pytest.raises(PenstockError, match="cannot run in this form with the state that it has"):
            running.rewrite("out", Form(pruned=True))
        assert running.forms.form("out") is None
