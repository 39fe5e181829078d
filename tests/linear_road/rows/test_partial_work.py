"""Half-done work: kept on a kill, removed at the end, owned by one process at a time."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from penstock.linear_road.errors import InputError
from penstock.linear_road.rows.partial_work import KEPT_DAYS, _sweep, key_of, work_directory

OLD = key_of([])


def test_it_is_removed_at_the_end_and_after_an_error(tmp_path):
    with work_directory("validate", "k", tmp_path) as path:
        (path / "tables").write_text("half")
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="no more"), work_directory("validate", "k", tmp_path):
        raise ValueError("no more")
    assert not list(tmp_path.iterdir())


def begin_and_stop(where):
    with work_directory("validate", "k", where) as path:
        (path / "tables").write_text("half")
        raise KeyboardInterrupt


def test_ctrl_c_leaves_it_for_the_next_run(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        begin_and_stop(tmp_path)
    with work_directory("validate", "k", tmp_path) as path:
        assert (path / "tables").read_text() == "half"
    with work_directory("validate", "other", tmp_path) as path:
        assert not (path / "tables").exists()


def test_a_second_owner_gets_a_place_of_its_own(tmp_path):
    with (
        work_directory("validate", "k", tmp_path) as first,
        work_directory("validate", "k", tmp_path) as second,
    ):
        assert first != second
    assert not list(tmp_path.iterdir())


def abandoned(lock):
    long_ago = time.time() - (KEPT_DAYS + 1) * 86_400
    os.utime(lock, (long_ago, long_ago))


def test_the_place_of_a_second_owner_that_was_killed_is_swept_away(tmp_path):
    with work_directory("describe", OLD, tmp_path):
        with pytest.raises(KeyboardInterrupt), work_directory("describe", OLD, tmp_path) as second:
            raise KeyboardInterrupt
        assert second.is_dir()
        (lock,) = [file for file in tmp_path.glob("*.lock") if file.stem == second.name]
        abandoned(lock)
        with work_directory("describe", "new", tmp_path):
            assert not second.exists()


def test_others_may_remove_a_lock_at_any_moment(tmp_path, monkeypatch):
    for name in (f"describe-{OLD}.lock", f"describe-{OLD}-1.lock"):
        (tmp_path / name).touch()
        abandoned(tmp_path / name)
    look = Path.stat

    def gone(path, **options):
        if path.suffix == ".lock":
            path.unlink(missing_ok=True)
        return look(path, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "stat", gone)
        _sweep(tmp_path)
    with work_directory("describe", OLD, tmp_path) as path:
        assert path.name == f"describe-{OLD}"


def test_locks_of_others_are_left_alone(tmp_path):
    """--work may name any directory."""
    for name in ("Cargo", "validate-rules"):
        (tmp_path / name).mkdir()
        (tmp_path / f"{name}.lock").write_text("theirs")
        abandoned(tmp_path / f"{name}.lock")
    with work_directory("validate", "k", tmp_path):
        pass
    assert len(list(tmp_path.iterdir())) == 4


def test_what_nobody_came_back_for_is_swept_away(tmp_path):
    with pytest.raises(KeyboardInterrupt), work_directory("describe", OLD, tmp_path):
        raise KeyboardInterrupt
    abandoned(tmp_path / f"describe-{OLD}.lock")
    with work_directory("describe", "new", tmp_path):
        assert not (tmp_path / f"describe-{OLD}").exists()


def test_a_place_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(InputError, match=r"the work directory .*file/x cannot be made: Not a directory"),
        work_directory("validate", "k", tmp_path / "file" / "x"),
    ):
        pass
