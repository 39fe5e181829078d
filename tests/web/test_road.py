"""Linear Road in the console: segments from its connection point, a vehicle from what was watched."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import penstock as ps
from penstock.linear_road.network.road import road_network
from penstock.linear_road.network.statistics import PRODUCES
from penstock.model.types import Schema
from penstock.store.catalog.record_types import OutputSecond
from penstock.store.points.point import PointWriter
from web.recorded import network

pytest.importorskip("fastapi")

from penstock.web.look.road import is_road, road_json, vehicle_json


def write_minute(
    checkpoint: Path, entry: int, minute: int, rows: list[tuple[int, int, int, int, int]]
) -> None:
    writer = PointWriter(checkpoint, "figures", Schema.parse(PRODUCES), "XWay", sync=False)
    columns = dict(
        zip(("XWay", "Dir", "Seg", "Lav", "Cars"), map(list, zip(*rows, strict=True)), strict=True)
    )
    stamps = [minute * 60_000_000] * len(rows)
    table = pa.table(
        {
            "Second": pa.array(stamps, pa.timestamp("us", "UTC")),
            **{name: pa.array(values, pa.int32()) for name, values in columns.items()},
            "_ts": pa.array(stamps, pa.int64()),
            "_seq": pa.array(range(len(rows)), pa.int64()),
        }
    )
    writer.commit(entry, writer.stage(entry, [table]), horizon=stamps[0])


def test_only_linear_road_is_shown_as_a_road(tmp_path):
    assert is_road(road_network(None, tmp_path / "feed", tmp_path / "answers"))
    assert not is_road(network())
    assert not is_road(None)
    net = ps.from_yaml(ps.to_yaml(network()))
    assert not is_road(net)


def test_segments_have_speed_cars_and_toll(tmp_path):
    write_minute(tmp_path, 0, 4, [(0, 0, 7, 60, 10)])
    write_minute(tmp_path, 1, 5, [(0, 0, 7, 35, 61), (0, 0, 8, 35, 61), (0, 1, 7, 30, 70), (1, 0, 3, 20, 60)])
    seconds = {"tolls": [OutputSecond("tolls", 1, ((1.0, 8), (6.0, 2)))]}
    road = road_json(tmp_path, 0, 0, [(0, 0, 8)], seconds)
    assert road["expressways"] == [0, 1]
    assert road["minute"] == 5
    assert road["segments"] == [
        {"segment": 7, "speed": 35, "vehicles": 61, "toll": 242, "accident": False},
        {"segment": 8, "speed": 35, "vehicles": 61, "toll": 0, "accident": True},
    ]
    assert road["answers"]["tolls"] == {
        "answers": 10,
        "p50": 1.0,
        "p99": 6.0,
        "limit": 5.0,
        "late": 2,
        "waiting": None,
    }
    assert road_json(tmp_path / "empty", None, 0, (), {})["segments"] == []


def test_a_vehicle_knows_why_its_toll():
    at = datetime(1970, 1, 1, tzinfo=UTC).isoformat()
    seen = [{"Second": at, "VID": 9, "XWay": 0, "Dir": 0, "Lane": 2, "Seg": 7, "Pos": 37_000, "Spd": 30}]
    told = [
        {"Kind": 0, "Time": 301, "VID": 9, "Lav": 35, "Toll": 242, "Seg": 7},
        {"Kind": 2, "Time": 331, "VID": 9, "Lav": 0, "Toll": 242, "Seg": 7},
        {"Kind": 1, "Time": 340, "VID": 9, "Lav": 0, "Toll": 0, "Seg": 11},
    ]
    vehicle = vehicle_json(9, seen, told, [{"segment": 7, "vehicles": 61}])
    assert vehicle["position"]["Seg"] == 7
    assert vehicle["account"] == 242
    assert vehicle["alerts"] == [11]
    assert vehicle["why"].endswith("2 x (61 - 50)^2 = 242")
    assert vehicle_json(9, [], [], [])["position"] is None


def test_the_arrows_that_the_road_watches_exist(tmp_path):
    net = road_network(None, tmp_path / "feed", tmp_path / "answers")
    arrows = {f"{arrow.tail}:{arrow.head}:{arrow.index}" for arrow in net.arrows}
    assert {"accidents:accidents_by_expressway:0", "track:segments:0", "quote:notices:0"} <= arrows
