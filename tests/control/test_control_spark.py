"""Control of a real run on Spark: trains are granted, the report tells, valves close and open."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

import penstock as ps
from penstock.control.report import QosReport
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.decisions import Decisions

pytestmark = pytest.mark.usefixtures("spark")
START = datetime(2026, 1, 1, tzinfo=UTC)
STRICT = ps.QoS(delay=[(0, 1.0), (60, 1.0), (90, 0.0)], weight=4)
LOOSE = ps.QoS(delay=[(0, 1.0), (90, 1.0), (200, 0.0)], loss=[(0, 0), (50, 0.9), (100, 1)])


def network(folder):
    (folder / "in").mkdir(exist_ok=True)
    net = ps.Network("n")
    source = ps.csv(str(folder / "in"), schema="time TIMESTAMP, seg INT, spd INT")
    cars = net.source("cars", source, timestamp="time")
    kept = cars.connection_point("kept", keep="1 hour")
    net.output("fast", kept.filter("spd > 50"), to=ps.csv(str(folder / "fast")), qos=STRICT)
    net.output("some", cars.filter("spd >= 0"), to=ps.csv(str(folder / "some")), qos=LOOSE)
    return net


def put(folder, number, rows=200):
    """A file appears as a whole: what is added to a file that was read counts as dead."""
    lines = [f"{(START + timedelta(seconds=number)).isoformat()},{k % 7},{k % 100}" for k in range(rows)]
    aside = folder / "in" / f".{number:03d}"
    aside.write_text("\n".join(lines) + "\n")
    aside.rename(folder / "in" / f"{number:03d}.csv")


def lines_in(folder):
    return sorted(line for file in folder.glob("*.csv") for line in file.read_text().splitlines())


@pytest.mark.parametrize("priority", ["state", "round-robin"])
def test_outputs_under_control_are_those_without(tmp_path, spark, priority):
    rows = {}
    for name, control in (("plain", None), ("qos", ps.Control(priority=priority))):
        folder = tmp_path / name
        folder.mkdir()
        net = network(folder)
        for number in range(3):
            put(folder, number)
        with ps.Runtime(net, spark, folder / "checkpoint", control=control, once=True, close=True) as running:
            assert running.wait(timeout=120)
        rows[name] = [lines_in(folder / "fast"), lines_in(folder / "some")]
    assert rows["plain"] == rows["qos"]
    assert rows["qos"][0]


def test_a_run_tells_how_it_stands_and_what_it_decided(tmp_path, spark):
    with ps.Runtime(network(tmp_path), spark, tmp_path / "checkpoint", control=ps.Control()) as running:
        for number in range(3):
            put(tmp_path, number)
            assert running.wait_idle(120)
        report = running.qos()
        running.control._report(0.0)
    assert [each.name for each in report.outputs] == ["some", "fast"]
    assert report.sources[0].offered == report.sources[0].let_in == 600
    assert {each.name for each in report.subnetworks} == {"kept", "fast"}
    assert running.control.failure is None
    catalog = Catalog(tmp_path / "checkpoint" / "catalog.db")
    _, plain = Decisions(catalog).state("report")
    assert QosReport.of(json.loads(json.dumps(plain))).sources[0].shed == 0
    assert all(second.share == 1 for each in catalog.output_seconds(600).values() for second in each)
    catalog.close()
