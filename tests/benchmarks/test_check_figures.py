"""Figures in documents: a wrong digit, a missing file and a missing citation are found, with
file and line.
"""

from __future__ import annotations

import json

import pytest
from benchmarks.common.expressions import ExpressionError, evaluate

from benchmarks import check_figures

RESULT = {
    "command": "python -m benchmarks.engine.latch", "commit": "0123abc", "machine": {"cores": 2},
    "figures": {"speed": [{"mode": "as fast as possible", "tuples_per_s": 487_176.2, "train_p50_s": 0.5449}],
        "share": 0.15},
    "config": {"rate": 300_000},
    "load": {"before": 0.1, "after": 2.9},
}  # fmt: skip
GOOD = """# Speed

It takes 487,000 tuples/s, trains of 0.54 s, 15 % of a core, at 300,000 offered; the goal is 1.10.

<!-- figures: 20260101/latch-120000.json
487,000: speed[mode=as fast as possible].tuples_per_s
0.54: speed[0].train_p50_s
15: 100
  * share
300,000: config.rate
given: 1.10
-->
"""


@pytest.fixture
def problems(tmp_path, monkeypatch):
    """Check a text; the problems as `line: text`."""
    monkeypatch.setattr(check_figures, "RESULTS", tmp_path)
    monkeypatch.setattr(check_figures, "ROOT", tmp_path)
    (tmp_path / "20260101").mkdir()
    (tmp_path / "20260101" / "latch-120000.json").write_text(json.dumps(RESULT))

    def check(text: str, *, whole: bool = True) -> list[str]:
        file = tmp_path / "page.md"
        file.write_text(text)
        return [str(problem) for problem in check_figures.check(file, whole=whole)]

    return check


def test_figures_that_their_result_bears_out(problems):
    assert problems(GOOD) == []


def test_a_wrong_digit_in_the_text(problems):
    found = problems(GOOD.replace("of 0.54 s", "of 0.55 s"))
    assert found == ["page.md:7: 0.54 is not in the text above", "page.md:3: 0.55 has no source"]


def test_a_wrong_digit_in_text_and_comment(problems):
    assert problems(GOOD.replace("0.54", "0.55")) == [
        "page.md:7: 0.55 is 0.5449 in 20260101/latch-120000.json (speed[0].train_p50_s)"
    ]


def test_a_missing_file(problems):
    found = problems(GOOD.replace("latch-120000", "latch-120001"))
    assert found == ["page.md:5: there is no benchmarks/results/20260101/latch-120001.json"]


def test_a_result_of_which_nobody_knows_how_it_was_made(problems, tmp_path):
    (tmp_path / "20260101" / "old-120000.json").write_text(json.dumps({**RESULT, "commit": None}))
    assert problems(GOOD.replace("latch-120000", "old-120000")) == [
        "page.md:5: 20260101/old-120000.json has no commit: measure it again"
    ]


def test_a_figure_without_a_citation(problems):
    assert problems("It takes 37 ms.\n") == ["page.md:1: 37 has no source"]
    assert problems("It takes 37 ms.\n", whole=False) == []


def test_a_comment_does_not_cover_what_comes_after_the_next_heading(problems):
    text = "It takes 37 ms.\n\n## Next\n\n" + GOOD
    assert problems(text) == ["page.md:1: 37 has no source"]


def test_a_path_that_is_not_there(problems):
    found = problems(GOOD.replace("config.rate", "config.rates"))
    assert found == ["page.md:10: 'config.rates': there is no rates; there is: rate"]


def test_two_comments_cover_one_text(problems):
    parts = GOOD.replace("config.rate\ngiven", "config.rate\n-->\n<!-- figures: given")
    assert problems(parts) == []


def test_every_number_of_a_table_needs_a_source(problems):
    assert problems("| job | s |\n|---|---|\n| a | 3 |\n") == ["page.md:3: 3 has no source"]


def test_equal_numbers_of_a_table_need_a_source_each(problems):
    table = "| s | p50 |\n|---|---|\n| 0.54 | 0.54 |\n"
    one = "0.54: speed[0].train_p50_s\n"
    comment = f"\n<!-- figures: 20260101/latch-120000.json\n{one}-->\n"
    assert problems(table + comment) == ["page.md:3: 0.54 has no source"]
    assert problems(table + comment.replace(one, one + one)) == []


@pytest.mark.parametrize(
    "text",
    [
        "kill -9 at L = 400, p99, PE1",
        "2026-11-16",
        "`--rate 102000`",
        "[it](performance/2024.md)",
        "three of 12 runs",
    ],
)
def test_numbers_that_are_no_figures(problems, text):
    assert problems(f"{text}\n") == []


def test_rows_values_and_functions():
    rows = [{"way": "hash", "s": 4}, {"way": "hash", "s": 2}, {"way": "auto", "s": 3}]
    result = {"figures": rows, "load": {"after": 2}}
    assert evaluate("median([way=hash].s) / [way=auto].s", result) == 1
    assert evaluate("len([way=hash].s) + load.after - 1e0", result) == 3
    for wrong in ("[way=none].s", "[way=auto].way", "__import__", "[0].s ** 2"):
        with pytest.raises(ExpressionError):
            evaluate(wrong, result)


def test_suggestions_name_the_path(problems, tmp_path):
    problems("Trains take 0.54 s.\n\n<!-- figures: 20260101/latch-120000.json\n-->\n")
    assert list(check_figures.suggestions(tmp_path / "page.md")) == ["3: 0.54: speed[0].train_p50_s"]
