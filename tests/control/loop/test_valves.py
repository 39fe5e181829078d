"""From shares to valves: nested, as early as possible, one grain for each input."""

from __future__ import annotations

from tests.control.loop.networks import COSTLY, TOLERANT, network, subs

import penstock as ps
from penstock.control.loop.structure import Structure
from penstock.control.loop.valves import Places
from penstock.rewrite.forms import Form
from penstock.rewrite.subnetworks import split

(SUB,) = subs()
PLACES = Places.of(network(), Structure((SUB,)))


def valves_for(shares):
    return PLACES.valves(SUB, shares)


def at(valves):
    return {valve.at: (valve.share, valve.grain) for valve in valves}


def test_no_valve_where_nothing_is_shed():
    assert valves_for({}) == ()
    assert valves_for({"alarms": 1.0, "means": 1.0, "scores": 1.0}) == ()


def test_branches_keep_less_than_the_source():
    valves = valves_for({"alarms": 1.0, "means": 0.5, "scores": 0.2})
    assert at(valves) == {"cars->by_seg": (0.5, "windows"), "cars->score": (0.2, "blocks")}
    assert len({valve.lot for valve in valves}) == 1


def test_what_all_lose_is_dropped_at_the_source():
    net = ps.Network("n")
    cars = net.source("cars", ps.csv("in/", "time TIMESTAMP, spd INT"), timestamp="time")
    net.output("slow", cars.filter("spd < 9", name="below"), to=ps.csv("out/a"), qos=TOLERANT)
    net.output("fast", cars.filter("spd > 9", name="above"), to=ps.csv("out/b"), qos=COSTLY)
    (sub,) = split(net)
    places = Places.of(net, Structure((sub,)))
    valves = places.valves(sub, {"slow": 0.8, "fast": 0.5})
    assert at(valves) == {"cars": (0.8, "blocks"), "cars->above": (0.5, "blocks")}
    assert at(places.valves(sub, {"slow": 0.5, "fast": 0.5})) == {"cars": (0.5, "blocks")}


def test_boxes_that_cannot_lose_tuples_are_left_alone():
    net = ps.Network("n")
    cars = net.source("cars", ps.csv("in/", "time TIMESTAMP, spd INT"), timestamp="time")
    kept = cars.connection_point("kept")
    last = kept.group_by("spd").latch("1 minute", n="count(*)")
    net.output("counted", last, to=ps.csv("out/a"), qos=TOLERANT)
    net.output("some", kept.filter("spd > 3"), to=ps.csv("out/b"), qos=COSTLY)
    parts = split(net)
    structure = Structure(parts)
    places = Places.of(net, structure)
    assert set(places.sheddable(structure.qos)) == {"some"}
    writer = next(part for part in parts if part.points)
    assert places.valves(writer, {"some": 0.1}) == ()


def forms_and_places(build, **form):
    """The places as written, and in the form that the optimizer gives the sub-networks."""
    net = ps.Network("n")
    build(net.source("cars", ps.csv("in/", "time TIMESTAMP, k INT, v INT"), timestamp="time"))
    subs = split(net)
    optimized = tuple(Form(rewritten=True, **form).of(sub) for sub in subs)
    assert optimized != subs
    return Places.of(net, Structure(subs)), Places.of(net, Structure(optimized))


def by_source(places, sub):
    return [(place.at, place.grain, place.exact) for place in places.by_subnetwork[sub] if place.at == "cars"]


def test_a_filter_in_front_of_a_window_does_not_hide_it():
    def build(stream):
        counted = stream.group_by("k", name="by_k").tumble("1 minute", n="count(*)", name="minutes")
        counted.filter("k = 1", name="first").output("out", to=ps.console(), qos=TOLERANT)

    written, form = forms_and_places(build, in_use={"minutes"}, settled={("first", "minutes")})
    assert by_source(written, "out") == by_source(form, "out") == [("cars", "windows", True)]
    (sub,) = form.around.values()
    assert form.memory(split(sub)[0], "out") == 60_000_000


def test_what_lies_behind_a_point_is_seen_from_a_form_with_new_names():
    def build(stream):
        stream.filter("v > 1", name="a").filter("k > 1", name="b").output(
            "out", to=ps.console(), qos=TOLERANT
        )
        point = stream.connection_point("kept", shed=True)
        point.filter("v > 3", name="c").output("strict", to=ps.console())

    written, form = forms_and_places(build)
    assert by_source(written, "kept") == by_source(form, "kept") == []
    assert [place.at for place in form.by_subnetwork["kept"]] == ["cars->a_and_b"]


def test_a_name_that_is_elsewhere_too_leaves_nobody_to_say():
    def build(stream):
        stream.filter("v > 1", name="a").filter("k > 1", name="b").output(
            "out", to=ps.console(), qos=TOLERANT
        )
        point = stream.connection_point("kept")
        point.filter("v > 3", name="a_and_b").output("other", to=ps.console(), qos=TOLERANT)

    _, form = forms_and_places(build)
    assert "kept" not in form.by_subnetwork
    assert form.by_subnetwork["other"]


def test_keys_of_a_branch_are_chosen_apart_from_those_of_the_source():
    """By other columns, so what both keep is the product."""
    net = ps.Network("n")
    cars = net.source("cars", ps.csv("in/", "time TIMESTAMP, xway INT, seg INT"), timestamp="time")
    for name, keys in {"fine": ("xway", "seg"), "coarse": ("xway",)}.items():
        counts = cars.group_by(*keys, name=f"by_{name}").tumble("10 seconds", n="count(*)")
        sums = counts.group_by(*keys).tumble("1 minute", n="sum(n)")
        net.output(name, sums, to=ps.console(), qos=TOLERANT)
    (sub,) = split(net)
    valves = Places.of(net, Structure((sub,))).valves(sub, {"fine": 0.3, "coarse": 0.5})
    assert at(valves) == {"cars": (0.5, "keys"), "cars->by_fine": (0.6, "keys")}
