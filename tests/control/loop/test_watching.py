"""What a look at a run tells, beyond what each query does: what is offered, and what its load really was."""

from __future__ import annotations

import pytest
from tests.control.loop.networks import COSTS, STRICT, TOLERANT

import penstock as ps
from penstock.control.loop.cost_book import CostBook
from penstock.control.loop.picture import Coming, Picture, SubnetworkPicture
from penstock.control.loop.structure import Structure
from penstock.control.loop.watching import coming_to_rated, spent_on_rated
from penstock.rewrite.subnetworks import split
from penstock.store.catalog.record_types import InputLoad, TrainRecord


def network():
    """A point with a reader, both rated; another sub-network without a QoS."""
    net = ps.Network("n")
    cars = net.source("cars", ps.csv("in/", "time TIMESTAMP, spd INT"), timestamp="time")
    kept = cars.filter("spd > 0", name="moving")
    net.output("all", kept, to=ps.csv("out/all"), qos=TOLERANT)
    point = kept.connection_point("kept")
    net.output("fast", point.filter("spd > 95", name="speeding"), to=ps.csv("out/fast"), qos=STRICT)
    bulk = net.source("bulk", ps.csv("in2/", "time TIMESTAMP, spd INT"), timestamp="time")
    net.output("slow", bulk.filter("spd < 9", name="crawling"), to=ps.csv("out/slow"))
    return net


STRUCTURE = Structure(split(network()))
RATES = {"cars": 1000.0, "kept": 900.0, "bulk": 50_000.0}


def picture(held=(), spent=None):
    seen = [
        SubnetworkPicture(
            sub.name,
            tuple(InputLoad(i, sub.name, 0.0, 0, RATES[i], 500, age=2.5) for i in sub.inputs),
            held=sub.name in held,
        )
        for sub in STRUCTURE.subs
    ]
    return Picture(0.0, tuple(seen), COSTS, spent=spent or {})


def test_tuples_that_pass_a_point_are_offered_once_and_what_has_no_qos_is_not_meant():
    assert coming_to_rated(STRUCTURE, picture()) == Coming(1000.0, 500, 2.5)


def test_what_comes_to_a_held_sub_network_is_not_offered():
    writer = next(sub.name for sub in STRUCTURE.subs if "cars" in sub.inputs)
    assert coming_to_rated(STRUCTURE, picture(held=[writer])) == Coming()


def test_the_load_that_was_is_that_of_outputs_with_a_qos():
    spent = {sub.name: 1.0 for sub in STRUCTURE.subs}
    assert spent_on_rated(STRUCTURE, picture(spent=spent)) == len(STRUCTURE.subs) - 1


def test_what_trains_spend_whatever_they_carry_is_no_load_of_tuples():
    """An expected load is that of tuples, so the one that was measured has to be, too."""
    book, noted = CostBook({}, 2), []
    for number in range(96):
        rows = 2500 * (1 + number % 8)
        cpu = 0.2 + 1e-5 * rows
        book.note(TrainRecord("alarms", number, number, number + cpu, rows, cpu=cpu))
        noted.append(rows)
    book.costs(0.0)
    book.used()
    before = book.spent["alarms"]
    for number, rows in enumerate(noted[:40]):
        cpu = 0.2 + 1e-5 * rows
        book.note(TrainRecord("alarms", 96 + number, 96 + number, 97 + number, rows, cpu=cpu))
    book.used()
    assert book.spent["alarms"] - before == pytest.approx(1e-5 * sum(noted[:40]), rel=0.05)
