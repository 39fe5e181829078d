"""The network without Spark: the same answers as the golden file, the original validator and the oracle,
however it is cut or killed.
"""

from __future__ import annotations

import json
import math
from collections import Counter

import pytest

from linear_road.golden_input import GOLDEN, MITSIM, Case, balance, lines, needs_data, report
from linear_road.road_run import answers, delivered, dry, odd_rows, refused
from penstock.control.valve_places import places
from penstock.engine.spark.tasks import stage
from penstock.engine.spark.trains import train
from penstock.linear_road.network import road_network
from penstock.linear_road.network.road import DELAYS
from penstock.model.boxes import ColumnLatch


@needs_data
@pytest.mark.parametrize(
    ("groups", "length", "delivery"), [(1, 100_000, "packed"), (2, 700, "text"), (2, 900, "packed")]
)
def test_golden_answers_and_refused_rows(tmp_path, groups, length, delivery):
    delivered(GOLDEN / "rows.dat", tmp_path, groups, delivery)
    dry(tmp_path, GOLDEN, length=length).run_all()
    assert answers(tmp_path) == sorted(lines(GOLDEN / "expected.csv"))
    known = [line.split(",", 2) for line in lines(GOLDEN / "refused.csv")[1:]]
    assert refused(tmp_path) == sorted((why, raw.strip('"')) for _, why, raw in known)


@needs_data
def test_the_official_data(tmp_path):
    delivered(MITSIM / "reports_t0-323.dat", tmp_path)
    dry(tmp_path, length=3000).run_all()
    found = Counter(answers(tmp_path))
    expected: Counter[str] = Counter()
    for line in lines(MITSIM / "expected_t0-323.csv"):
        _, vid, time, lav, toll, accident, *_ = line.split(",")
        expected[f"0,{vid},{time},{time},{lav},{toll}"] += 1
        if accident != "-1":
            expected[f"1,{time},{time},{vid},{accident}"] += 1
    assert {row: n for row, n in found.items() if row[0] in "01"} == dict(expected)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_vehicles_that_keep_no_rhythm(tmp_path, seed):
    rows = odd_rows(seed)
    expected = Case(tmp_path).expected(rows)
    assert {row[0] for row in expected} == set("01234")
    for length in (1_000_000, 1 + 97 * seed):
        out = tmp_path / str(length)
        delivered(tmp_path / "rows.dat", out)
        dry(out, length=length).run_all()
        assert answers(out) == sorted(expected)


def test_a_vehicle_in_two_rhythms_pays_what_it_was_quoted_in_each(tmp_path):
    """What the oracle says of these rows is fixed in tests/linear_road/validate/test_oracle.py."""
    crowd = [report(n, 100 + n, 100, spd=20) for n in range(54)]
    rows = [report(60, 1, 200), report(75, 1, 250), report(90, 1, 5300), report(105, 1, 5400)]
    expected = Case(tmp_path).expected([*crowd, *rows, balance(150, 1, 7)])
    delivered(tmp_path / "rows.dat", tmp_path)
    dry(tmp_path, length=1).run_all()
    assert "2,150,150,150,7,64" in answers(tmp_path)
    assert answers(tmp_path) == sorted(expected)


class Crash(BaseException):
    """Stands for kill -9: nothing catches it."""


@pytest.mark.parametrize("seed", [4, 5])
def test_killed_anywhere_and_started_again(tmp_path, seed, monkeypatch):
    """The process dies at every crash point in turn; whoever comes next has nothing but the files."""
    expected = Case(tmp_path).expected(odd_rows(seed, seconds=200))
    delivered(tmp_path / "rows.dat", tmp_path)
    left = [3]

    def crash_point(name):
        left[0] -= 1
        if left[0] == 0:
            raise Crash(name)

    monkeypatch.setattr(stage, "crash_point", crash_point)
    monkeypatch.setattr(train, "crash_point", crash_point)
    deaths = 0
    while True:
        run = dry(tmp_path, length=150)
        try:
            run.run_all()
            break
        except Crash:
            deaths += 1
            left[0] = 2 + (deaths * 7) % 23
    assert deaths > 5
    assert answers(tmp_path) == sorted(expected)


def test_an_expressway_that_appears_late_and_half_an_expressway(tmp_path):
    early = [report(t, 1, 100 + t * 50) for t in range(0, 300, 30)]
    late = [report(t, 2, 9000 + t * 50, xway=7, direction=1) for t in range(130, 300, 30)]
    expected = Case(tmp_path).expected(sorted(early + late, key=lambda row: int(row.split(",")[1])))
    delivered(tmp_path / "rows.dat", tmp_path, groups=2)
    dry(tmp_path, length=1).run_all()
    assert answers(tmp_path) == sorted(expected)


def test_state_holds_only_the_last_minute(tmp_path):
    rows = [report(t, t % 30, 100 + t * 50) for t in range(75)]
    (tmp_path / "rows.dat").write_text("\n".join(rows) + "\n")
    delivered(tmp_path / "rows.dat", tmp_path)
    run = dry(tmp_path, length=1)
    run.run_all()
    folder = run.query.trains.directory / "state" / "rows" / "0"
    assert 60 <= len(list(folder.glob("*.parts"))) <= 80
    newest = max(folder.glob("*.parts"))
    size = int.from_bytes(newest.read_bytes()[8:16], "little")
    parts = json.loads(newest.read_bytes()[24 : 24 + size])["parts"]
    assert len([name for name in parts if name.startswith("track:own/s/")]) == 60


def test_the_picture(tmp_path):
    net = road_network(None, tmp_path / "in", tmp_path / "answers")
    assert {group[-1] for group in net.groups} == {
        "vehicle tracking",
        "segment statistics",
        "accidents",
        "tolls",
        "accounts",
        "daily expenditure",
        "travel time",
    }
    delays = {name: out.qos.delay[1][0] for name, out in net.outputs.items()}
    assert delays == DELAYS == {"tolls": 5, "alerts": 5, "balances": 5, "daily": 10, "travel": 30}
    by_group = Counter(node.about.group for node in net.nodes.values() if isinstance(node, ColumnLatch))
    assert set(by_group.values()) == {1}
    assert "segment statistics" in net.to_mermaid()
    assert net.explain().startswith("network 'linear_road'")


@pytest.mark.parametrize(("speed", "seconds"), [(5.0, 1.0), (math.inf, 5.0)])
def test_delays_are_in_real_seconds(tmp_path, speed, seconds):
    net = road_network(None, tmp_path / "in", tmp_path / "answers", speed=speed)
    assert net.outputs["tolls"].qos.threshold == seconds


def test_under_control_whole_groups_of_expressways_go(tmp_path):
    net = road_network(None, tmp_path / "in", tmp_path / "answers", speed=5)
    assert net.outputs["tolls"].qos.threshold == 1
    may = [place for place in places(net) if place.grain is not None]
    assert [(place.at, place.in_groups) for place in may] == [("rows", True)]
    assert may[0].outputs == set(DELAYS)
