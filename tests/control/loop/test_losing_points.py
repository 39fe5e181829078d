"""Connection points that may lose tuples: what works for them works for the outputs behind them."""

from __future__ import annotations

import pytest
from tests.control.loop.networks import COSTLY, TOLERANT

import penstock as ps
from penstock.control.loop.picture import Picture, SubnetworkPicture
from penstock.control.loop.plan import Memory, decide, load_nodes
from penstock.control.loop.structure import Structure
from penstock.control.loop.valves import Places
from penstock.model.costs import Line, MeasuredCosts, MeasuredSubnetwork
from penstock.rewrite.subnetworks import at_point, split
from penstock.store.catalog.record_types import InputLoad

CAPACITY = 2.0
WRITER, READER = 0.6e-6, 0.4e-6  # CPU-seconds a tuple


def network(*, beside=False):
    """A source, a point that may lose tuples, an output behind it; perhaps an output beside it."""
    net = ps.Network("n")
    cars = net.source("cars", ps.csv("in/", "time TIMESTAMP, spd INT"), timestamp="time")
    kept = cars.filter("spd > 0", name="moving").connection_point("kept", shed=True)
    net.output("out", kept.filter("spd > 95", name="fast"), to=ps.console(), qos=COSTLY)
    if beside:
        net.output("some", cars.filter("spd < 5", name="slow"), to=ps.console(), qos=TOLERANT)
    return net


def costs(**cpu):
    return MeasuredCosts(
        {}, {name: MeasuredSubnetwork(name, 64, around=Line(0.1, each)) for name, each in cpu.items()}
    )


def picture(rate, **cpu):
    """All of it comes to both: the rate at the point is that in front of the valves above it."""
    inputs = {"kept": "cars", "out": "kept"}
    seen = [
        SubnetworkPicture(
            name, (InputLoad(read, name, 20.0, 0, rate, 100, None, 1.5),), trains=99, departed=0.0
        )
        for name, read in inputs.items()
    ]
    return Picture(20.0, tuple(seen), costs(**cpu), CAPACITY)


def plan_for(net, seen):
    structure = Structure.running(net, split(net))
    places = Places.of(net, structure)
    may = places.sheddable(structure.qos)
    plan, _ = decide(structure, seen, Memory(), headroom=0.9, sheddable=may, decoded=places.decoded())
    return plan, structure, places


def test_a_point_is_lowered_with_the_output_behind_it():
    """As it was: the writer's load could never be lowered, so all of it was shed, and the CPU was idle."""
    seen = picture(2 * CAPACITY / (WRITER + READER), kept=WRITER, out=READER)
    plan, structure, places = plan_for(network(), seen)
    assert 0.3 < plan.shares["out"] < 0.6
    assert plan.remaining <= plan.usable + 1e-6
    assert not plan.exhausted
    writer = next(sub for sub in structure.subs if sub.points)
    (valve,) = places.valves(writer, plan.shares)
    assert valve.share == plan.shares["out"]


def test_an_output_beside_the_point_does_not_speak_for_it():
    """The source keeps what the most demanding one keeps, behind the point or beside it."""
    net = network(beside=True)
    structure = Structure.running(net, split(net))
    nodes = {node.name: node.outputs for node in load_nodes(structure, picture(1.0, kept=WRITER, out=READER))}
    assert nodes == {"kept": {"out", "some"}, "out": {"out"}}
    below = structure.outputs_below["kept"]
    assert (below["moving"], below["slow"]) == ({"out"}, {"some"})


def test_points_behind_points_stand_for_what_lies_behind_all_of_them():
    net = network()
    again = net.stream("fast").connection_point("again", shed=True)
    net.output("far", again.filter("spd > 99", name="faster"), to=ps.console(), qos=TOLERANT)
    structure = Structure.running(net, split(net))
    assert structure.outputs_below["kept"]["cars"] == {"out", "far"}


def test_a_point_that_promises_its_history_speaks_for_itself():
    net = network()
    firm = net.stream("moving").connection_point("firm")
    net.output("far", firm.filter("spd > 99", name="faster"), to=ps.console(), qos=TOLERANT)
    structure = Structure.running(net, split(net))
    assert structure.outputs_below["kept"]["cars"] == {"out", "firm"}


@pytest.mark.parametrize("shed", [False, True])
def test_a_view_with_a_qos_counts_beside_what_lies_behind_it(shed):
    net = ps.Network("n")
    cars = net.source("cars", ps.csv("in/", "time TIMESTAMP, spd INT"), timestamp="time")
    view = cars.filter("spd > 0", name="moving").view("kept", qos=TOLERANT, shed=shed)
    net.output("out", view.filter("spd > 95", name="fast"), to=ps.console(), qos=COSTLY)
    structure = Structure.running(net, split(net))
    assert structure.outputs_below["kept"]["cars"] == ({"kept", "out"} if shed else {"kept"})


def test_an_attached_query_has_no_say_in_what_a_point_loses():
    net = network()
    query = at_point(net, "kept", "jams", lambda s: s.filter("spd = 0", name="standing"), to=ps.console())
    structure = Structure.running(net, (*split(net), query))
    assert structure.attached == {"jams"}
    assert structure.outputs_below["kept"]["cars"] == {"out"}
    writer = next(sub for sub in structure.subs if sub.name == "kept")
    (valve,) = Places.of(net, structure).valves(writer, {"out": 0.4, "jams": 1.0})
    assert valve.share == 0.4
