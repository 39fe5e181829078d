"""From shares to valves: nested, as early as possible, one grain for each input."""

from __future__ import annotations

from tests.control.loop.networks import COSTLY, TOLERANT, network, subs

import penstock as ps
from penstock.control.loop.structure import Structure
from penstock.control.loop.valves import Places
from penstock.engine.local.engine import LocalEngine
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


def behind_a_point(above=lambda cars: cars.filter("v > 1", name="some"), **builds):
    """A network with a point that may lose tuples, its places, its writer and its reader."""
    net = ps.Network("n")
    cars = net.source("cars", ps.rows([], "time TIMESTAMP, k INT, v INT"), timestamp="time")
    kept = above(cars).connection_point("kept", shed=True)
    for name, build in builds.items():
        net.output(name, build(kept), to=ps.memory(), qos=COSTLY)
    subs = split(net)
    writer = next(sub for sub in subs if sub.points)
    reader = next(sub for sub in subs if sub.outputs)
    return net, Places.of(net, Structure(subs)), writer, reader


def large(kept):
    return kept.filter("v > 3", name="large")


def by_key_twice(kept):
    tens = kept.group_by("k").tumble("10 seconds", v="sum(v)")
    return tens.group_by("k").tumble("1 minute", v="sum(v)")


def test_behind_a_point_the_same_choice_is_made_again():
    """So two valves on one way keep the share, not its square."""
    net, places, writer, reader = behind_a_point(out=large)
    shares = {"out": 0.3}
    above, behind = places.valves(writer, shares), places.valves(reader, shares)
    assert at((*above, *behind)) == {"cars": (0.3, "blocks"), "kept": (0.3, "blocks")}
    rows = [{"time": n // 1000, "k": n % 7, "v": n % 11} for n in range(30_000)]

    def delivered(*valves):
        run = LocalEngine(net).run([{"cars": rows}], valves=[[valve.plain() for valve in valves]])
        return run.outputs["out"]

    assert 0 < len(delivered(*above)) < len(delivered())
    assert delivered(*above, *behind) == delivered(*above)
    assert delivered(*behind) == delivered(*above), "what the point held before is dropped alike"


def test_keys_are_chosen_alike_on_both_sides_of_a_point():
    _, places, writer, reader = behind_a_point(out=by_key_twice)
    (above,), (behind,) = (places.valves(sub, {"out": 0.3}) for sub in (writer, reader))
    assert (above.grain, above.share, above.lot) == (behind.grain, behind.share, behind.lot)
    assert (above.grain, above.keys) == ("keys", ("k",))


def test_where_a_point_was_shed_by_another_grain_only_the_rest_goes():
    def tens(cars):
        return cars.group_by("k").tumble("10 seconds", v="max(v)")

    _, places, writer, reader = behind_a_point(tens, out=large, other=lambda kept: kept.filter("v > 5"))
    shares = {"out": 0.3, "other": 0.6}
    assert at(places.valves(writer, shares)) == {"cars": (0.6, "windows")}
    assert at(places.valves(reader, shares)) == {"kept": (0.5, "tuples")}
    assert places.kept_above(reader, "kept", shares) == 0.6
