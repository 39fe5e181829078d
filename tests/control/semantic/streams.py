"""Networks with a value graph, and samples of trains as tasks tell them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import penstock as ps
from penstock.control.semantic.pool import Pool
from penstock.engine.arrow.value_samples import sampled
from penstock.engine.local import LocalEngine
from penstock.rewrite.subnetworks import split
from penstock.rewrite.value_ways import value_ways

DELAY = [(0, 1), (2, 1), (12, 0)]
LOSS = [(0, 0), (100, 1)]
BY_V = ps.QoS(delay=DELAY, loss=LOSS, value=[(0, 0), (100, 1)], column="v")


def zipf(rows, exponent=1.2, seed=5):
    """Values 1 to 100, small ones most often."""
    return np.minimum(np.random.default_rng(seed).zipf(exponent, rows), 100)


def network(make, qos=BY_V):
    """A source 'cars' with v, k and noise; `make` builds what lies between it and the output 'out'."""
    net = ps.Network("n")
    cars = net.source("cars", ps.rows([], "time TIMESTAMP, k INT, v INT, noise DOUBLE"), timestamp="time")
    net.output("out", make(cars), to=ps.memory(), qos=qos)
    return net


def rows_of(values, seed=7, start=0):
    noise = np.random.default_rng(seed).random(len(values))
    return [
        {"time": start + i // 50, "k": i % 40, "v": int(v), "noise": float(x)}
        for i, (v, x) in enumerate(zip(values, noise, strict=True))
    ]


def the_way(net):
    (sub,) = split(net)
    (way,) = value_ways(sub)
    return sub, way


def samples_of(net, rows, most=256):
    """The samples of one train with these rows, from the reference engine."""
    _, way = the_way(net)
    engine = LocalEngine(net)
    seen = {}
    through = engine._through

    def watched(node, inputs, *, final):
        flow = through(node, inputs, final=final)
        seen[node.name] = flow.rows
        return flow

    engine._through = watched
    entered = engine._enter

    def entering(name, given):
        flow = entered(name, given)
        seen[name] = flow.rows
        return flow

    engine._enter = entering
    engine.train({"cars": rows})
    columns = {way.tail: ("k", "noise", "v"), way.end: (way.qos.column,)}
    return {
        name: sampled(pa.Table.from_pylist(seen[name]).select([*names, "_seq"]), names, most)
        for name, names in columns.items()
    }


def pool_of(net, values, most=4096):
    _, way = the_way(net)
    return Pool().after_train(way, samples_of(net, rows_of(values), most), None, (0, 0))
