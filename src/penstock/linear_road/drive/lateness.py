"""How late a drive was: each second of one attempt, and the sum over all attempts.

Idea: response times mean nothing on a late stream, whichever attempt was late. So the driver's note records
what came late or fell due unattended. The next attempt takes it over, after a clean stop and after a kill.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypedDict

import numpy as np


class LatenessFigures(TypedDict):
    """How late tuples came, in milliseconds."""

    p50: float
    p99: float
    max: float


@dataclass
class Lateness:
    """How late each second came, in wall-clock seconds, weighted by its rows.

    >>> late = Lateness()
    >>> late.add(0.001, 99)
    >>> late.add(0.5, 1)
    >>> late.milliseconds()
    {'p50': 1.0, 'p99': 1.0, 'max': 500.0}
    """

    late: list[float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)

    def add(self, late: float, rows: int) -> None:
        self.late.append(late)
        self.rows.append(rows)

    def milliseconds(self) -> LatenessFigures | None:
        """The lateness of the median tuple, of the 99th percentile, and of the latest.

        None if nothing was measured.
        """
        if not self.late:
            return None
        # Weighted by rows: a second with many tuples counts for many.
        late = np.array(self.late) * 1000
        order = np.argsort(late, kind="stable")
        share = np.cumsum(np.array(self.rows)[order]) / sum(self.rows)
        p50, p99 = (float(late[order][np.searchsorted(share, p)]) for p in (0.5, 0.99))
        return {"p50": round(p50, 3), "p99": round(p99, 3), "max": round(float(late.max()), 3)}


class BehindFigures(TypedDict):
    """How far behind, in JSON."""

    late_seconds: int
    first_late: int | None
    overdue: int


@dataclass(frozen=True)
class Behind:
    """How far behind an input was, over all attempts to drive it.

    >>> Behind().late(7).late(9).unattended()
    Behind(late_seconds=2, first_late=7, overdue=1)
    """

    late_seconds: int = 0
    first_late: int | None = None
    overdue: int = 0

    def late(self, second: int) -> Behind:
        """Count a second that came too late."""
        first = second if self.first_late is None else self.first_late
        return replace(self, late_seconds=self.late_seconds + 1, first_late=first)

    def unattended(self) -> Behind:
        """Count a second that fell due while nobody drove."""
        return replace(self, overdue=self.overdue + 1)

    def __bool__(self) -> bool:
        return self.late_seconds > 0 or self.overdue > 0

    def as_json(self) -> BehindFigures:
        return {"late_seconds": self.late_seconds, "first_late": self.first_late, "overdue": self.overdue}
