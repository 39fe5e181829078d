"""What a rating consists of: its options, and which seconds of the three hours are driven and scored.

Idea: the load of Linear Road climbs through the run, so the busiest minutes decide. Mode `peak` cuts them
out, with a warm-up before them whose answers are checked but not timed. In mode `full`, trials use the peak
too, and the winner must carry all three hours. The result states what was shortened.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from penstock.linear_road.errors import InputError
from penstock.linear_road.rate.search import BRACKET, SHARE, Bounds
from penstock.linear_road.rows.arrays import Int64s
from penstock.linear_road.rows.inputs import Delivery, known_delivery
from penstock.linear_road.run.plan import RECOVERY, known_interval, known_recovery
from penstock.linear_road.run.rating_record import PlanFigures

MODES = ("peak", "full")


@dataclass(frozen=True)
class RatePlan:
    """The options of `penstock lr rate`; times are in minutes, except `warm_up` in seconds."""

    out: Path
    mode: str = "peak"
    minutes: int = 15
    begin: float = 50
    end: float | None = None
    trial_minutes: int = 3
    warm_up: int = 120
    base: float = 5
    traffic_minutes: int = 180
    days: int = 69
    seed: int = 1
    set: Path | None = None
    master: str | None = None
    keep: bool = False
    delivery: Delivery = "packed"
    recovery: str = RECOVERY
    speed: float = 1.0
    """How many times faster than real time; the limits shrink with it."""
    step: float = SHARE
    """How finely to search: how much larger the next L may be that fails, as a share."""
    interval: float = 0.0
    """Seconds between the departures of two trains at least."""

    def __post_init__(self) -> None:
        known_delivery(self.delivery)
        known_recovery(self.recovery)
        if not 0 < self.speed < math.inf:
            raise InputError(f"--speed {self.speed:g} is no factor", expected="a number such as 1 or 3")
        known_interval(self.interval, self.speed)
        if self.mode not in MODES:
            raise InputError(f"--mode {self.mode} is not known", expected="peak or full")
        for name, value in (("--to", self.end), ("--from", self.begin), ("--base", self.base)):
            if value is not None and (value < 0.5 or 2 * value != round(2 * value)):
                raise InputError(f"{name} {value:g} is no size", expected="0.5, 1, 1.5 and so on")
        if self.end is not None and self.end < self.begin:
            raise InputError(f"--to {self.end:g} is below --from {self.begin:g}")
        if not 0.01 <= self.step <= BRACKET:
            raise InputError(
                f"--step {self.step:g} is no step of the search",
                expected=f"a share from 0.01 to {BRACKET:g}, such as 0.05",
                hint="with a larger one the next L that fails would not bracket the rating",
            )
        if min(self.minutes, self.trial_minutes) < 1 or self.warm_up < 0:
            raise InputError(
                "--minutes, --trial-minutes or --warm-up is too short",
                expected="--minutes and --trial-minutes of 1 or more, --warm-up of 0 or more",
            )
        if self.warm_up + 60 * max(self.minutes, self.trial_minutes) > 60 * self.traffic_minutes:
            raise InputError(
                f"warm-up and scored minutes do not fit into the {self.traffic_minutes} minutes of traffic"
            )

    @property
    def bounds(self) -> Bounds:
        return Bounds(self.begin, self.end, self.step)

    @property
    def prepared_folder(self) -> Path:
        return self.set or self.out / "set"

    def as_json(self) -> PlanFigures:
        """What must stay the same for a rating to resume."""
        return {
            "mode": self.mode,
            "minutes": self.minutes,
            "from": self.begin,
            "to": self.end,
            "trial_minutes": self.trial_minutes,
            "warm_up_s": self.warm_up,
            "base": self.base,
            "traffic_minutes": self.traffic_minutes,
            "history_days": self.days,
            "seed": self.seed,
            "master": self.master,
            "format": self.delivery,
            "recovery": self.recovery,
            "speed": self.speed,
            "step": self.step,
            "interval": self.interval,
        }


@dataclass(frozen=True)
class Window:
    """Seconds begin..end-1 are driven; answers to those from `scored_from` on are timed."""

    begin: int
    scored_from: int
    end: int


def busiest(rates: Int64s, length: int, begin: int = 0) -> int:
    """The start of the busiest `length` seconds; `rates` are tuples by second from second `begin` on.

    >>> busiest(np.array([1, 5, 6, 2]), 2)
    1
    """
    # The sum of each stretch of this length. Of equal sums the earliest counts.
    sums = np.convolve(rates, np.ones(length, np.int64), "valid")
    return begin + int(np.argmax(sums))


def cut_of(plan: RatePlan, rates: Int64s) -> Window:
    """The seconds that the set must hold: all in mode full, else the busiest with the warm-up before them."""
    if plan.mode == "full":
        return Window(0, 0, len(rates))
    # Large enough for trials and for the confirming run, whichever is longer.
    return _window(plan, rates, 60 * max(plan.minutes, plan.trial_minutes), 0)


def trial_of(plan: RatePlan, rates: Int64s, cut: Window) -> Window:
    """The seconds of a trial: the busiest minutes of the cut, with a warm-up before them."""
    return _window(plan, rates[cut.begin : cut.end], 60 * plan.trial_minutes, cut.begin)


def confirmation_of(plan: RatePlan, rates: Int64s, cut: Window) -> Window:
    """The seconds of the confirming run: the requested minutes, or all three hours."""
    if plan.mode == "full":
        return cut
    return _window(plan, rates[cut.begin : cut.end], 60 * plan.minutes, cut.begin)


def _window(plan: RatePlan, rates: Int64s, scored: int, offset: int) -> Window:
    length = plan.warm_up + scored
    begin = busiest(rates, length, offset)
    return Window(begin, begin + plan.warm_up, begin + length)
