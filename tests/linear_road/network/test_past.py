"""History as columns: sums of days, journeys through midnight and week, shifted copies."""

from __future__ import annotations

import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

from penstock.linear_road.errors import InputError
from penstock.linear_road.network import past
from penstock.linear_road.network.past import DailyExpenditure, Past, TravelTime, load_history, open_past


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def history(path, tolls=(), segments=(), copies=None):
    path.mkdir()
    (path / "TollHistory.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in tolls))
    (path / "SegmentHistory.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in segments))
    if copies:
        (path / "manifest.json").write_text(json.dumps({"copies": copies}))
    return path


def test_what_was_spent(tmp_path):
    rows = [(7, 1, 0, 100), (7, 1, 0, 5), (7, 69, 0, 70_000), (9, 1, 2, 3)]
    opened = open_past(load_history(history(tmp_path / "h", rows)))
    vid, xway, day = np.array([7, 7, 7, 9, 9, 8]), np.array([0, 0, 1, 2, 0, 0]), np.array([1, 69, 1, 1, 1, 1])
    assert opened.spent(vid, xway, day).tolist() == [105, 70_000, 0, 3, 0, 0]


def test_a_journey_over_midnight_of_the_last_day_of_the_week(tmp_path):
    # segment 1 at minute 1440 of day 7 takes two minutes (lav 30), the next one lies in minute 2 of day 1
    # (means of days 1 and 8)
    rows = [(7, 1440, 0, 0, 1, 30, 60, 0), (1, 2, 0, 0, 2, 20, 51, 0), (8, 2, 0, 0, 2, 41, 70, 0)]
    opened = open_past(load_history(history(tmp_path / "h", (), rows)))
    one = [np.array([value]) for value in (0, 1, 3, 7, 1440)]
    mean, cnt = 30.5, 60.5
    seconds, toll = opened.journeys(*one)
    assert seconds.tolist() == [int(np.floor((2 + 60 / mean) * 60 + 0.5))]
    assert toll.tolist() == [int(np.floor(2 * 10**2 + 2 * (cnt - 50) ** 2 + 0.5))]
    nothing = opened.journeys(*(np.array([value]) for value in (0, 5, 2, 1, 1)))
    assert [part.tolist() for part in nothing] == [[180], [0]]


def test_copies_share_their_history(tmp_path):
    place = load_history(history(tmp_path / "h", [(7, 1, 0, 100)], (), {"count": 3, "vid": 1000, "xway": 2}))
    opened = open_past(place)
    vid, xway = np.array([2007, 7, 3007]), np.array([4, 0, 6])
    assert opened.spent(vid, xway, np.array([1, 1, 1])).tolist() == [100, 100, 0]


def test_it_is_loaded_once_and_again_when_it_changed(tmp_path):
    source = history(tmp_path / "h", [(7, 1, 0, 100)])
    place = load_history(source)
    first = (place / "columns.json").stat().st_mtime_ns
    assert (load_history(source) / "columns.json").stat().st_mtime_ns == first
    (source / "TollHistory.csv").write_text("7,1,0,5000\n")
    assert (load_history(source) / "columns.json").stat().st_mtime_ns != first


def test_two_that_load_one_history_make_its_columns_once(tmp_path, monkeypatch):
    source, made, both_ask = history(tmp_path / "h", [(7, 1, 0, 100)]), [], threading.Barrier(2)

    def asked(path, lock=past.locked):
        both_ask.wait(60)  # both have seen that there are no columns
        return lock(path)

    def loaded(file, out, load=past._load_segments):
        made.append(out)
        load(file, out)

    monkeypatch.setattr(past, "locked", asked)
    monkeypatch.setattr(past, "_load_segments", loaded)
    with ThreadPoolExecutor(2) as pool:
        places = list(pool.map(load_history, [source, source]))
    assert len(made) == 1
    assert places[0] == places[1]
    assert sorted(file.name for file in places[0].iterdir()) == ["columns.json", "tolls-0.npy", "vids-0.npy"]


def test_columns_that_are_gone_are_no_answer(tmp_path):
    """Not "no history": a vehicle that has spent 100 must not hear 0."""
    asked = (np.array([7]), np.array([0]), np.array([1]))
    for manifest in (None, {"count": 1, "vid": 0, "xway": 1}):
        source = history(tmp_path / f"h{manifest is None}", [(7, 1, 0, 100)], (), manifest)
        first, early = load_history(source), open_past(load_history(source))
        late = Past(first, early.copies)
        assert early.spent(*asked).tolist() == [100]
        (source / "TollHistory.csv").write_text("7,1,0,5000\n")
        assert open_past(load_history(source)).spent(*asked).tolist() == [5000]
        assert early.spent(*asked).tolist() == [100]
        if first.exists():
            shutil.rmtree(first)
        with pytest.raises(InputError, match="were removed while they were in use"):
            late.spent(*asked)


def test_a_road_without_history_in_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(load_history(history(tmp_path / "h", (), [(1, 1, 0, 0, 1, 1, 60, 0)])))
    batch = pa.table({"XWay": [0], "Sinit": [1], "Send": [2], "DOW": [1], "TOD": [1]})
    assert TravelTime(None)(batch)["TravelTime"].tolist() == [60]


def test_other_peoples_directories_stay_as_they_are(tmp_path, cache):
    source = history(tmp_path / "h", [(7, 1, 0, 100)])
    assert load_history(source).is_relative_to(cache)
    assert sorted(file.name for file in source.iterdir()) == ["SegmentHistory.csv", "TollHistory.csv"]
    ours = history(tmp_path / "ours", [(7, 1, 0, 100)], (), {"count": 1, "vid": 0, "xway": 1})
    assert load_history(ours).parent == ours


def test_no_history_and_a_wrong_one(tmp_path):
    with pytest.raises(InputError, match="is not a directory"):
        load_history(tmp_path / "none")
    (tmp_path / "h").mkdir()
    (tmp_path / "h" / "TollHistory.csv").write_text("1,2,x,4\n")
    with pytest.raises(InputError, match="cannot be read with the columns VID, Day, XWay, Tolls"):
        load_history(tmp_path / "h")
    batch = pa.table({name: [1] for name in ("VID", "XWay", "Day", "Sinit", "DOW", "TOD")} | {"Send": [4]})
    assert DailyExpenditure(None)(batch)["Bal"].tolist() == [0]
    assert TravelTime(None)(batch)["TravelTime"].tolist() == [180]
