"""Connection points, outputs and words on shedding that must be refused."""

from __future__ import annotations

import penstock as ps
from model.wrong_networks.cases import cars, case
from penstock.rewrite.check import check


@case
def point_without_timestamp():
    cars(timestamp=None).connection_point("kept")


@case
def point_key_unknown():
    cars().connection_point("kept", key="segment")


@case
def point_keeps_nothing():
    cars().connection_point("kept", keep=0)


@case
def no_end():
    net = ps.Network("n")
    cars(net).filter("spd < 40")
    check(net)


@case
def points_differ_in_case():
    stream = cars()
    stream.connection_point("kept")
    stream.connection_point("Kept")
    check(stream.network)


@case
def outputs_share_a_directory():
    stream = cars()
    stream.output("a", to=ps.parquet("out"))
    stream.output("b", to=ps.json("out/"))
    check(stream.network)


@case
def output_feeds_a_source():
    stream = cars()
    stream.output("a", to=ps.csv("in"))
    check(stream.network)


@case
def shed_no_grain():
    cars().filter("spd < 40").shed("rows")


@case
def shed_windows_without_any():
    cars().filter("spd < 40").shed("windows")


@case
def shed_tuples_before_counts():
    cars().tumble("10 tuples", n="count(*)").shed("tuples")


@case
def shed_on_a_source():
    cars().shed("never")


@case
def shed_number():
    cars().filter("spd < 40").shed(5)
