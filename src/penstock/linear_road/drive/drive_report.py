"""What a drive did: its report, and the note that the driver keeps beside what it delivers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypedDict, cast

from penstock.linear_road.drive.lateness import BehindFigures, LatenessFigures
from penstock.linear_road.rows.copies import CopiesFigures
from penstock.store.durable import write_text

STATE_FILE = "_drive.json"
"""How far a drive to a directory is, and at the end its report; hidden from readers by the underscore."""


class DriveFigures(TypedDict, total=False):
    """A `DriveReport` in JSON; empty if the driver left none."""

    source: str
    to: str
    format: str
    speed: float | str
    t0: int
    t1: int
    xways: float | None
    groups: int
    copies: CopiesFigures
    rows: int
    bytes: int
    seconds: int
    refused_rows_passed_on: int
    lateness_ms: LatenessFigures | None
    most_late_allowed_s: float
    late_seconds: int
    first_late: int | None
    stopped_at: int | None
    lost: str | None
    valid: bool
    wall_seconds: float
    cpu_seconds: float
    cpu_share: float
    clock: str
    overdue_at_resume: int


@dataclass(frozen=True)
class DriveReport:
    """What a drive did. `valid` is false if it fell behind, was stopped, or lost its target.

    Lateness is counted over all attempts (`late_seconds`, `first_late`, `overdue_at_resume`). The other
    figures describe the last attempt.
    """

    source: str
    to: str
    format: str
    speed: float | str
    t0: int
    t1: int
    xways: float | None
    groups: int
    copies: CopiesFigures
    rows: int
    bytes: int
    seconds: int
    refused_rows_passed_on: int
    lateness_ms: LatenessFigures | None
    most_late_allowed_s: float
    late_seconds: int
    first_late: int | None
    stopped_at: int | None
    lost: str | None
    valid: bool
    wall_seconds: float
    cpu_seconds: float
    cpu_share: float
    clock: str
    overdue_at_resume: int = 0
    """Seconds that fell due while nobody drove, after a kill. They came at once and void response times."""

    def as_json(self) -> DriveFigures:
        return cast("DriveFigures", asdict(self))


class DriveNote(TypedDict, total=False):
    """What the driver keeps beside what it delivers, see `read_note`."""

    next: int
    rows: int
    behind: BehindFigures
    report: DriveFigures | None


def read_note(path: Path) -> DriveNote:
    """The note that a driver keeps beside what it delivers; empty before its first one.

    `next`: the second after the last one surely delivered (files that already exist are skipped). `behind`:
    see `lateness.Behind`. `report`: how the drive ended.
    """
    try:
        note: DriveNote = json.loads((path / STATE_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}


def drop_report(path: Path) -> None:
    """Remove an earlier attempt's report from the note, so that nobody takes it for the next one's."""
    note = read_note(path)
    if note.get("report") is not None:
        write_text(path / STATE_FILE, json.dumps({**note, "report": None}) + "\n")
