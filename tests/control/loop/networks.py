"""The network that tests of control share: one decode, a strict, a tolerant and an expensive output."""

from __future__ import annotations

import penstock as ps
from penstock.model.costs import Line, MeasuredBox, MeasuredCosts, MeasuredSubnetwork
from penstock.rewrite.subnetworks import split

STRICT = ps.QoS(delay=[(0, 1.0), (2, 1.0), (10, 0.0)], weight=4)
TOLERANT = ps.QoS(delay=[(0, 1.0), (8, 1.0), (30, 0.0)], loss=[(0, 0), (50, 0.9), (100, 1)])
COSTLY = ps.QoS(delay=[(0, 1.0), (4, 1.0), (20, 0.0)], loss=[(0, 0), (30, 0.7), (100, 1)], weight=2)


def score(table):
    return table


def network():
    net = ps.Network("n")
    cars = net.source("cars", ps.csv("in/", "time TIMESTAMP, seg INT, spd INT"), timestamp="time")
    net.output("alarms", cars.filter("spd > 95", name="fast"), to=ps.csv("out/alarms"), qos=STRICT)
    grouped = cars.group_by("seg", name="by_seg")
    means = grouped.tumble("10 seconds", speed="avg(spd)", name="minutes")
    net.output("means", means, to=ps.csv("out/means"), qos=TOLERANT)
    scored = cars.apply(score, produces="score DOUBLE", name="score")
    net.output("scores", scored, to=ps.csv("out/scores"), qos=COSTLY)
    return net


def subs():
    return split(network())


CPU = {"around": 1e-6, "minutes": 0.5e-6, "score": 3e-6}
"""CPU-seconds a tuple."""
COSTS = MeasuredCosts(
    {
        "fast": MeasuredBox("fast", "alarms", 9, 100, 5),
        "minutes": MeasuredBox("minutes", "alarms", 9, 1000, 10, Line(0.0, CPU["minutes"])),
        "score": MeasuredBox("score", "alarms", 9, 1000, 1000, Line(0.0, CPU["score"])),
    },
    {
        "alarms": MeasuredSubnetwork(
            "alarms",
            64,
            1000,
            Line(0.2, sum(CPU.values()) / 2),
            Line(0.2, sum(CPU.values())),
            Line(0.2, CPU["around"]),
        )
    },
)
