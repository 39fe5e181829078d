"""`penstock lr rate`: the largest L that meets every requirement in real time, on this machine.

Idea: each trial is a separate run in fresh processes, with the driver on the same machine. A trial passes if
every answer is right and no scored one is late. The next L is a pure function of the trials so far
(`search`), so an interrupted rating can resume. A trial in which the driver fell behind says nothing: it is
void and repeated. L-rating: Arasu et al., "Linear Road", VLDB 2004, section 3.3.
"""

from __future__ import annotations

import glob
import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import cast

from penstock.linear_road.drive.drive_report import DriveFigures
from penstock.linear_road.errors import InputError, RateError
from penstock.linear_road.rate.disk_room import bytes_needed, bytes_under, refuse_without_room
from penstock.linear_road.rate.next_wall import next_wall
from penstock.linear_road.rate.plan import RatePlan, Window, confirmation_of, trial_of
from penstock.linear_road.rate.prepared_input import RateSet, Step, prepare_set
from penstock.linear_road.rate.search import SHARE, NextTrial, TrialOutcome, is_next, next_step
from penstock.linear_road.rows.copies import copies_of
from penstock.linear_road.run.child_run import COMMAND, REFUSED, STOPPED, run_in_child
from penstock.linear_road.run.plan import RunPlan
from penstock.linear_road.run.rating_record import NextWall, PlanFigures, Rating, Trial
from penstock.linear_road.run.record import READ_BY, Cost, RunRecord, Series
from penstock.linear_road.run.resource_use import machine, versions
from penstock.linear_road.run.run_folder import ANSWERS, CHECKPOINT, RUN, answers_of
from penstock.linear_road.validate.answer_files import LeftOut
from penstock.linear_road.validate.shifted import JudgedCopies, Overload, ShiftedVerdict, validate_copies
from penstock.process.child_process import last_said
from penstock.process.cores import usable_cores
from penstock.store.durable import make_directory, write_text
from penstock.store.errors import OwnedError
from penstock.store.ownership import owned

RATING = "rating.json"
_TRIALS = "trials.json"
_VOID_AGAIN = 2
"""A trial is void at most so often; the next time it counts as failed."""

_MOST_BEHIND = 40.0
"""Seconds behind at which a trial is given up: beyond every limit of the benchmark."""

_SMALL = 1.0
"""An L that any machine carries: a run that crashes there would crash anywhere."""

_WHOLE_DAY, _WHOLE_HISTORY = 180, 69
"""Minutes of traffic and days of history in the benchmark."""

_STOPPED_TRIAL = "the trial was stopped"
_RUN = COMMAND
"""What a trial runs; tests run another script instead."""


@dataclass(frozen=True)
class Watcher:
    """Callbacks that report the progress of a rating."""

    step: Step = lambda _name, _done, _total: None
    say: Callable[[str], None] = lambda _sentence: None
    trial: Callable[[Trial], None] = lambda _trial: None


def rate(plan: RatePlan, watcher: Watcher | None = None) -> Rating:
    """Search, confirm, and return the contents of `rating.json`; an interrupted rating resumes."""
    try:
        # A second rating in the same folder would remove the trials of the first.
        with owned(plan.out):
            return _rate(plan, watcher or Watcher())
    except OwnedError:
        raise InputError(
            f"another rating still works in --out {plan.out}", hint="wait for it, or choose another --out"
        ) from None


def _rate(plan: RatePlan, watcher: Watcher) -> Rating:
    trials = _Trials.open(plan)
    prepared = prepare_set(plan, watcher.step, usable_cores())
    # The trials on disk are all that the search knows, so a killed rating loses one trial at most.
    while (step := next_step(trials.counted(), plan.bounds)).kind != "done":
        watcher.say(f"{'confirming' if step.kind == 'confirm' else 'trying'} L = {step.expressways:g}")
        attempt = TrialRun(plan, prepared, step, len(trials.done))
        if not attempt.is_driven:  # asking deletes what a killed rating has left, which is room
            needed = bytes_needed(trials.done, prepared.rates, attempt.window, step.expressways)
            refuse_without_room(plan.out, needed, step.expressways)
        trial = attempt.run()
        _raise_if_hopeless(trial, trials.done)
        trials.add(trial)
        # Only now: the answers of a trial that is not on record yet may have to be judged again.
        attempt.clear()
        watcher.trial(trial)
    result = _result(plan, prepared, trials.done, step.expressways)
    write_text(plan.out / RATING, json.dumps(result, indent=1) + "\n")
    return result


def _raise_if_hopeless(trial: Trial, before: list[Trial]) -> None:
    """Raise, recording nothing, if the smallest load crashed: the installation is at fault, not L."""
    if trial.get("crashed") and trial["L"] <= _SMALL and not any(t["pass"] for t in before):
        raise RateError(f"the trial at L = {trial['L']:g} failed, so no L can be tried: {trial['crashed']}")


@dataclass
class _Trials:
    """The trials so far, written to disk after each."""

    file: Path
    plan: PlanFigures
    done: list[Trial] = field(default_factory=list)

    @classmethod
    def open(cls, plan: RatePlan) -> _Trials:
        make_directory(plan.out)
        file = plan.out / _TRIALS
        if not file.is_file():
            return cls(file, plan.as_json())
        saved = json.loads(file.read_text(encoding="utf-8"))
        # A rating from before there was a choice.
        saved["plan"].setdefault("step", SHARE)
        saved["plan"].setdefault("interval", 0.0)
        for name, value in plan.as_json().items():
            if saved["plan"].get(name) != value:
                raise InputError(
                    f"--out {plan.out} holds a rating with {name} {saved['plan'].get(name)}, not {value}",
                    hint="give the same options to go on, or another --out",
                )
        return cls(file, saved["plan"], saved["trials"])

    def add(self, trial: Trial) -> None:
        self.done.append(trial)
        write_text(self.file, json.dumps({"plan": self.plan, "trials": self.done}, indent=1) + "\n")

    def counted(self) -> list[TrialOutcome]:
        """The trials that the search may use.

        Void trials do not count, unless the same one was void repeatedly.
        """
        outcomes, void = [], 0
        for trial in self.done:
            # Only void trials in a row count: a trial that ends in any other way settles the matter.
            void = void + 1 if trial["void"] else 0
            if not trial["void"] or void > _VOID_AGAIN:
                outcomes.append(TrialOutcome(trial["L"], trial["pass"], trial["confirming"]))
                void = 0
        return outcomes


@dataclass(frozen=True)
class TrialRun:
    """One trial: a run in its own processes, then the oracle. `number` names its directory."""

    plan: RatePlan
    prepared: RateSet
    step: NextTrial
    number: int

    @property
    def window(self) -> Window:
        chosen = confirmation_of if self.step.kind == "confirm" else trial_of
        return chosen(self.plan, self.prepared.rates, self.prepared.cut)

    @cached_property
    def folder(self) -> Path:
        wanted = self.plan.out / "trials" / f"{self.number:03d}-{self.step.kind}-{self.step.expressways:g}"
        return finished_folder(wanted) or fresh_folder(wanted)

    @property
    def is_driven(self) -> bool:
        """Whether a killed rating has driven it to its end."""
        return (self.folder / RUN).is_file()

    @property
    def log(self) -> Path:
        # Not with_suffix: the name may end in half an expressway (".5").
        return self.folder.with_name(f"{self.folder.name}.log")

    def run(self) -> Trial:
        """Run and judge. A run that had ended when the rating was killed is only judged."""
        began, code = time.monotonic(), 0
        if not self.is_driven:
            code = run_in_child(self.run_plan(), self.log, _RUN)
        if not self.is_driven:
            return self._crashed(code, round(time.monotonic() - began, 1))
        record: RunRecord = json.loads((self.folder / RUN).read_text(encoding="utf-8"))
        verdict = self.verdict() if record["finished"] else None
        trial = judged(self.step, self.window, record, verdict, round(time.monotonic() - began, 1))
        trial["disk_bytes"] = bytes_under(self.folder)
        trial["answer_bytes"] = bytes_under(answers_of(self.folder))
        return trial

    def clear(self) -> None:
        """Delete the answers: those of a large L take gigabytes, and the next trial needs the room."""
        if not self.plan.keep:
            for path in (self.folder / ANSWERS, self.folder / CHECKPOINT):
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def _crashed(self, code: int, seconds: float) -> Trial:
        """Handle a run that left no record: too much for this machine, unless the command itself is wrong."""
        said = last_said(self.log) or "it said nothing"
        if code == REFUSED:
            raise RateError(f"the trial at L = {self.step.expressways:g} was refused ({self.log}): {said}")
        trial = crashed(self.step, self.window, f"exit code {code}: {said}", seconds)
        if code == STOPPED:
            # Somebody stopped it before it drove anything.
            trial["void"], trial["crashed"] = _STOPPED_TRIAL, None
        return trial

    def run_plan(self) -> RunPlan:
        """What the run of this trial does."""
        return RunPlan(
            self.prepared.slices.path,
            self.folder,
            history=self.prepared.history,
            master=self.plan.master,
            expressways=self.step.expressways,
            begin=self.window.begin,
            end=self.window.end,
            scored_from=self.window.scored_from,
            speed=self.plan.speed,
            most_behind=_MOST_BEHIND,
            delivery=self.plan.delivery,
            recovery=self.plan.recovery,
            interval=self.plan.interval,
            # Joining would need the room of all answers a second time: tens of gigabytes at a large L.
            one_file=self.plan.keep,
        )

    def verdict(self, left_out: Sequence[LeftOut] | None = None) -> ShiftedVerdict:
        """Judge the answers of the run; `left_out`: of one under control, by what it had to answer."""
        whole, rest = self.prepared.copies(self.step.expressways)
        parts = []
        if whole:
            parts.append(JudgedCopies(self.prepared.truth(self.prepared.base, self.window), range(whole)))
        if rest:
            parts.append(JudgedCopies(self.prepared.truth(rest, self.window), range(whole, whole + 1)))
        span = self.prepared.slices.span
        assert span is not None
        # A cut-off copy is shifted like a whole one; only some of its rows are missing.
        shift = copies_of(span, count=whole + (1 if rest else 0))
        scored = self.window.scored_from, self.window.end
        overload = None if left_out is None else Overload(left_out, *scored)
        history = self.prepared.history
        return validate_copies(answers_of(self.folder), parts, shift, history=history, overload=overload)


def finished_folder(wanted: Path) -> Path | None:
    """The directory of a trial that a killed rating has driven to its end, but not judged."""
    names = [wanted, *sorted(wanted.parent.glob(f"{glob.escape(wanted.name)}+*"))]
    return next((path for path in names if _is_finished(path)), None)


def _is_finished(folder: Path) -> bool:
    try:
        record: RunRecord = json.loads((folder / RUN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return record["finished"] and answers_of(folder).exists()


def fresh_folder(wanted: Path) -> Path:
    """A directory for a trial, not made yet; removes the unfinished one of a killed rating.

    The new one has another name, so that a dying run's last writes cannot get into it.
    """
    make_directory(wanted.parent)
    number = 0
    for old in (path for path in wanted.parent.iterdir() if path.is_dir()):
        name, _, again = old.name.partition("+")
        if name == wanted.name:
            number = max(number, int(again or 0) + 1)
            shutil.rmtree(old, ignore_errors=True)
    return wanted if not number else wanted.with_name(f"{wanted.name}+{number}")


def judged(
    step: NextTrial, window: Window, record: RunRecord, verdict: ShiftedVerdict | None, seconds: float
) -> Trial:
    """A trial as `rating.json` keeps it.

    It passed only if everything was driven in time, all answers are right, and none is late.
    """
    latency, cost = record["latency"], record["cost"]
    late = sum(figures["late"] for figures in latency.values())
    wrong = None if verdict is None else verdict.wrong
    void = _void(record)
    return {
        "L": step.expressways,
        "pass": void is None and record["finished"] and wrong == 0 and late == 0,
        "late": late,
        "wrong": wrong,
        "p99": {kind: figures["p99"] for kind, figures in latency.items()},
        "confirming": step.kind == "confirm",
        "void": void,
        "gave_up_at": record["gave_up_at"],
        "seconds": [window.begin, window.end],
        "scored_from": window.scored_from,
        "latency": latency,
        "cost": cost,
        "tuples": record["input"]["rows"],
        "copies": record["input"]["copies"],
        "driver": _of_driver(record["driver"]),
        "warm_up_s": record["warm_up"]["seconds"],
        "warm_up_latency": record.get("warm_up_latency"),
        "validation": None if verdict is None else verdict.as_json(),
        "series": record["series"],
        "load_at_end": record["machine"]["load"],
        "took_s": seconds,
    }


def crashed(step: NextTrial, window: Window, why: str, seconds: float) -> Trial:
    """A trial whose run ended without a record: failed, with nothing measured."""
    return {
        "L": step.expressways,
        "pass": False,
        "crashed": why,
        "late": None,
        "wrong": None,
        "p99": {},
        "confirming": step.kind == "confirm",
        "void": None,
        "gave_up_at": None,
        "seconds": [window.begin, window.end],
        "scored_from": window.scored_from,
        "latency": {},
        "cost": Cost(),
        "tuples": None,
        "copies": None,
        "driver": DriveFigures(),
        "warm_up_s": None,
        "validation": None,
        "series": Series(),
        "load_at_end": machine()["load"],
        "took_s": seconds,
    }


def _of_driver(report: DriveFigures) -> DriveFigures:
    """What a trial keeps of the driver's report: whether the driver itself kept up."""
    return cast(
        "DriveFigures",
        {key: report.get(key) for key in ("lateness_ms", "cpu_share", "valid", "late_seconds")},
    )


def _void(record: RunRecord) -> str | None:
    """Why a trial says nothing about the system; None if it is valid."""
    # A hopeless trial was stopped on purpose: it failed, it is not void.
    if record["gave_up_at"] is not None:
        return None
    report = record["driver"]
    if report.get("late_seconds"):
        return f"the driver fell behind in {report['late_seconds']} seconds, first at {report['first_late']}"
    if not record["finished"] or report.get("stopped_at") is not None:
        return _STOPPED_TRIAL
    return None


def _result(plan: RatePlan, prepared: RateSet, trials: list[Trial], rating: float) -> Rating:
    confirmed = [t for t in trials if t["confirming"] and t["pass"] and t["L"] == rating]
    wall = next_wall(trials, rating)
    return {
        "kind": "linear-road-rating",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "mode": plan.mode,
        "rating": rating,
        "confirmed": bool(confirmed),
        "scored_minutes": _scored_minutes(confirmed[-1]) if confirmed else 0,
        "bracketed": wall is not None and is_next(rating, wall["L"]),
        "next_wall": wall,
        "machine": machine(),
        "versions": versions(),
        "plan": plan.as_json(),
        "input": prepared.facts(),
        "format": plan.delivery,
        "read_by": READ_BY,
        "what_was_shortened": shortened(plan, prepared, rating, wall),
        "trials": trials,
    }


def _scored_minutes(trial: Trial) -> float:
    return (trial["seconds"][1] - trial["scored_from"]) / 60


def shortened(plan: RatePlan, prepared: RateSet, rating: float, wall: NextWall | None = None) -> list[str]:
    """What this rating does not claim, in sentences."""
    whole, rest = prepared.copies(rating)
    copies = whole + (1 if rest else 0)
    cut = prepared.cut
    minutes = plan.traffic_minutes
    sentences = [f"trials score {plan.trial_minutes} of the {minutes} minutes of traffic, the busiest ones"]
    if wall is None:
        sentences.append("no larger L has failed: the largest one was not looked for")
    elif not is_next(rating, wall["L"]):
        sentences.append(f"between L = {rating:g} and {wall['L']:g}, which failed, nothing was tried")
    if plan.speed != 1:
        sentences.append(f"the clock runs {plan.speed:g} times as fast as real time, and so do the limits")
    if minutes < _WHOLE_DAY:
        sentences.append(
            f"{minutes} minutes of traffic were generated, not the {_WHOLE_DAY} of the benchmark"
        )
    if plan.days < _WHOLE_HISTORY:
        sentences.append(f"the history has {plan.days} days, not the {_WHOLE_HISTORY} of the benchmark")
    if plan.mode == "peak":
        sentences.append(
            f"the confirming run is seconds {cut.begin}..{cut.end - 1} of the {minutes} minutes, the first "
            f"{plan.warm_up} s of it checked but not timed; vehicles that left before are not in its state"
        )
    if copies > 1:
        sentences.append(
            f"{prepared.base:g} expressways were generated; L = {rating:g} is {copies} shifted copies of them"
            f"{', the last cut off' if rest else ''}, which share one history; all copies peak together"
        )
    sentences.append("driver and system run on the same machine")
    return sentences
