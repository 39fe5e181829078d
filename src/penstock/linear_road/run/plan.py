"""What a run does: the options of `penstock lr run`, which also travel to a child process."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from penstock.linear_road.errors import InputError
from penstock.linear_road.rows.inputs import history_beside


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

    def __post_init__(self) -> None:
        if not self.speed > 0:
            raise InputError(f"--speed {self.speed:g} is not above 0; expected a factor such as 1 or 60.")
        if not self.source.exists():
            raise InputError(f"Input {self.source} does not exist.")
        if self.history is not None and not self.history.is_dir():
            raise InputError(
                f"--history {self.history} is no directory; expected one with TollHistory and SegmentHistory."
            )

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
        }
