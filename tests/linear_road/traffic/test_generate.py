"""`lr generate`: the promises of the input, on short runs; the full three hours are in test_generate_full."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow.parquet as pq
import pytest

from penstock.linear_road.errors import GenerateError
from penstock.linear_road.rows.fields import COLUMNS, PARQUET_SCHEMA
from penstock.linear_road.rows.inputs import open_input
from penstock.linear_road.traffic import generate as generate_module
from penstock.linear_road.traffic.finished_directions import PARTS
from penstock.linear_road.traffic.generate import ACCIDENT_HEADER, TrafficPlan, generate
from penstock.linear_road.traffic.vehicles import REST


def _rows(directory: Path) -> np.ndarray:
    return np.concatenate([np.loadtxt(file, np.int64, delimiter=",") for file in open_input(directory).files])


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("lr") / "short"
    generate(out, xways=1.5, minutes=24, seed=7)
    return out


@pytest.fixture(scope="module")
def rows(short: Path) -> np.ndarray:
    return _rows(short)


@pytest.fixture(scope="module")
def trips(rows: np.ndarray) -> list[np.ndarray]:
    """The reports of each (vehicle, expressway, direction) cut where 30 s are exceeded."""
    reports = rows[rows[:, 0] == 0]
    reports = reports[np.lexsort((reports[:, 1], reports[:, 2], reports[:, 6], reports[:, 4]))]
    new = np.any(np.diff(reports[:, [4, 6, 2]], axis=0) != 0, axis=1) | (np.diff(reports[:, 1]) > REST - 1)
    return np.split(reports, np.flatnonzero(new) + 1)


def test_manifest_tells_what_is_there(short: Path, rows: np.ndarray) -> None:
    manifest = json.loads((short / "manifest.json").read_text())
    assert manifest["xways"] == 1.5
    assert manifest["seed"] == 7
    assert manifest["version"]
    assert manifest["rows"] == len(rows)
    kinds, counts = np.unique(rows[:, 0], return_counts=True)
    assert manifest["counts"] == {
        str(kind): count for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True)
    }
    assert manifest["vehicles"] == len(np.unique(rows[:, 2]))
    assert not list(short.glob(".*")), "the parts are gone once the manifest is there"


def test_rows_keep_to_the_format(rows: np.ndarray) -> None:
    assert np.all(np.diff(rows[:, 1]) >= 0)
    reports = rows[rows[:, 0] == 0]
    assert np.array_equal(reports[:, 7], reports[:, 8] // 5280)
    assert reports[:, 3].min() >= 0
    assert reports[:, 3].max() <= 100
    assert reports[:, 8].min() >= 0
    assert reports[:, 8].max() <= 527_999
    assert np.all(reports[:, 9:] == -1)
    assert {(x, d) for x, d in np.unique(reports[:, [4, 6]], axis=0).tolist()} == {(0, 0), (0, 1), (1, 0)}


def test_every_vehicle_reports_every_30_s_from_ramp_to_ramp(trips: list[np.ndarray]) -> None:
    last_second = max(int(trip[-1, 1]) for trip in trips)
    for trip in trips:
        assert np.all(np.diff(trip[:, 1]) == 30)
        assert trip[0, 5] == 0
        assert np.all(trip[1:, 5] > 0)
        assert np.all(trip[:-1, 5] < 4)
        assert trip[-1, 5] == 4 or trip[-1, 1] > last_second - 30
        onwards = np.diff(trip[:, 7]) * (1 if trip[0, 6] == 0 else -1)
        assert set(np.unique(onwards)) <= {0, 1}, "a report in each segment, never backwards"


def test_ramps_are_slow(trips: list[np.ndarray]) -> None:
    on_ramps = np.concatenate([trip[(trip[:, 5] == 0) | (trip[:, 5] == 4)] for trip in trips])
    assert on_ramps[:, 3].max() <= 40


def test_phases_are_staggered(trips: list[np.ndarray]) -> None:
    phases = np.bincount([int(trip[0, 1]) % 30 for trip in trips], minlength=30)
    assert phases.min() > 0.8 * phases.mean()


def test_some_vehicles_make_a_second_trip_also_elsewhere(trips: list[np.ndarray]) -> None:
    by_vehicle: dict[int, list[np.ndarray]] = {}
    for trip in sorted(trips, key=lambda trip: int(trip[0, 1])):
        by_vehicle.setdefault(int(trip[0, 2]), []).append(trip)
    again = [made for made in by_vehicle.values() if len(made) > 1]
    assert 0.005 * len(trips) < len(again) < 0.05 * len(trips)
    assert any(made[0][0, 4] != made[1][0, 4] for made in again)
    for made in again:
        assert len(made) == 2
        assert made[0][-1, 5] == 4
        assert made[1][0, 1] >= made[0][-1, 1] + REST


def test_requests_follow_their_report(rows: np.ndarray) -> None:
    at = np.flatnonzero(rows[:, 0] > 0)
    asked, carrier = rows[at], rows[at - 1]
    assert np.array_equal(asked[:, 1:3], carrier[:, 1:3])
    assert len(at) == pytest.approx(0.01 * (len(rows) - len(at)), rel=0.1)
    shares = [np.mean(asked[:, 0] == kind) for kind in (2, 3, 4)]
    assert shares == pytest.approx([0.5, 0.1, 0.4], abs=0.04)
    assert len(np.unique(asked[:, 9])) == len(asked)
    travel, daily = asked[asked[:, 0] == 4], asked[asked[:, 0] == 3]
    assert (travel[:, 10:14].min(axis=0) >= [0, 0, 1, 1]).all()
    assert (travel[:, 10:14].max(axis=0) <= [99, 99, 7, 1440]).all()
    assert daily[:, 14].min() >= 1
    assert daily[:, 14].max() <= 69


def test_accidents_happen_as_told(short: Path, rows: np.ndarray) -> None:
    text = (short / "accidents.csv").read_text()
    assert text.splitlines()[0] == ACCIDENT_HEADER == "xway,dir,lane,pos,vid1,vid2,stopped,detected,cleared"
    accidents = [{k: int(v) for k, v in row.items()} for row in csv.DictReader(text.splitlines())]
    assert [a["xway"] for a in accidents] == [0, 1]
    for a in accidents:
        assert a["detected"] == a["stopped"] + 90
        assert 600 <= a["cleared"] - a["detected"] <= 1200
        for vid in (a["vid1"], a["vid2"]):
            stops = rows[
                (rows[:, 0] == 0) & (rows[:, 2] == vid) & (rows[:, 8] == a["pos"]) & (rows[:, 5] == a["lane"])
            ]
            assert stops[0, 1] <= a["stopped"]
            assert np.all(stops[:, 3] == 0)
            assert a["cleared"] - 30 <= stops[-1, 1] <= a["cleared"] + 30


def test_same_bytes_for_any_number_of_processes(short: Path, tmp_path: Path) -> None:
    again = generate(tmp_path / "again", xways=1.5, minutes=24, seed=7, jobs=2)
    for name in [*again["files"], "accidents.csv", "manifest.json"]:
        assert (tmp_path / "again" / name).read_bytes() == (short / name).read_bytes()


def test_another_seed_gives_other_rows(short: Path, tmp_path: Path) -> None:
    other = generate(tmp_path, xways=1.5, minutes=24, seed=8)
    assert other["hash"] != json.loads((short / "manifest.json").read_text())["hash"]


def test_parquet_holds_the_same_rows(tmp_path: Path) -> None:
    text = generate(tmp_path / "csv", xways=0.5, minutes=2)
    columns = generate(tmp_path / "parquet", xways=0.5, minutes=2, form="parquet")
    table = pq.read_table(tmp_path / "parquet" / columns["files"][0])
    assert table.schema.equals(PARQUET_SCHEMA)
    stacked = np.stack([table[name].to_numpy() for name in COLUMNS], axis=1)
    assert np.array_equal(stacked, _rows(tmp_path / "csv"))
    assert text["counts"] == columns["counts"]


def test_several_files_are_in_order_of_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate_module, "cut", lambda rows: cut_small(rows, 2000))
    whole = generate(tmp_path / "many", xways=1, minutes=5)
    assert len(whole["files"]) > 3
    assert whole["files"] == sorted(whole["files"])
    generate_once = tmp_path / "one"
    monkeypatch.undo()
    generate(generate_once, xways=1, minutes=5)
    assert np.array_equal(_rows(tmp_path / "many"), _rows(generate_once))


def cut_small(rows: np.ndarray, most: int) -> tuple[generate_module.Slice, ...]:
    from penstock.linear_road.traffic.merge import cut

    return cut(rows, most)


def test_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = generate(tmp_path / "whole", xways=1, minutes=3)
    simulated = []
    real = generate_module.make_part

    def stops_at_the_second(out: Path, direction: object, *rest: object) -> None:
        if simulated:
            raise KeyboardInterrupt
        simulated.append(direction)
        real(out, direction, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(generate_module, "make_part", stops_at_the_second)
    out = tmp_path / "broken"
    with pytest.raises(KeyboardInterrupt):
        generate(out, xways=1, minutes=3)
    assert not (out / "manifest.json").exists()

    resumed = []
    monkeypatch.setattr(
        generate_module, "make_part", lambda out, d, *rest: (resumed.append(d), real(out, d, *rest))
    )
    assert generate(out, xways=1, minutes=3)["hash"] == whole["hash"]
    assert len(resumed) == 1
    assert resumed != simulated


def test_a_full_disk_leaves_no_file_that_looks_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("penstock.linear_road.traffic.merge.pa_csv.write_csv", full)
    with pytest.raises(OSError, match="No space left"):
        generate(tmp_path, xways=0.5, minutes=1)
    assert not list(tmp_path.glob("rows-*"))
    assert not (tmp_path / "manifest.json").exists()


def test_a_finished_directory_is_recognised_and_another_plan_refused(tmp_path: Path) -> None:
    first = generate(tmp_path, xways=0.5, minutes=1)
    before = (tmp_path / first["files"][0]).stat().st_mtime_ns
    assert generate(tmp_path, xways=0.5, minutes=1) == first
    assert (tmp_path / first["files"][0]).stat().st_mtime_ns == before
    with pytest.raises(GenerateError, match="already holds another"):
        generate(tmp_path, xways=0.5, minutes=2)
    (tmp_path / first["files"][0]).unlink()
    with pytest.raises(GenerateError, match="damaged"):
        generate(tmp_path, xways=0.5, minutes=1)


def test_a_directory_begun_with_another_plan_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generate_module, "_name_all", _interrupt)
    with pytest.raises(KeyboardInterrupt):
        generate(tmp_path, xways=0.5, minutes=1)
    with pytest.raises(GenerateError, match="beginning of another run"):
        generate(tmp_path, xways=0.5, minutes=2)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_row_files_of_unknown_origin_are_not_taken_for_ours(tmp_path: Path) -> None:
    (tmp_path / "rows-00000-00059.csv").write_text("0,0\n")
    with pytest.raises(GenerateError, match="unknown origin"):
        generate(tmp_path, xways=0.5, minutes=1)


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(GenerateError, match="is a file"):
        generate(tmp_path / "file", xways=0.5, minutes=1)


@pytest.mark.parametrize("xways", [0, -1, 0.3, float("nan"), float("inf"), 20_000])
def test_bad_number_of_expressways(xways: float) -> None:
    with pytest.raises(GenerateError, match=r"multiple of 0\.5"):
        TrafficPlan(xways)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"minutes": 0}, "1 to 180"),
        ({"minutes": 181}, "1 to 180"),
        ({"seed": -1}, "seed"),
        ({"format": "xml"}, "csv or parquet"),
    ],
)
def test_bad_options(options: dict, message: str) -> None:
    with pytest.raises(GenerateError, match=message):
        TrafficPlan(1, **options)


def test_bad_jobs(tmp_path: Path) -> None:
    with pytest.raises(GenerateError, match="jobs is 0"):
        generate(tmp_path, xways=1, jobs=0)


def test_left_over_temporary_files_are_removed(tmp_path: Path) -> None:
    generate(tmp_path / "a", xways=0.5, minutes=1)
    shutil.rmtree(tmp_path / "a")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".rows-00000-00059.csv.1.tmp").write_text("0,0,1")
    generate(tmp_path / "a", xways=0.5, minutes=1)
    assert not list((tmp_path / "a").glob(".*"))


@pytest.mark.slow
def test_a_killed_run_leaves_no_worker_behind(tmp_path: Path) -> None:
    """Workers that outlive their parent would go on computing for nobody."""
    words = [sys.executable, "-m", "penstock.cli.lr.commands", "generate", "--xways", "50", "--minutes", "60"]
    run = subprocess.Popen([*words, "--jobs", "2", "--out", str(tmp_path / "in")], stderr=subprocess.DEVNULL)
    try:
        # With the first of a hundred directions done, they are in the middle of their work.
        while run.poll() is None and not list((tmp_path / "in" / PARTS).glob("x*.npz")):
            time.sleep(0.05)
        children = psutil.Process(run.pid).children()
        workers = [child for child in children if any("spawn_main" in word for word in child.cmdline())]
    finally:
        run.kill()
        run.wait()
    _, alive = psutil.wait_procs(workers, timeout=120)
    assert len(workers) == 2
    assert not alive
