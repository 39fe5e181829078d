"""What control decides for Linear Road: expressways go as a whole, for all five outputs alike. No Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.control.loop.picture import Picture, SubnetworkPicture
from penstock.control.loop.plan import Memory, Plan, decide
from penstock.control.loop.structure import Structure
from penstock.control.loop.valves import Places
from penstock.control.shedder import STEADY
from penstock.linear_road.network import road_network
from penstock.linear_road.network.road import DELAYS
from penstock.model.costs import Line, MeasuredBox, MeasuredCosts, MeasuredSubnetwork
from penstock.rewrite.subnetworks import split
from penstock.store.catalog.record_types import InputLoad

AROUND, CAPACITY = 0.4e-6, 2.0
BOXES = {"track": 0.3e-6, "minutes": 0.1e-6, "quote": 0.1e-6, "accounts": 0.8e-6, "drive_through": 20e-6}
"""CPU-seconds a tuple; balances and travel times would save more for one output than all expressways do."""


@pytest.fixture
def structure(tmp_path: Path) -> Structure:
    return Structure(split(road_network(None, tmp_path / "in", tmp_path / "answers")))


def plan_of(structure: Structure, rate: float, age: float) -> Plan:
    (sub,) = structure.subs
    places = Places.of(sub.network, structure)
    boxes = {name: MeasuredBox(name, sub.name, 99, 100, 30, Line(0.0, cpu)) for name, cpu in BOXES.items()}
    line = Line(0.1, AROUND)
    costs = MeasuredCosts(boxes, {sub.name: MeasuredSubnetwork(sub.name, 99, 99, line, line, line)})
    load = InputLoad("rows", sub.name, 60.0, 0, rate, 100, None, age)
    seen = SubnetworkPicture(sub.name, (load,), trains=99, departed=0.0)  # it was left behind just now
    plan, _ = decide(
        structure,
        Picture(60.0, (seen,), costs, CAPACITY),
        Memory(),
        headroom=0.9,
        sheddable=places.sheddable(structure.qos),
        together=places.together(),
        tempo=STEADY,
    )
    return plan


def test_all_outputs_keep_the_same_share(structure: Structure) -> None:
    plan = plan_of(structure, rate=3e6, age=2.5)
    shares = {plan.shares[name] for name in DELAYS}
    assert len(shares) == 1
    assert 0 < min(shares) < 1
    assert plan.remaining is not None
    assert plan.usable is not None
    assert plan.remaining <= plan.usable


def test_one_valve_at_the_source_leaves_out_groups(structure: Structure) -> None:
    (sub,) = structure.subs
    shares = plan_of(structure, rate=3e6, age=2.5).shares
    (valve,) = Places.of(sub.network, structure).valves(sub, shares)
    assert (valve.at, valve.grain, valve.keys, valve.share) == ("rows", "keys", (), shares["tolls"])


def test_nothing_goes_while_all_fits(structure: Structure) -> None:
    plan = plan_of(structure, rate=3e4, age=1.0)
    assert not plan.shedding
