"""Whether the disk has room for a trial: answers and state of a large L take tens of gigabytes.

A run that finds the disk full looks like one that L was too much for, so the rating would be too low. It is
better to stop before it. Idea: what earlier trials have left. Answers grow with the tuples that came, so with
the length of a trial too; everything else is state, and grows with L only.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from penstock.linear_road.errors import RateError
from penstock.linear_road.rate.plan import Window
from penstock.linear_road.rows.arrays import Int64s
from penstock.linear_road.run.rating_record import Trial

_GB = 1e9


def bytes_under(path: Path) -> int:
    """What a file, or the files of a folder, take: by their lengths."""
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.lstat().st_size for file in files if file.is_file())


def bytes_needed(trials: Sequence[Trial], rates: Int64s, window: Window, expressways: float) -> float:
    """What a trial will leave on the disk, by the most greedy ones so far; 0 if none tells.

    `rates`: tuples by second, from the first second of the traffic on.
    """
    told = [trial for trial in trials if "answer_bytes" in trial]
    tuples = expressways * float(rates[window.begin : window.end].sum())
    answers = max((_answers_by_tuple(trial, rates) for trial in told), default=0.0)
    state = max((_state_by_expressway(trial) for trial in told), default=0.0)
    return tuples * answers + expressways * state


def _answers_by_tuple(trial: Trial, rates: Int64s) -> float:
    begin, end = trial["seconds"]
    return trial["answer_bytes"] / max(1.0, trial["L"] * float(rates[begin:end].sum()))


def _state_by_expressway(trial: Trial) -> float:
    return max(0, trial["disk_bytes"] - trial["answer_bytes"]) / trial["L"]


def refuse_without_room(folder: Path, needed: float, expressways: float) -> None:
    """Raise, if what a trial needs is not free."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise RateError(
            f"the answers of L = {expressways:g} need about {needed / _GB:.0f} GB in {folder}, and "
            f"{free / _GB:.0f} GB are free",
            hint="make room, and the same command goes on; or rate with fewer --minutes in another --out",
        )
