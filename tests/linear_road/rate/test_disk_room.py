"""A trial that the disk has no room for is refused: a full disk must not look like a failed L."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from penstock.linear_road.errors import RateError
from penstock.linear_road.rate.disk_room import bytes_needed, bytes_under, refuse_without_room
from penstock.linear_road.rate.plan import Window
from penstock.linear_road.run.rating_record import Trial

RATES = np.array([1, 1, 2, 2, 4, 4], np.int64)


def trial(expressways: float, begin: int, end: int, answers: int | None, state: int = 0) -> Trial:
    told: dict[str, Any] = {"L": expressways, "seconds": [begin, end]}
    left = {} if answers is None else {"disk_bytes": answers + state, "answer_bytes": answers}
    return cast("Trial", told | left)


def test_answers_grow_with_the_tuples_and_the_greediest_trial_counts() -> None:
    done = [trial(10, 4, 6, 800), trial(20, 4, 6, 1_000), trial(40, 4, 6, None)]
    assert bytes_needed(done, RATES, Window(4, 4, 6), 20) == 1_600
    assert bytes_needed(done, RATES, Window(0, 0, 6), 10) == 1_400
    assert bytes_needed([], RATES, Window(0, 0, 6), 10) == 0
    assert bytes_needed([trial(40, 4, 6, None)], RATES, Window(0, 0, 6), 10) == 0


def test_state_grows_with_the_expressways_and_not_with_the_minutes() -> None:
    done = [trial(10, 4, 6, 800, state=300)]
    assert bytes_needed(done, RATES, Window(4, 4, 6), 10) == 800 + 300
    assert bytes_needed(done, RATES, Window(0, 0, 6), 10) == 1_400 + 300
    assert bytes_needed(done, RATES, Window(4, 4, 6), 20) == 1_600 + 600


def test_the_refusal_says_how_much_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=70e9))
    refuse_without_room(tmp_path, 69e9, 2400)
    with pytest.raises(RateError, match=r"L = 2800 need about 76 GB in .*, and 70 GB are free"):
        refuse_without_room(tmp_path, 76e9, 2800)


def test_all_that_a_run_has_left_counts(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "answers").write_bytes(b"12345")
    (tmp_path / "run.json").write_bytes(b"123")
    assert bytes_under(tmp_path) == 8
    assert bytes_under(tmp_path / "run.json") == 3
