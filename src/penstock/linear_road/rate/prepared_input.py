"""The prepared set of a rating: traffic, history and slices, prepared once and driven at any L.

Idea: a few generated expressways are stored by direction. L expressways are shifted copies of them, the last
copy cut off at a half. So one set serves every L in steps of 0.5, and its history serves all copies by
reference. The right answers follow from the stored expressways alone: `truth` writes the rows of one copy,
whole or cut off. VLDB 2004, section 3.3.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from penstock.linear_road.drive.prepare import PreparePlan, prepare
from penstock.linear_road.drive.slices import Slices
from penstock.linear_road.errors import InputError
from penstock.linear_road.rate.plan import RatePlan, Window, cut_of
from penstock.linear_road.rows.arrays import Int64s
from penstock.linear_road.rows.copies import stated_span
from penstock.linear_road.rows.inputs import Input, open_input
from penstock.linear_road.run.rating_record import SetFacts
from penstock.linear_road.traffic.generate import generate
from penstock.linear_road.traffic.history import HistoryPlan, history
from penstock.store.durable import make_directory, whole_file, write_text

Step = Callable[[str, int, int], None]
"""Called with the name of a step and (done, total) as it advances."""

_INT32 = 2**31 - 1
_RATES = "rates.json"


@dataclass(frozen=True)
class RateSet:
    """A prepared set; `rates` are the tuples of each second of the stored expressways."""

    path: Path
    slices: Slices
    history: Path
    rates: Int64s
    cut: Window

    @property
    def base(self) -> float:
        """The stored expressways."""
        assert self.slices.span is not None
        return self.slices.span.expressways

    def copies(self, expressways: float) -> tuple[int, float]:
        """How many whole copies L consists of, and the size of the last, partial one."""
        whole = int(expressways // self.base)
        return whole, expressways - whole * self.base

    def truth(self, expressways: float, window: Window) -> Path:
        """A flat file with the rows of a copy of this size, for the oracle."""
        name = f"{expressways:g}x-{window.begin}-{window.end}.csv"
        final = self.path / "truth" / name
        make_directory(final.parent)
        if not final.exists():
            with whole_file(final) as path, path.open("wb") as out:
                # Second by second, not half by half: the oracle refuses rows whose time goes back.
                for second in range(window.begin, window.end):
                    for half in range(round(2 * expressways)):
                        out.write(self.slices.slice(second, half).data.data)
        return final

    def facts(self) -> SetFacts:
        """What a result must state about its input."""
        return {
            "stored_xways": self.base,
            "seconds": [self.cut.begin, self.cut.end],
            "shifted_copies": True,
            "source": self.slices.manifest["source"],
        }


def prepare_set(plan: RatePlan, step: Step, jobs: int) -> RateSet:
    """Make the set of a plan, reusing what an earlier call has finished."""
    folder = plan.prepared_folder
    make_directory(folder)
    traffic = folder / "traffic"
    generate(
        traffic,
        xways=plan.base,
        minutes=plan.traffic_minutes,
        seed=plan.seed,
        form="parquet",
        jobs=jobs,
        progress=step,
    )
    source = open_input(traffic)
    history(
        HistoryPlan(traffic, folder / "history", plan.days, "parquet", plan.seed, _most_copies(source)),
        workers=jobs,
        reading=lambda done, total: step("history: reading", done, total),
        writing=lambda done, total: step("history: writing", done, total),
    )
    rates = _rates(source, folder)
    cut = cut_of(plan, rates)
    slices = _slices(source, folder / f"slices-{cut.begin}-{cut.end}", cut, step)
    return RateSet(folder, slices, folder / "history", rates, cut)


def _most_copies(source: Input) -> int:
    """The most copies whose vehicle numbers still fit their field; copies need no rows of their own."""
    span = stated_span(source)
    assert span is not None
    return _INT32 // max(span.vids, span.qids, 1)


def _rates(source: Input, folder: Path) -> Int64s:
    """Tuples by second; counted once."""
    file = folder / _RATES
    if not file.is_file():
        counted = np.zeros(0, np.int64)
        for path in source.files:
            times = pq.read_table(path, columns=["Time"])["Time"].to_numpy()
            of_file = np.bincount(times, minlength=len(counted))
            # Files follow each other in time, so a later one never counts fewer seconds.
            counted = of_file + np.pad(counted, (0, len(of_file) - len(counted)))
        write_text(file, json.dumps(counted.tolist()) + "\n")
    return np.array(json.loads(file.read_text(encoding="utf-8")), np.int64)


def _slices(source: Input, out: Path, cut: Window, step: Step) -> Slices:
    span = stated_span(source)
    assert span is not None
    # Read only the files that reach into the cut: the busiest minutes are usually the last ones.
    files = tuple(file for file in source.files if _reaches(file, cut))
    plan = PreparePlan(
        replace(source, files=files),
        groups=round(2 * span.expressways),
        span=span,
        begin=cut.begin,
        end=cut.end,
        halves=True,
    )
    return prepare(plan, out, lambda done, total: step("slices", done, total))


def _reaches(file: Path, cut: Window) -> bool:
    """Whether a file of generated rows, named rows-FIRST-LAST, holds seconds of the cut."""
    try:
        _, first, last = file.stem.split("-")
        return int(first) < cut.end and int(last) >= cut.begin
    except ValueError:
        raise InputError(f"{file} is not named like a file of `penstock lr generate`") from None
