"""Names and edges that must be refused."""

from __future__ import annotations

import penstock as ps
from model.wrong_networks.cases import cars, case
from penstock.model.boxes import Filter, Output, Union
from penstock.model.writing.network import Network


@case
def name_twice():
    net = ps.Network("n")
    cars(net)
    cars(net)


@case
def name_taken_by_named():
    stream = cars()
    stream.filter("spd < 40", name="slow")
    stream.filter("spd > 90").named("slow")


@case
def point_name_no_table():
    cars().connection_point("last minutes")


@case
def group_name_with_slash():
    with ps.Network("n").group("a/b"):
        pass


@case
def input_unknown():
    Network.of("n", [Filter(name="slow", inputs=("casr",), predicate="true"), cars().node])


@case
def loop():
    boxes = [
        Filter(name="b", inputs=("a",), predicate="true"),
        Filter(name="c", inputs=("b",), predicate="true"),
    ]
    Network.of("n", [Union(name="a", inputs=("c", "cars")), *boxes, cars().node])


@case
def reads_from_an_output():
    stream = cars()
    stream.network.output("all", stream, to=ps.console()).filter("spd < 40")


@case
def other_network():
    cars().union(cars(ps.Network("elsewhere")))


@case
def stream_unknown():
    cars().network.stream("carz")


@case
def inputs_too_few():
    Network.of("n", [cars().node, Union(name="both", inputs=("cars",))])


@case
def output_two_inputs():
    Network.of("n", [cars().node, Output(name="o", inputs=("cars", "cars"), to=ps.console())])
