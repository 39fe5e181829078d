"""Qualities of service, and settings of control, that must be refused."""

from __future__ import annotations

from dataclasses import replace

import penstock as ps
from model.wrong_networks.cases import cars, case


@case
def qos_not_normalised():
    stream = cars()
    stream.network.output("all", stream, to=ps.console(), qos={"delay": [(0, 1.0), (5, 2.0)]})


@case
def qos_column_unknown():
    stream = cars()
    qos = ps.QoS(delay=[(0, 1), (5, 0)], value=[(0, 0), (9, 1)], column="sped")
    stream.network.output("all", stream, to=ps.console(), qos=qos)


@case
def qos_column_no_number():
    qos = ps.QoS(delay=[(0, 1), (5, 0)], value=[(0, 0), (9, 1)], column="plate")
    cars().view("kept", qos=qos)


@case
def qos_part_unknown():
    cars().output("all", to=ps.console(), qos={"delai": [(0, 1), (5, 0)]})


@case
def qos_without_delay():
    cars().output("all", to=ps.console(), qos={"loss": [(0, 0), (100, 1)]})


@case
def argument_qos_number():
    cars().output("jams", to=ps.console(), qos=5)


@case
def argument_qos_graph_number():
    ps.QoS(delay=5)


@case
def argument_qos_three():
    ps.QoS(delay=[(0, 1, 2)])


@case
def argument_qos_text():
    ps.QoS(delay=[("a", 1)])


@case
def argument_qos_nan():
    ps.QoS(delay=[(0, 1), (float("nan"), 0)])


@case
def argument_qos_weight_nan():
    ps.QoS(delay=[(0, 1), (5, 0)], weight=float("nan"))


@case
def argument_qos_approximate_text():
    ps.QoS(delay=[(0, 1), (5, 0)], approximate="yes")


@case
def control_headroom():
    ps.ControlSettings(headroom=2)


@case
def control_priority():
    replace(ps.ControlSettings(), priority="stat")
