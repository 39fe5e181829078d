"""A rating without Spark: windows, which trials count, shifted copies judged by the original, going on."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from linear_road.golden_input import GOLDEN, needs_data
from penstock.cli.lr import rate as lr_rate
from penstock.cli.lr.commands import lr_app
from penstock.linear_road.drive.driver import DrivePlan, feed_of
from penstock.linear_road.errors import InputError
from penstock.linear_road.rate import rating
from penstock.linear_road.rate.plan import RatePlan, Window, confirmation_of, cut_of, trial_of
from penstock.linear_road.rate.prepared_input import prepare_set
from penstock.linear_road.rate.search import NextTrial
from penstock.linear_road.rows.copies import Copies
from penstock.linear_road.run.record import READ_BY
from penstock.linear_road.validate import shifted as shifted_answers
from penstock.linear_road.validate import validate
from penstock.linear_road.validate.shifted import JudgedCopies, ShiftedVerdict, validate_copies
from penstock.store.ownership import owned


def plan(tmp_path: Path, **more: Any) -> RatePlan:
    return RatePlan(tmp_path / "out", **{"begin": 4, "minutes": 2, "trial_minutes": 1, "warm_up": 30, **more})


def test_the_busiest_minutes_are_cut_out_with_a_warm_up_before_them(tmp_path: Path) -> None:
    rates = np.ones(10800, np.int64)
    rates[5000:5060] = 10
    chosen = plan(tmp_path)
    cut = cut_of(chosen, rates)
    assert cut.end - cut.begin == 150
    assert cut.begin <= 5000 < 5060 <= cut.end
    trial = trial_of(chosen, rates, cut)
    assert trial.end - trial.scored_from == 60
    assert trial.scored_from - trial.begin == 30
    assert cut.begin <= trial.begin <= 5000 < 5060 <= trial.end <= cut.end
    assert confirmation_of(chosen, rates, cut) == cut


def test_in_full_mode_the_winner_carries_all_three_hours(tmp_path: Path) -> None:
    rates = np.arange(10800)
    chosen = plan(tmp_path, mode="full")
    cut = cut_of(chosen, rates)
    assert trial_of(chosen, rates, cut) == Window(10710, 10740, 10800)
    assert confirmation_of(chosen, rates, cut) == Window(0, 0, 10800)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "quick"}, "--mode quick is not known\n  expected: peak or full"),
        ({"begin": 0.3}, "--from 0.3 is no size"),
        ({"end": 2}, "--to 2 is below --from 4"),
        ({"minutes": 0}, "--minutes and --trial-minutes of 1 or more"),
        ({"interval": 5}, "--interval 5 is no time between two trains"),
        ({"step": 0.2}, "expected: a share from 0.01 to 0.15"),
        ({"minutes": 180}, "do not fit into the 180 minutes"),
    ],
)
def test_options_that_make_no_sense(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan(tmp_path, **options)


def record(**more: Any) -> dict[str, Any]:
    figures = {str(kind): {"p99": 1.0, "late": 0} for kind in range(5)}
    return {
        "finished": True,
        "gave_up_at": None,
        "latency": figures,
        "cost": {},
        "input": {"rows": 10, "copies": None},
        "driver": {"late_seconds": 0, "stopped_at": None, "valid": True},
        "warm_up": {"seconds": 3},
        "series": {},
        "machine": {"load": 1.0},
        **more,
    }


def test_a_trial_passes_only_if_all_is_right_and_nothing_late() -> None:
    step, window, right = NextTrial("try", 4), Window(0, 30, 90), ShiftedVerdict()
    assert rating.judged(step, window, record(), right, 1.0)["pass"]
    one_late = record(latency={"0": {"p99": 1.0, "late": 1}})
    assert not rating.judged(step, window, one_late, right, 1.0)["pass"]
    wrong = ShiftedVerdict()
    wrong.types[2].missing = 1
    found = rating.judged(step, window, record(), wrong, 1.0)
    assert not found["pass"]
    assert found["wrong"] == 1
    given_up = rating.judged(step, window, record(finished=False, gave_up_at=80), None, 1.0)
    assert (given_up["pass"], given_up["void"], given_up["wrong"]) == (False, None, None)


def test_a_driver_that_fell_behind_voids_the_trial() -> None:
    late = record(driver={"late_seconds": 2, "first_late": 61})
    found = rating.judged(NextTrial("try", 4), Window(0, 30, 90), late, ShiftedVerdict(), 1.0)
    assert found["void"] == "the driver fell behind in 2 seconds, first at 61"
    assert not found["pass"]


def trial(expressways: float, *, passed: bool, void: str | None = None) -> dict[str, Any]:
    return {"L": expressways, "pass": passed, "void": void, "confirming": False}


def test_void_trials_do_not_count_until_they_are_void_again_and_again(tmp_path: Path) -> None:
    trials = rating._Trials.open(plan(tmp_path))
    for _ in range(2):
        trials.add(trial(4, passed=False, void="the driver fell behind"))
    assert trials.counted() == []
    trials.add(trial(4, passed=False, void="the driver fell behind"))
    assert [t.passed for t in trials.counted()] == [False]


def test_an_interrupted_rating_goes_on_with_its_trials_and_no_other(tmp_path: Path) -> None:
    rating._Trials.open(plan(tmp_path)).add(trial(4, passed=True))
    assert [t.expressways for t in rating._Trials.open(plan(tmp_path)).counted()] == [4]
    with pytest.raises(InputError, match="holds a rating with minutes 2, not 3"):
        rating._Trials.open(plan(tmp_path, minutes=3))


def test_a_rating_from_before_there_was_a_choice_goes_on(tmp_path: Path) -> None:
    rating._Trials.open(plan(tmp_path)).add(trial(4, passed=True))
    file = tmp_path / "out" / "trials.json"
    saved = json.loads(file.read_text(encoding="utf-8"))
    del saved["plan"]["step"], saved["plan"]["interval"]
    file.write_text(json.dumps(saved), encoding="utf-8")
    assert [t.expressways for t in rating._Trials.open(plan(tmp_path)).counted()] == [4]


def test_a_second_rating_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    with owned(plan(tmp_path).out), pytest.raises(InputError, match="another rating still works in"):
        rating.rate(plan(tmp_path))


# -- shifted copies

SHIFT = Copies(3, vid=2_000_000, qid=1_000_000, xway=2)


def shifted(line: str, k: int) -> str:
    fields = line.split(",")
    at, by = {
        "0": (1, SHIFT.vid),
        "1": (3, SHIFT.vid),
        "2": (4, SHIFT.qid),
        "3": (3, SHIFT.qid),
        "4": (3, SHIFT.qid),
    }[fields[0]]
    fields[at] = str(int(fields[at]) + k * by)
    return ",".join(fields)


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The right answers to three copies of the golden input."""
    file = tmp_path_factory.mktemp("golden") / "expected.csv"
    validate(GOLDEN / "rows.dat", history=GOLDEN, expected=file)
    lines = file.read_text().splitlines()
    return [shifted(line, k) for k in range(3) for line in lines]


@needs_data
class TestShiftedCopies:
    def judge(self, tmp_path: Path, answers: list[str]) -> ShiftedVerdict:
        file = tmp_path / "answers.csv"
        file.write_text("\n".join(answers) + "\n")
        return validate_copies(file, [JudgedCopies(GOLDEN / "rows.dat", range(3))], SHIFT, history=GOLDEN)

    def test_right_answers_hold(self, tmp_path: Path, right: list[str]) -> None:
        verdict = self.judge(tmp_path, right)
        assert (verdict.wrong, verdict.copies) == (0, 3)
        assert sum(t.got for t in verdict.types.values()) == len(right)
        json.dumps(verdict.as_json())

    def test_each_fault_is_found_in_its_copy(self, tmp_path: Path, right: list[str]) -> None:
        broken = list(right)
        third = len(right) // 3
        fields = broken[third].split(",")
        broken[third] = ",".join([*fields[:-1], str(int(fields[-1]) + 7)])
        verdict = self.judge(tmp_path, broken)
        assert verdict.wrong == 1
        assert verdict.faults[0].startswith("copy 1, toll notice: wrong toll")

    def test_equal_copies_share_one_comparison(
        self, tmp_path: Path, right: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        compared: list[int] = []
        judge = shifted_answers._compared
        monkeypatch.setattr(
            shifted_answers, "_compared", lambda con, verdict, k: compared.append(k) or judge(con, verdict, k)
        )
        third = len(right) // 3
        random.Random(1).shuffle(right := list(right))
        assert self.judge(tmp_path, right).wrong == 0
        assert compared == [0]
        doubled = [*right, right[third], right[third]]
        assert self.judge(tmp_path, doubled).wrong == 2

    def test_copies_that_differ_are_compared_some_at_a_time(
        self, tmp_path: Path, right: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        third = len(right) // 3
        broken = [line for number, line in enumerate(right) if number not in (third, 2 * third)]
        for most in (1, 10**9):
            monkeypatch.setattr(shifted_answers, "_AT_ONCE", most)
            verdict = self.judge(tmp_path, broken)
            assert (verdict.wrong, verdict.copies, verdict.types[0].missing) == (2, 3, 2)

    def test_an_answer_before_its_time_is_found_in_any_copy(self, tmp_path: Path, right: list[str]) -> None:
        third = len(right) // 3
        fields = right[third].split(",")
        early = ",".join([*fields[:3], str(int(fields[2]) - 1), *fields[4:]])
        assert right[third].startswith("0,")
        verdict = self.judge(tmp_path, [*right[:third], early, *right[third + 1 :]])
        assert verdict.wrong == 1

    def test_missing_and_stray_answers_are_found(self, tmp_path: Path, right: list[str]) -> None:
        verdict = self.judge(tmp_path, [*right[1:], shifted(right[0], 5), "nonsense"])
        assert verdict.types[0].missing == 1
        assert verdict.types[0].extra == 1
        assert verdict.unreadable == 1
        assert verdict.wrong == 3

    @pytest.mark.parametrize("k", [-5, -1, 3])
    def test_every_answer_of_no_copy_is_a_stray(self, tmp_path: Path, right: list[str], k: int) -> None:
        """Also those below all copies."""
        strays = [shifted(next(line for line in right if line[0] == kind), k) for kind in "01234"]
        verdict = self.judge(tmp_path, [*right, *strays, "0,-2000000,60,60,20,0", "3,60,60,-1,0"])
        assert [t.extra for t in verdict.types.values()] == [2, 1, 1, 2, 1]
        assert verdict.wrong == 7
        assert sum(t.got for t in verdict.types.values()) == len(right) + 7


# -- the whole, with a system that is known to carry 1.5 expressways

SMALL = {"begin": 1, "base": 0.5, "traffic_minutes": 4, "minutes": 1, "days": 1}


@pytest.fixture
def carries(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Trials without a run; gives the list of those made."""
    made: list[float] = []

    def run(attempt: rating.TrialRun) -> dict[str, Any]:
        made.append(attempt.step.expressways)
        late = 0 if attempt.step.expressways <= 1.5 else 3
        figures = {str(kind): {"p99": 1.0, "late": late if kind == 0 else 0} for kind in range(5)}
        return rating.judged(attempt.step, attempt.window, record(latency=figures), ShiftedVerdict(), 0.1)

    monkeypatch.setattr(rating.TrialRun, "run", run)
    return made


def test_a_rating_is_found_written_down_and_gone_on_with(tmp_path: Path, carries: list[float]) -> None:
    chosen = plan(tmp_path, **SMALL)
    result = rating.rate(chosen)
    assert carries == [1, 2, 1.5, 1.5]
    assert result == json.loads((tmp_path / "out" / "rating.json").read_text())
    assert (result["mode"], result["rating"], result["confirmed"]) == ("peak", 1.5, True)
    assert {"machine", "versions", "what_was_shortened"} <= set(result)
    assert (result["format"], result["read_by"]) == ("packed", READ_BY)
    assert result["bracketed"]
    assert result["next_wall"] == {"L": 2, "why": ["3 scored answers were late"]}
    assert [(t["L"], t["pass"], t["late"], t["wrong"]) for t in result["trials"]] == [
        (1, True, 0, 0),
        (2, False, 3, 0),
        (1.5, True, 0, 0),
        (1.5, True, 0, 0),
    ]
    assert all(set(t["p99"]) == set("01234") for t in result["trials"])
    assert "L = 1.5 is 3 shifted copies of them" in " ".join(result["what_was_shortened"])
    rating.rate(chosen)
    assert len(carries) == 4, "nothing is tried again"
    shortened = " ".join(result["what_was_shortened"])
    for part in (
        "1 of the 4 minutes of traffic",
        "not the 180 of the benchmark",
        "history has 1 days, not the 69",
    ):
        assert part in shortened
    assert "of the three hours" not in shortened


def test_all_of_the_traffic_at_three_times_real_time(
    tmp_path: Path, carries: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    driven: list[tuple[float, int | None, int | None, int | None]] = []
    made = rating.TrialRun.run

    def run(attempt: rating.TrialRun) -> Any:
        planned = attempt.run_plan()
        driven.append((planned.speed, planned.begin, planned.end, planned.scored_from))
        return made(attempt)

    monkeypatch.setattr(rating.TrialRun, "run", run)
    result = rating.rate(plan(tmp_path, **SMALL, mode="full", speed=3.0, end=1, warm_up=60))
    assert carries == [1, 1]
    assert driven[-1] == (3.0, 0, 240, 0), "the confirming run drives and times all of it"
    assert (result["mode"], result["rating"], result["scored_minutes"]) == ("full", 1, 4)
    assert result["plan"]["speed"] == 3.0
    assert not result["bracketed"]
    shortened = " ".join(result["what_was_shortened"])
    assert "3 times as fast as real time" in shortened
    assert "no larger L has failed" in shortened


def test_without_from_and_base_a_rating_stays_below_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[RatePlan] = []

    def refuse(chosen: RatePlan, _watcher: object) -> None:
        plans.append(chosen)
        raise InputError("enough")

    monkeypatch.setattr(lr_rate, "rate_machine", refuse)
    for words in (
        ["--to", "10"],
        ["--to", "2"],
        [],
        ["--from", "3", "--base", "1.5", "--to", "4"],
        ["--to", "0.7"],
    ):
        given = ["rate", "--out", str(tmp_path / "o"), *words]
        found = CliRunner().invoke(lr_app(given), given)
    assert [(p.begin, p.base, p.end) for p in plans] == [(10, 5, 10), (2, 2, 2), (50, 5, None), (3, 1.5, 4)]
    assert "--to 0.7 is no size" in found.output


def test_the_truth_of_a_copy_is_what_the_driver_delivers(tmp_path: Path) -> None:
    prepared = prepare_set(plan(tmp_path, **SMALL), lambda _name, _done, _total: None, 1)
    window = Window(prepared.cut.begin, prepared.cut.begin, prepared.cut.begin + 20)
    truth = prepared.truth(0.5, window).read_bytes()
    feed = feed_of(
        DrivePlan(prepared.slices.path, expressways=0.5, begin=window.begin, end=window.end), prepared.slices
    )
    driven = b"".join(feed.at(t)[0].data.tobytes() for t in range(window.begin, window.end))
    assert truth == driven
    assert prepared.copies(1.5) == (3, 0)
    assert truth.count(b"\n") == prepared.rates[window.begin : window.end].sum()
