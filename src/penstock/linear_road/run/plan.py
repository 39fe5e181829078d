"""What a run does: the options of `penstock lr run`, which also travel to a child process."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from penstock.linear_road.errors import InputError
from penstock.linear_road.rows.inputs import Delivery, history_beside, known_delivery
from penstock.model.durations import parse_duration
from penstock.model.errors import ExpressionError
from penstock.store.durable import Durability, known_durability

RECOVERY = "10 seconds"
"""Feeds stay until no train needs them, so state need not be written with every train."""


TOLL_LIMIT = 5
"""Seconds in which a toll is due (`response_times.LIMITS`, whose import compiles kernels)."""


def known_recovery(text: str) -> str:
    """The recovery target, if it is a length of time or 'off'."""
    try:
        known = text == "off" or parse_duration(text) > 0
    except ExpressionError:
        known = False
    if not known:
        raise InputError(f"--recovery {text} is not known", expected="for example '10 seconds', or 'off'")
    return text


def known_interval(seconds: float, speed: float) -> float:
    """The time between two trains, if answers can be in time with it."""
    limit = TOLL_LIMIT / speed
    if seconds and not 0 < seconds < limit:
        raise InputError(
            f"--interval {seconds:g} is no time between two trains",
            expected=f"seconds of the wall clock, less than the {limit:.3g} in which a toll is due"
            if limit
            else "none: at maximum speed a pause between trains only costs time",
        )
    return seconds


@dataclass(frozen=True)
class RunPlan:
    """The options of `penstock lr run`.

    `scored_from`: answers to earlier seconds are warm-up and counted separately.
    """

    source: Path
    out: Path
    history: Path | None = None
    speed: float = 1.0
    master: str | None = None
    checkpoint: Path | None = None
    expressways: float | None = None
    begin: int | None = None
    end: int | None = None
    scored_from: int | None = None
    most_behind: float | None = None
    """Give up when this many seconds of input are unanswered; None: never."""
    take_over: bool = False
    """Take over the folder from a process that still uses it."""
    durability: Durability = "process"
    delivery: Delivery = "packed"
    one_file: bool = True
    """Join the answers as `answers.csv`. Otherwise they stay as the tasks have written them."""
    recovery: str = RECOVERY
    """How long trains may have to run again after the machine went down; "off": each writes its state."""
    qos: bool = False
    """Under overload, leave whole groups of expressways out, so that the others are answered in time."""
    headroom: float | None = None
    interval: float = 0.0
    """Seconds between the departures of two trains at least: fewer trains cost less, and answers wait."""

    def __post_init__(self) -> None:
        known_durability(self.durability)
        known_delivery(self.delivery)
        known_recovery(self.recovery)
        if not self.speed > 0:
            raise InputError(f"--speed {self.speed:g} is not above 0", expected="a factor such as 1 or 60")
        known_interval(self.interval, self.speed)
        self._check_qos()
        if not self.source.exists():
            raise InputError(f"input {self.source} does not exist")
        if self.history is not None and not self.history.is_dir():
            raise InputError(
                f"--history {self.history} is no directory",
                expected="one with TollHistory and SegmentHistory files",
            )

    def _check_qos(self) -> None:
        if self.headroom is not None and not self.qos:
            raise InputError("--headroom has no effect without --qos", hint="add --qos")
        if self.headroom is not None and not 0 < self.headroom <= 1:
            raise InputError(f"--headroom {self.headroom:g} is no part of the capacity", expected="0 to 1")
        if self.qos and self.interval:
            raise InputError("--interval has no effect with --qos: control decides when trains leave")
        if self.qos and not self.ticks:
            raise InputError("--qos needs a clock: at maximum speed nothing is late")

    @property
    def past(self) -> Path | None:
        """The given history, or the one beside a flat file."""
        return self.history or history_beside(self.source)

    @property
    def ticks(self) -> bool:
        """Whether the run has a clock; at maximum speed there is none."""
        return math.isfinite(self.speed)

    def as_json(self) -> dict[str, str | float | None]:
        """What makes two calls the same run."""
        return {
            "out": str(self.out.resolve()),
            "input": str(self.source.resolve()),
            "history": None if self.past is None else str(self.past.resolve()),
            "speed": self.speed if self.ticks else "max",
            "xways": self.expressways,
            "from": self.begin,
            "until": self.end,
            "qos": self.qos or None,
        }
