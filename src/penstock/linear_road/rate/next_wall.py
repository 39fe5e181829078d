"""Where the next wall is: what the smallest L that failed has shown, as a pure function of the trials.

Idea: a system fails because it lacks processor time, because the machine takes it away, or because it stalls.
Each leaves another trace in the samples of the trial. The sentences say what was measured in the scored part
and leave conclusions to the reader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from penstock.linear_road.run.rating_record import NextWall, Trial
from penstock.linear_road.run.record import SampleFigures, TrainFigures

_PHASES = (("boxes", "boxes_s"), ("reading", "read_s"), ("writing", "write_s"), ("state", "state_s"))


def next_wall(trials: Sequence[Trial], rating: float) -> NextWall | None:
    """The smallest L above the rating that failed; None if none has."""
    failed = [trial for trial in trials if trial["L"] > rating and not trial["pass"] and not trial["void"]]
    if not failed:
        return None
    trial = min(failed, key=lambda trial: trial["L"])
    return {"L": trial["L"], "why": why(trial)}


def why(trial: Trial) -> list[str]:
    """What a failed trial has shown, in sentences."""
    if trial.get("crashed"):
        return [f"the run crashed: {trial.get('crashed')}"]
    sentences = [f"{trial['late']:,} scored answers were late"] if trial["late"] else []
    if trial["wrong"]:
        sentences.append(f"{trial['wrong']:,} answers were wrong")
    if trial["gave_up_at"] is not None:
        sentences.append(f"it was given up at second {trial['gave_up_at']}, too far behind")
    cost = trial["cost"]
    if "cores" in cost:
        sentences.append(f"{cost['cores']:.2f} cores were in use")
        sentences.append(f"the backlog grew to {cost['backlog_s']:.1f} s")
    return sentences + _of_machine(trial) + _of_trains(trial)


def _of_machine(trial: Trial) -> list[str]:
    """What others took from the machine, and what it did with its disk."""
    scored = [sample for sample in trial["series"].get("samples", []) if sample["t"] >= trial["scored_from"]]
    samples = [sample for sample in scored if sample.get("stolen_s") is not None]
    if len(samples) < 2:
        return []
    seconds = max(samples[-1]["wall"] - samples[0]["wall"], 1e-3)
    stolen, faults = (_grown(samples, name) / seconds for name in ("stolen_s", "major_faults"))
    dirty = max(_value(sample, "dirty_mb") for sample in samples)
    return [
        f"others took {stolen:.2f} cores from the machine",
        f"{faults:.1f} pages a second were read from disk, up to {dirty:,.0f} MB waited to be written",
    ]


def _grown(samples: list[SampleFigures], name: str) -> float:
    return _value(samples[-1], name) - _value(samples[0], name)


def _value(sample: SampleFigures, name: str) -> float:
    return cast("float", sample.get(name)) or 0.0


def _of_trains(trial: Trial) -> list[str]:
    trains = [train for train in trial["series"].get("trains", []) if train["second"] >= trial["scored_from"]]
    if not trains:
        return []
    slow, middle = max(trains, key=_ran), sorted(trains, key=_ran)[len(trains) // 2]
    return [f"the longest train: {_told(slow)}", f"the median train: {_told(middle)}"]


def _told(train: TrainFigures) -> str:
    figures = cast("Mapping[str, float]", train)
    # A trial of an older version, in a rating that goes on, has fewer phases.
    parts = [f"{name} {figures[key]:.2f} s" for name, key in _PHASES if key in figures]
    return f"{train['ran_s']:.2f} s for {train['rows']:,} tuples, of which {', '.join(parts)}"


def _ran(train: TrainFigures) -> float:
    return train["ran_s"]
