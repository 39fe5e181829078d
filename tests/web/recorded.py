"""A checkpoint as a run would have left it, written by hand: no Spark is needed to look at it."""

from __future__ import annotations

from pathlib import Path

import penstock as ps
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.record_types import BoxCount, InputLoad, OutputSecond, SourceAccount, TrainRecord

NOW = 1_800_000_000
HOMES = {"cars": "recent", "valid": "recent", "recent": "recent", "chosen": "slow", "slow": "slow"}


def network() -> ps.Network:
    net = ps.Network("tolls")
    with net.group("clean", manual="only sound reports"):
        cars = net.source("cars", ps.csv("in/", "time TIMESTAMP, vid INT, spd INT"), timestamp="time")
        kept = cars.filter("spd < 200", name="valid").connection_point("recent", keep="2 hours")
    qos = ps.QoS(delay=[(0, 1), (5, 1), (30, 0)], loss=[(0, 0), (100, 1)])
    net.output("slow", kept.filter("spd < 40", name="chosen"), to=ps.parquet("out/slow"), qos=qos)
    return net


def record(folder: Path) -> Path:
    """A run of two sub-networks that has ended."""
    net, catalog = network(), Catalog(folder / "catalog.db")
    catalog.record_network(net.name, ps.to_yaml(net), net.nodes.values(), subnetworks=HOMES)
    boxes = (BoxCount("cars", 10, 9, dead=1), BoxCount("valid", 9, 8), BoxCount("recent", 8, 8))
    accounts = (SourceAccount("cars", offered=10, let_in=9, dead=1),)
    catalog.record_train(TrainRecord("recent", 0, NOW, NOW + 1, 10, boxes, accounts))
    catalog.record_train(TrainRecord("slow", 0, NOW + 1, NOW + 2, 8, (BoxCount("chosen", 8, 2),)))
    load = InputLoad("cars", "recent", float(NOW), 10, 4.0, 6, 60, 7.5)
    catalog.record_second(NOW, [load], [OutputSecond("slow", NOW, ((17.5, 2),))])
    catalog.close()
    return folder
