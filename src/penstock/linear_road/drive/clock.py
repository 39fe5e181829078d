"""The clock of a run: Linear Road time for the driver and for whoever stamps answers.

Idea: time is a straight line, `t0 + (wall - start) * speed`. So three numbers in a small file are the whole
clock, and any process that reads the file has the same clock. It reads T0 at the start, keeps running through
a crash, and stands still after a clean stop. At maximum speed there is no clock. Arasu et al., "Linear Road",
VLDB 2004, section 3.2.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict

from penstock.linear_road.errors import ClockError
from penstock.store.durable import write_text

CLOCK_FILE = "_clock.json"
"""Name of the clock beside delivered files.

The underscore hides it from readers that follow the directory.
"""

MAXIMUM = math.inf
"""The speed of a run without a clock: everything as fast as it goes."""


class ClockFigures(TypedDict):
    """A clock in JSON; `speed` is "max" for a run without a clock."""

    start_wall: float
    t0: float
    speed: float | str
    paused_at: float | None


@dataclass(frozen=True)
class Clock:
    """Linear Road time: it read `t0` at wall-clock time `start_wall` and runs `speed` times as fast.

    `start_wall` is in seconds since 1970.

    >>> clock = Clock(start_wall=1000.0, t0=60, speed=10)
    >>> clock.reading(1000.0), clock.reading(1001.5), clock.reading(999.0)
    (60.0, 75.0, 60.0)
    >>> clock.due(120)
    1006.0
    """

    start_wall: float
    t0: float
    speed: float = 1.0
    paused_at: float | None = None

    def __post_init__(self) -> None:
        if not self.speed > 0:
            raise ClockError(f"a clock of speed {self.speed:g}", expected="a speed above 0")

    @property
    def ticks(self) -> bool:
        """False for a run at maximum speed, where Emit = Time."""
        return math.isfinite(self.speed)

    def now(self) -> float:
        """The time on this clock."""
        # Wall-clock time and not a monotonic clock: driver, tasks and a resumed run must all read the same.
        return self.reading(time.time())

    def reading(self, wall: float) -> float:
        """What this clock shows at a wall-clock time; T0 before the start."""
        if not self.ticks:
            raise ClockError("a run at maximum speed has no clock", hint="stamp Emit = Time instead")
        if self.paused_at is not None:
            return self.paused_at
        return self.t0 + max(0.0, wall - self.start_wall) * self.speed

    def due(self, t: float) -> float:
        """The wall-clock time at which this clock reads `t`."""
        return self.start_wall + (t - self.t0) / self.speed

    def paused(self) -> Clock:
        """The clock stopped at its current time."""
        return replace(self, paused_at=self.now()) if self.ticks else self

    def resumed(self) -> Clock:
        """The clock running again from where it was paused; a clock that was never paused stays unchanged."""
        if self.paused_at is None:
            return self
        # Move the start: then all that is not delivered yet falls due later, by the length of the pause.
        start = time.time() - (self.paused_at - self.t0) / self.speed
        return replace(self, start_wall=start, paused_at=None)

    def save(self, path: Path) -> None:
        """Write the clock for other processes, whole or not at all."""
        figures = ClockFigures(
            start_wall=self.start_wall,
            t0=self.t0,
            speed=self.speed if self.ticks else "max",
            paused_at=self.paused_at,
        )
        write_text(path, json.dumps(figures) + "\n")

    @classmethod
    def load(cls, path: Path) -> Clock:
        """Read a saved clock; `path` is the file, or the directory a driver delivers to."""
        file = path / CLOCK_FILE if path.is_dir() else path
        try:
            return cls._from_json(json.loads(file.read_text(encoding="utf-8")))
        except FileNotFoundError as error:
            raise ClockError(
                f"there is no clock at {file}", hint="a driver writes it when it starts"
            ) from error
        except (OSError, ValueError, KeyError, TypeError, ClockError) as error:
            raise ClockError(f"the clock {file} cannot be read: {error!r}") from error

    @classmethod
    def _from_json(cls, figures: ClockFigures) -> Clock:
        speed = MAXIMUM if figures["speed"] == "max" else float(figures["speed"])
        paused = figures.get("paused_at")
        start, t0 = float(figures["start_wall"]), float(figures["t0"])
        return cls(start, t0, speed, None if paused is None else float(paused))
