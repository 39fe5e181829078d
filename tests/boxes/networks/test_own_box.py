"""A box of one's own, as docs/contributing.md shows it: a line in each table, and it runs on both engines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.engine.arrow import logic as arrow
from penstock.engine.local import box_logics as local
from penstock.model.errors import NetworkError
from penstock.testing import example_box, values
from penstock.testing.example_box import clip

PAGE = Path(__file__).parents[3] / "docs" / "contributing.md"
TRAIN = [(1, "a", 99), (2, "a", -1), (3, "b", None), (4, "b", 5)]


def test_it_runs(run):
    result = run(lambda cars: clip(cars, "v", 0, 10), TRAIN[:2], TRAIN[2:])
    assert values(result.outputs["out"], "k", "v") == [("a", 0), ("a", 10), ("b", None), ("b", 5)]


def test_in_front_of_a_window_and_behind_one(run):
    def build(cars):
        summed = clip(cars, "v", 0, 10).group_by("k").tumble("10 seconds", total="sum(v)")
        return clip(summed, "total", 0, 8)

    result = run(build, TRAIN)
    assert values(result.outputs["out"], "k", "total") == [("a", 8), ("b", 5)]


def test_it_refuses_what_it_cannot_do(run):
    with pytest.raises(NetworkError, match="'k' cannot be clipped"):
        run(lambda cars: clip(cars, "k", 0, 10), TRAIN)


def test_it_is_drawn(run):
    text = []
    run(lambda cars: text.append(clip(cars, "v", 0, 10).network.explain()) or cars, TRAIN)
    assert "clip" in text[0]


def test_the_page_shows_this_box(monkeypatch):
    source = Path(example_box.__file__).read_text()
    pieces = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    shown, test = pieces[:-1], pieces[-1]
    assert "def test_clip" in test
    for piece in shown:
        assert piece.strip() in source, f"not in {example_box.__file__}:\n{piece}"
    for table in (arrow.LOGICS, local.LOGICS):  # the page has a class of its own
        monkeypatch.setitem(table, "clip", table["clip"])
    names: dict[str, object] = {"__name__": example_box.__name__}
    exec(compile("\n\n".join(pieces), str(PAGE), "exec"), names)
    names["test_clip"]()
