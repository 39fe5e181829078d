"""Which sub-networks keep their state by snapshots: those whose input can be read again."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock as ps
from penstock.engine.contract.recovery import parse_recovery, state_plan, state_text
from penstock.model.errors import PenstockError
from penstock.model.text.yaml_form import from_yaml, to_yaml
from penstock.rewrite.subnetworks import split
from penstock.runtime.box_facts import made_by

ROWS = "time TIMESTAMP, k INT, v INT"


def network(*, stays=None, limit=0, path="in", lateness=0):
    net = ps.Network("windows")
    rows = net.source("rows", ps.csv(path, ROWS), timestamp="time", stays=stays, lateness=lateness)
    kept = rows.filter(f"v > {limit}").group_by("k").tumble("1 minute", n="count(*)").connection_point("kept")
    kept.group_by("k").tumble("1 hour", n="sum(n)").output("hours", to=ps.csv("hours"))
    kept.filter("n > 3").output("many", to=ps.csv("many"))
    return net


def plans(net, durability="process"):
    return {sub.name: state_plan(sub, durability).snapshots for sub in split(net)}


def test_points_stay_and_files_only_if_told():
    assert plans(network()) == {"kept": False, "hours": True, "many": False}
    assert plans(network(stays=True)) == {"kept": True, "hours": True, "many": False}
    assert plans(network(stays=True), "power")["kept"]


def test_a_feed_stays_unless_told_otherwise_or_power_may_fail():
    from engine.spark.trains.test_express import network as fed

    def kept(net, durability="process"):
        (sub,) = split(net)
        return state_plan(sub, durability).snapshots

    net = fed(Path("feed"))
    assert kept(net)
    assert not kept(net, "power")


def test_explain_says_which(tmp_path):
    subs = {sub.name: sub for sub in split(network())}
    assert state_text(subs["kept"], "process", 10.0) == (
        "state: a delta with every train; the input of 'rows' may be gone later "
        "(stays=True says that it is not)"
    )
    assert state_text(subs["hours"], "process", 10.0) == (
        "state: snapshots in the background, rebuilt within 10 seconds of trains; every input stays readable"
    )
    assert "--recovery" in state_text(subs["hours"], "process", None)
    assert state_text(subs["many"], "process", 10.0) == "state: none"


def test_on_a_cluster_a_power_cut_leaves_no_snapshots(monkeypatch, tmp_path):
    (sub, *_) = split(network(stays=True))
    assert state_plan(sub, "process", local=False).snapshots
    assert not state_plan(sub, "power", local=False).snapshots
    told = {
        (master, durability): ps.Runtime(
            network(stays=True),
            checkpoint=tmp_path / "c",
            master=master,
            durability=durability,
            recovery="10 seconds",
        ).explain()
        for master in ("local[2]", "spark://elsewhere:7077")
        for durability in ("process", "power")
    }
    without = [how for how, text in told.items() if "snapshots in the background" not in text]
    assert without == [("spark://elsewhere:7077", "power")]
    assert "cluster" in told["spark://elsewhere:7077", "power"]


def test_stays_goes_through_yaml_and_shows():
    for stays in (None, True, False):
        net = network(stays=stays)
        assert from_yaml(to_yaml(net)).nodes["rows"].stays is stays
    assert "stays" in network(stays=True).explain()


@pytest.mark.parametrize("text", ["soon", "0 seconds", -1])
def test_what_is_no_target_is_refused(text):
    with pytest.raises(PenstockError, match="recovery"):
        parse_recovery(text)


def test_what_makes_state_is_identified():
    """Trains may run again only with the boxes that ran them first; outputs and folders do not matter."""

    def identity(**given):
        return made_by(next(sub for sub in split(network(**given)) if sub.name == "kept"))

    assert identity() == identity(path="elsewhere") == identity(stays=True)
    assert identity() != identity(limit=5)
    assert identity() != identity(lateness="1 second")
