"""The history: the right rows for an input, tolls that follow from the traffic, the same bytes every time."""

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from penstock.cli.lr.history import history as history_command
from penstock.linear_road.errors import InputError
from penstock.linear_road.rows.fields import PARQUET_SCHEMA
from penstock.linear_road.rows.inputs import open_input
from penstock.linear_road.traffic import history as module
from penstock.linear_road.traffic.history import HistoryPlan, history, read_fleet


def report(t, vid, xway, direction, seg):
    return [0, t, vid, 50, xway, 2, direction, seg, seg * 5280 + 7, -1, -1, -1, -1, -1, -1]


ROWS = sorted(
    [report(30 * k, 5, 0, 0, 20 + k) for k in range(4)]
    + [report(30 * k + 1, 6, 0, 1, 70 - 3 * k) for k in range(4)]
    + [report(30 * k + 2, 7, 1, 0, 40 + k) for k in range(4)]
    + [report(30 * k + 3, 5, 1, 0, 10) for k in range(2)],  # vehicle 5 on another expressway
    key=lambda row: row[1],
)


@pytest.fixture
def source(tmp_path):
    file = tmp_path / "rows.dat"
    file.write_text("".join(",".join(map(str, row)) + "\n" for row in ROWS))
    return file


def table(folder, name):
    found = pq.read_table(folder / f"{name}.parquet")
    return {key: found[key].to_numpy() for key in found.column_names}


def test_rows_for_the_vehicles_and_expressways_of_the_input(source, tmp_path):
    manifest = history(HistoryPlan(source, tmp_path / "h", days=2), workers=1)
    tolls, segments = table(tmp_path / "h", "TollHistory"), table(tmp_path / "h", "SegmentHistory")
    assert list(tolls) == ["VID", "Day", "XWay", "Tolls"]
    assert list(segments) == ["Day", "Min", "XWay", "Dir", "Seg", "Lav", "Cnt", "Toll"]
    pairs = Counter(zip(tolls["VID"].tolist(), tolls["XWay"].tolist(), strict=True))
    assert pairs == {(5, 0): 2, (6, 0): 2, (5, 1): 2, (7, 1): 2}
    # Expressway 1 is half an expressway: direction 0 only.
    assert np.bincount(segments["XWay"] * 2 + segments["Dir"]).tolist() == [2 * 144_000] * 3
    assert manifest["expressways"] == 1.5
    assert manifest["rows"] == {"TollHistory.parquet": 8, "SegmentHistory.parquet": 3 * 2 * 144_000}
    for column, low, high in (("Day", 1, 2), ("Min", 1, 1440), ("Seg", 0, 99)):
        assert (segments[column].min(), segments[column].max()) == (low, high)
    keys = np.ravel_multi_index(
        [segments[name] for name in ("Day", "Min", "XWay", "Dir", "Seg")], (3, 1441, 2, 2, 100)
    )
    assert len(np.unique(keys)) == len(keys), "a minute of a segment is there twice"


def test_the_toll_column_follows_the_toll_rule(source, tmp_path):
    history(HistoryPlan(source, tmp_path / "h", days=3), workers=1)
    found = table(tmp_path / "h", "SegmentHistory")
    due = (found["Lav"] < 40) & (found["Cnt"] > 50)
    assert np.array_equal(found["Toll"], np.where(due, 2 * (found["Cnt"] - 50) ** 2, 0))
    assert 0.02 < due.mean() < 0.2


@pytest.mark.slow  # two fresh processes
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_same_seed_same_bytes_on_any_number_of_processes(source, tmp_path, form):
    one = history(HistoryPlan(source, tmp_path / "one", days=2, format=form), workers=1)
    two = history(HistoryPlan(source, tmp_path / "two", days=2, format=form), workers=2)
    other = history(HistoryPlan(source, tmp_path / "other", days=2, format=form, seed=2), workers=1)
    assert one["hash"] == two["hash"]
    assert one["hash"][f"SegmentHistory.{form}"] != other["hash"][f"SegmentHistory.{form}"]
    for name in one["files"]:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_same_seed_same_bytes(source, tmp_path, form):
    one, two, other = (
        history(HistoryPlan(source, tmp_path / f"{i}", days=1, format=form, seed=seed), workers=1)
        for i, seed in enumerate((1, 1, 2))
    )
    assert one["hash"] == two["hash"]
    assert one["hash"] != other["hash"]


def test_more_days_do_not_change_the_days_before(source, tmp_path):
    history(HistoryPlan(source, tmp_path / "two", days=2), workers=1)
    history(HistoryPlan(source, tmp_path / "three", days=3), workers=1)
    two, three = table(tmp_path / "two", "SegmentHistory"), table(tmp_path / "three", "SegmentHistory")
    assert np.array_equal(two["Cnt"], three["Cnt"][three["Day"] <= 2])


def test_csv_has_no_header_and_the_same_numbers(source, tmp_path):
    history(HistoryPlan(source, tmp_path / "c", days=1, format="csv"), workers=1)
    history(HistoryPlan(source, tmp_path / "p", days=1), workers=1)
    for name in ("TollHistory", "SegmentHistory"):
        text = np.loadtxt(tmp_path / "c" / f"{name}.csv", dtype=np.int64, delimiter=",")
        assert np.array_equal(text.T, np.stack(list(table(tmp_path / "p", name).values())))


def test_parquet_input_gives_the_same_history(source, tmp_path):
    columns = [pa.array([row[j] for row in ROWS], pa.int32()) for j in range(15)]
    pq.write_table(pa.Table.from_arrays(columns, schema=PARQUET_SCHEMA), tmp_path / "rows.parquet")
    one = history(HistoryPlan(source, tmp_path / "a", days=1), workers=1)
    two = history(HistoryPlan(tmp_path / "rows.parquet", tmp_path / "b", days=1), workers=1)
    assert one["hash"] == two["hash"]


def test_a_stopped_history_keeps_its_parts_and_ends_the_same(source, tmp_path, monkeypatch):
    whole = history(HistoryPlan(source, tmp_path / "whole", days=2), workers=1)
    calls = []
    real = module.write_piece

    def dies_on_the_second(piece, progress=module.silent):
        calls.append(piece.xway)
        if len(calls) == 2:
            raise KeyboardInterrupt
        real(piece, progress)

    monkeypatch.setattr(module, "write_piece", dies_on_the_second)
    with pytest.raises(KeyboardInterrupt):
        history(HistoryPlan(source, tmp_path / "h", days=2), workers=1)
    assert [file.name for file in (tmp_path / "h").iterdir()] == [".parts"], "nothing looks whole"
    again = history(HistoryPlan(source, tmp_path / "h", days=2), workers=1)
    assert calls == [0, 1, 1], "the finished expressway was made again"
    assert again["hash"] == whole["hash"]
    assert not (tmp_path / "h" / ".parts").exists()


def test_parts_of_other_settings_are_not_used(source, tmp_path, monkeypatch):
    def dies(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_join", dies)
    with pytest.raises(KeyboardInterrupt):
        history(HistoryPlan(source, tmp_path / "h", days=1, seed=9), workers=1)
    monkeypatch.undo()
    fresh = history(HistoryPlan(source, tmp_path / "fresh", days=1), workers=1)
    assert history(HistoryPlan(source, tmp_path / "h", days=1), workers=1)["hash"] == fresh["hash"]


def test_done_is_done_and_another_history_is_not_overwritten(source, tmp_path):
    first = history(HistoryPlan(source, tmp_path / "h", days=1), workers=1)
    before = (tmp_path / "h" / "TollHistory.parquet").stat().st_mtime_ns
    assert history(HistoryPlan(source, tmp_path / "h", days=1), workers=1) == first
    assert (tmp_path / "h" / "TollHistory.parquet").stat().st_mtime_ns == before
    with pytest.raises(InputError, match="already holds something else"):
        history(HistoryPlan(source, tmp_path / "h", days=2), workers=1)


def test_a_full_disk_leaves_no_file_that_looks_whole(source, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.pq.ParquetWriter, "write_table", full)
    with pytest.raises(OSError, match="No space left"):
        history(HistoryPlan(source, tmp_path / "h", days=1), workers=1)
    assert [file.name for file in (tmp_path / "h").rglob("*") if file.is_file()] == ["config.json"]


def test_copies_share_the_history_by_reference(source, tmp_path):
    alone = history(HistoryPlan(source, tmp_path / "a", days=1), workers=1)
    shared = history(HistoryPlan(source, tmp_path / "b", days=1, copies=20), workers=1)
    assert alone["copies"] is None
    assert shared["hash"] == alone["hash"]
    assert shared["copies"]["count"] == 20
    assert (shared["copies"]["vid"], shared["copies"]["xway"]) == (8, 2)
    assert "by reference" in shared["copies"]["shared"]
    assert json.loads((tmp_path / "b" / "manifest.json").read_text()) == shared


def test_rows_that_break_the_format_are_skipped_and_counted(source):
    source.write_text("junk\n" + source.read_text() + "0,1,2\n")
    fleet = read_fleet(open_input(source))
    assert fleet.skipped == 2
    assert fleet.vehicles[0].vid.tolist() == [5, 6]
    assert fleet.vehicles[0].entry.tolist() == [20, 70]
    assert fleet.vehicles[0].leave.tolist() == [23, 61]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"days": 0}, r"--days 0 is out of range\n  expected: 1\.\.69"),
        ({"days": 70}, r"--days 70 is out of range"),
        ({"format": "xml"}, "--format xml is not known"),
        ({"seed": -1}, "--seed -1 is below 0"),
        ({"copies": 0}, "--copies 0 is too few"),
    ],
)
def test_bad_options_are_refused(tmp_path, options, sentence):
    with pytest.raises(InputError, match=sentence):
        HistoryPlan(tmp_path, tmp_path, **options)


def test_the_command_says_what_it_wrote_and_refuses_in_one_message(source, tmp_path):
    app = typer.Typer()
    app.command()(history_command)
    run = CliRunner().invoke
    done = run(app, ["--input", str(source), "--out", str(tmp_path / "h"), "--days", "1", "--workers", "1"])
    assert done.exit_code == 0
    assert "TollHistory.parquet: 4 rows" in " ".join(done.stderr.split())
    assert "MB in all" in " ".join(done.stderr.split())
    for options, sentence in (
        (["--days", "99"], "--days 99"),
        (["--input", "nowhere"], "nowhere does not exist"),
        (["--workers", "0"], "--workers 0 is too few\n  expected: 1 or more"),
        (["--out", str(source)], "is a file\n  expected: a directory to write to"),
    ):
        done = run(app, ["--input", str(source), "--out", str(tmp_path / "x"), *options])
        assert done.exit_code == 2
        assert sentence in done.stderr
        assert all(line.startswith("  ") for line in done.stderr.splitlines()[1:])


def test_an_input_without_reports_is_refused(tmp_path):
    (tmp_path / "rows.dat").write_text("2,0,1,-1,-1,-1,-1,-1,-1,0,-1,-1,-1,-1,-1\n")
    with pytest.raises(InputError, match="no position report that keeps to the format"):
        history(HistoryPlan(tmp_path / "rows.dat", tmp_path / "h"), workers=1)
