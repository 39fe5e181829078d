"""What `rating.json` holds: the trials of a rating and its result.

It lies beside the record of a run, because pages and comparisons read both.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict

from penstock.linear_road.drive.drive_report import DriveFigures
from penstock.linear_road.rows.copies import CopiesFigures
from penstock.linear_road.run.record import Cost, Machine, Series
from penstock.linear_road.run.response_times import ResponseFigures, WarmUpLatency
from penstock.linear_road.validate.shifted import ShiftedFigures

Trial = TypedDict(
    "Trial",
    {
        "L": float,
        "pass": bool,
        "crashed": NotRequired[str | None],
        "late": int | None,
        "wrong": int | None,
        "p99": dict[str, float | None],
        "confirming": bool,
        "void": str | None,
        "gave_up_at": int | None,
        "seconds": list[int],
        "scored_from": int,
        "latency": dict[str, ResponseFigures],
        "cost": Cost,
        "tuples": int | None,
        "copies": CopiesFigures | None,
        "driver": DriveFigures,
        "warm_up_s": float | None,
        "warm_up_latency": NotRequired[WarmUpLatency | None],
        "validation": ShiftedFigures | None,
        "series": Series,
        "load_at_end": float,
        "took_s": float,
        "disk_bytes": NotRequired[int],
        "answer_bytes": NotRequired[int],
    },
)
"""One trial. `void`: why it says nothing about the system. `crashed`: how its run ended without a record."""

PlanFigures = dict[str, str | float | None]
"""The options of a rating, by name."""


class SetFacts(TypedDict):
    """What a rating says about its input."""

    stored_xways: float
    seconds: list[int]
    shifted_copies: bool
    source: str


class NextWall(TypedDict):
    """What limits the system: the smallest L above the rating that failed, and what its trial showed."""

    L: float
    why: list[str]


class Rating(TypedDict):
    """The contents of `rating.json`."""

    kind: str
    date: str
    mode: str
    rating: float
    confirmed: bool
    scored_minutes: float
    bracketed: bool
    next_wall: NextWall | None
    machine: Machine
    versions: dict[str, str]
    plan: PlanFigures
    input: SetFacts
    format: str
    read_by: str
    what_was_shortened: list[str]
    trials: list[Trial]
