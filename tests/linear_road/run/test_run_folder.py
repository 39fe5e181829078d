"""The rules by which a run is gone on with, and by which two runs never mix."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

import pytest

from penstock.linear_road.errors import InputError
from penstock.linear_road.run.plan import RunPlan
from penstock.linear_road.run.run_folder import open_run_folder
from penstock.linear_road.run.runner import run
from penstock.store.ownership import Timing


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    file = tmp_path / "rows.dat"
    file.write_text("0,0,1,0,0,1,0,0,0,-1,-1,-1,-1,-1,-1\n")
    return file


def test_the_checkpoint_lies_under_out_unless_it_is_named(tmp_path: Path, rows: Path) -> None:
    place = open_run_folder(RunPlan(rows, tmp_path / "out"))
    assert place.checkpoint.parent == tmp_path / "out"
    other = open_run_folder(RunPlan(rows, tmp_path / "out2", checkpoint=tmp_path / "mine"))
    assert other.checkpoint == tmp_path / "mine"
    assert not place.resumed


def test_the_same_call_goes_on(tmp_path: Path, rows: Path) -> None:
    plan = RunPlan(rows, tmp_path / "out", speed=math.inf)
    open_run_folder(plan)
    assert open_run_folder(plan).resumed


def test_an_out_without_its_checkpoint_is_refused(tmp_path: Path, rows: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "answers.csv").write_text("")
    with pytest.raises(InputError, match=r"already holds files, but its checkpoint is not at"):
        open_run_folder(RunPlan(rows, out))
    with pytest.raises(InputError, match="its checkpoint is not at"):
        open_run_folder(RunPlan(rows, out, checkpoint=tmp_path / "elsewhere"))
    assert not (tmp_path / "elsewhere").exists(), "nothing is touched"


def test_another_run_with_the_same_checkpoint_is_refused(tmp_path: Path, rows: Path) -> None:
    open_run_folder(RunPlan(rows, tmp_path / "out", speed=2))
    with pytest.raises(InputError, match=r"belongs to a run with --speed 2, not 1.0\n  hint:     give"):
        open_run_folder(RunPlan(rows, tmp_path / "out"))
    with pytest.raises(InputError, match="--until left out, not 60"):
        open_run_folder(RunPlan(rows, tmp_path / "out", speed=2, end=60))


def test_an_empty_directory_may_be_there_already(tmp_path: Path, rows: Path) -> None:
    (tmp_path / "out").mkdir()
    assert not open_run_folder(RunPlan(rows, tmp_path / "out")).resumed


def test_what_cannot_be_a_run_is_told_at_once(tmp_path: Path, rows: Path) -> None:
    with pytest.raises(InputError, match=r"input .*absent does not exist"):
        RunPlan(tmp_path / "absent", tmp_path / "out")
    with pytest.raises(InputError, match=r"--speed 0 is not above 0"):
        RunPlan(rows, tmp_path / "out", speed=0)
    with pytest.raises(InputError, match=r"--history .* is no directory"):
        RunPlan(rows, tmp_path / "out", history=tmp_path / "absent")
    with pytest.raises(InputError, match=r"--out .*rows.dat is a file"):
        open_run_folder(RunPlan(rows, rows))


def test_kills_and_clean_stops_are_told_apart(tmp_path: Path, rows: Path) -> None:
    place = open_run_folder(RunPlan(rows, tmp_path / "out"))
    for event in ("started", "stopped", "started", "started", "finished"):
        place.note(event)
    assert place.attempts() == {"starts": 3, "clean_stops": 1, "kills": 1}
    assert place.finished


def test_a_place_whose_run_cannot_begin_is_left_as_it_was(tmp_path: Path, rows: Path) -> None:
    (tmp_path / "there").mkdir()
    open_run_folder(RunPlan(rows, tmp_path / "out", checkpoint=tmp_path / "there")).discard()
    assert not (tmp_path / "out").exists()
    assert list((tmp_path / "there").iterdir()) == []
    with pytest.raises(InputError, match="no row that keeps to the format"):
        run(RunPlan(rubbish(tmp_path), tmp_path / "out"))
    assert not (tmp_path / "out").exists()
    assert not open_run_folder(RunPlan(rows, tmp_path / "out")).resumed, "another input is welcome"


def test_signs_of_life_do_not_disturb_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.store.ownership.Timing", partial(Timing, beat=0.0))
    for name in map(str, range(10)):
        with pytest.raises(InputError, match="no row that keeps to the format"):
            run(RunPlan(rubbish(tmp_path), tmp_path / name))
        assert not (tmp_path / name).exists()


def rubbish(tmp_path: Path) -> Path:
    (tmp_path / "rubbish.dat").write_text("rubbish\n")
    return tmp_path / "rubbish.dat"


def test_a_checkpoint_whose_out_is_gone(tmp_path: Path, rows: Path) -> None:
    plan = RunPlan(rows, tmp_path / "out", checkpoint=tmp_path / "kept")
    open_run_folder(plan)
    (tmp_path / "out").rmdir()
    place = open_run_folder(plan)
    assert place.resumed
    assert (tmp_path / "out").is_dir()
    place.note("finished")
    with pytest.raises(InputError, match=r"is finished, but its .*run.json is gone\n  hint:     remove the"):
        run(plan)
