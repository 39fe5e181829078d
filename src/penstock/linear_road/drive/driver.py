"""The data driver: every tuple at its time, on one clock.

Idea: a second's rows are staged while the clock still shows the second before, and made visible when due:
start + (t - T0) / speed. The driver never drops, reorders or delivers early. If it cannot keep up, it goes
on, says so, and marks the run invalid, because response times measured on a late stream mean nothing. Arasu
et al., "Linear Road", VLDB 2004, section 3.3 (the data driver).
"""

from __future__ import annotations

import contextlib
import json
import math
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from penstock.linear_road.drive.clock import CLOCK_FILE, MAXIMUM, Clock
from penstock.linear_road.drive.drive_report import STATE_FILE, DriveNote, DriveReport, read_note
from penstock.linear_road.drive.lateness import Behind, Lateness
from penstock.linear_road.drive.prepare import PreparePlan, prepare
from penstock.linear_road.drive.slices import (
    Slice,
    Slices,
    Unit,
    assemble,
    assemble_packed,
    group_plan,
    half_plan,
    is_slices,
    open_slices,
    stored_groups,
)
from penstock.linear_road.drive.targets import DirectoryTarget, Target, open_target
from penstock.linear_road.errors import InputError
from penstock.linear_road.rows.copies import Copies, copies_of, span_of
from penstock.linear_road.rows.inputs import Delivery, Format, open_input
from penstock.linear_road.rows.packed_rows import pack
from penstock.linear_road.rows.progress import Progress, silent
from penstock.process.stop_signal import StopSignal
from penstock.store.durable import Durability, write_text

MOST_LATE = 1.0
"""Seconds of the clock by which a delivery may be late before the run is invalid."""

_NOTE_EVERY = 0.05
Say = Callable[[str], None]


@dataclass(frozen=True)
class DrivePlan:
    """What to deliver and how: the options of `penstock lr drive`.

    `begin` and `end` bound the seconds driven, begin <= t < end. `expressways` or `copies` make a larger
    input from shifted copies.
    """

    source: Path
    to: str = "-"
    speed: float = 1.0
    begin: int | None = None
    end: int | None = None
    lenient: bool = False
    groups: int | None = None
    format: Format | None = None
    copies: int | None = None
    expressways: float | None = None
    clock_file: Path | None = None
    resume: bool = False
    most_late: float = MOST_LATE
    durability: Durability = "process"
    delivery: Delivery = "text"

    def __post_init__(self) -> None:
        if not self.speed > 0:
            raise InputError(
                f"--speed {self.speed:g} is not above 0", expected="a factor such as 1 or 60, or max"
            )
        if self.begin is not None and self.begin < 0:
            raise InputError(f"--from {self.begin} is below 0", expected="a second of the run")
        if self.begin is not None and self.end is not None and self.end <= self.begin:
            raise InputError(f"--until {self.end} is not after --from {self.begin}")
        if self.copies is not None and self.expressways is not None:
            raise InputError("--copies and --xways say the same thing", hint="give one of them")
        if not self.most_late >= 0:
            raise InputError(
                f"--most-late {self.most_late:g} is not 0 or more", expected="seconds of the clock"
            )
        if self.groups is not None and self.groups < 1:
            raise InputError(f"--groups {self.groups} is too few", expected="1 or more")


@dataclass(frozen=True)
class Feed:
    """Slices to deliver: the stored groups of a second become delivered groups, with all copies."""

    slices: Slices
    copies: Copies
    plan: list[list[Unit]]
    begin: int
    end: int
    delivery: Delivery = "text"

    @property
    def groups(self) -> int:
        return len(self.plan)

    @property
    def suffix(self) -> str:
        """How the names of delivered files end."""
        return "packed" if self.delivery == "packed" else self.slices.format

    @property
    def expressways(self) -> float | None:
        """The expressways delivered, halves counting 0.5; None if the slices do not know their span."""
        span = self.slices.span
        if span is None:
            return None
        if self.slices.halves:
            return sum(map(len, self.plan)) / 2
        return span.expressways * self.copies.count

    @property
    def torn(self) -> bool:
        """Whether expressways that must stay together (`Span.together`) go to different groups."""
        span = self.slices.span
        if span is None or not span.together:
            return False
        # Groups are ranges of expressways: if both ends of a range are in one group, so is all between.
        homes = {unit: group for group, units in enumerate(self.plan) for unit in units}
        stored = self.slices.groups
        return any(
            homes[k, low * stored // span.xways] != homes[k, high * stored // span.xways]
            for k in range(self.copies.count)
            for low, high in span.together
        )

    def roads(self, group: int) -> list[int]:
        """The expressways of a delivered group; none if the slices do not know their span."""
        return sorted({k * self.copies.xway + x for k, unit in self.plan[group] for x in self._stored(unit)})

    def _stored(self, unit: int) -> list[int]:
        """The expressways of a stored group."""
        if self.slices.halves:
            return [unit // 2]
        xways = 0 if self.slices.span is None else self.slices.span.xways
        return [x for x in range(xways) if x * self.slices.groups // xways == unit]

    def rows(self) -> int:
        """How many rows all seconds of this feed have."""
        counted = [self.slices.rows(self.begin, self.end, group) for group in range(self.slices.groups)]
        return sum(counted[group] for units in self.plan for _, group in units)

    def at(self, second: int) -> list[Slice]:
        """What to deliver at a second, one slice for each group."""
        stored = [self.slices.slice(second, group) for group in range(self.slices.groups)]
        if self.delivery == "packed":
            # Pack each stored slice once; copies only shift it.
            packed = [pack(np.asarray(piece.data), second) for piece in stored]
            return [assemble_packed(packed, units, self.copies) for units in self.plan]
        return [assemble(stored, units, self.copies, self.slices.format) for units in self.plan]


def drive(
    plan: DrivePlan, *, progress: Progress = silent, preparing: Progress = silent, say: Say = lambda _: None
) -> DriveReport:
    """Deliver an input, prepared or not, and report how late it was."""
    # Open the target first: a wrong one must be refused before a large input is cut.
    sync = plan.durability == "power"
    suffix = "packed" if plan.delivery == "packed" else _form(plan)
    target = open_target(plan.to, suffix, resume=plan.resume, sync=sync)
    try:
        with _slices_of(plan, preparing, say) as slices, StopSignal().on_signals() as stop:
            return _Delivery(plan, feed_of(plan, slices), target, stop, progress, say).run()
    finally:
        target.close()


def _form(plan: DrivePlan) -> Format:
    return open_slices(plan.source).format if is_slices(plan.source) else plan.format or "csv"


def prepare_for(plan: DrivePlan, out: Path, progress: Progress = silent) -> Slices:
    """`--prepare`: write the slices of an input, copies included, for driving them later."""
    if is_slices(plan.source):
        raise InputError(
            f"{plan.source} already holds slices", hint="--prepare needs the input that they come from"
        )
    source = open_input(plan.source)
    span = span_of(source)
    copies = copies_of(span, count=plan.copies, expressways=plan.expressways)
    form = plan.format or "csv"
    return prepare(
        PreparePlan(source, plan.groups or 1, form, copies, span, plan.begin, plan.end, plan.lenient),
        out,
        progress,
    )


@contextlib.contextmanager
def _slices_of(plan: DrivePlan, progress: Progress, say: Say) -> Iterator[Slices]:
    """The prepared slices, or slices made for this drive and removed after it."""
    if is_slices(plan.source):
        slices = open_slices(plan.source)
        broken = slices.manifest["refused_rows_passed_on"]
        if broken and not plan.lenient:
            raise InputError(
                f"the slices {plan.source} hold {broken} rows that break the format",
                hint="--lenient passes them on",
            )
        yield slices
        return
    with tempfile.TemporaryDirectory(prefix="penstock-drive-") as scratch:
        slices = prepare(_scratch_plan(plan), Path(scratch) / "slices", progress)
        say("The input was cut into slices for this drive only; --prepare DIR keeps them.")
        yield slices


def _scratch_plan(plan: DrivePlan) -> PreparePlan:
    source = open_input(plan.source)
    many = (plan.groups or 1) > 1 or plan.copies is not None or plan.expressways is not None
    span = span_of(source) if many else None
    copies = 1 if span is None else copies_of(span, count=plan.copies, expressways=plan.expressways).count
    stored = 1 if span is None else stored_groups(plan.groups or 1, copies, span.xways)
    # Copies are made during delivery, so the scratch slices stay as small as the input.
    return PreparePlan(
        source, stored, plan.format or "csv", Copies(), span, plan.begin, plan.end, plan.lenient
    )


def feed_of(plan: DrivePlan, slices: Slices) -> Feed:
    """What a drive delivers from prepared slices."""
    if plan.format is not None and plan.format != slices.format:
        raise InputError(
            f"the slices {plan.source} are {slices.format}",
            hint=f"--format {plan.format} needs another --prepare",
        )
    if plan.delivery == "packed" and slices.format != "csv":
        raise InputError(
            f"the slices {plan.source} are {slices.format}", expected="text: nothing else can be packed"
        )
    copies, units = _copies_and_units(plan, slices)
    if copies.count > 1 and slices.manifest["unparsed_rows_passed_on"]:
        raise InputError(
            f"the slices {plan.source} hold rows that are not 15 integers, which cannot be shifted"
        )
    begin = slices.t0 if plan.begin is None else plan.begin
    end = slices.t1 if plan.end is None else min(plan.end, slices.t1)
    if begin < slices.t0 or begin >= end:
        raise InputError(
            f"--from {begin} is outside of the slices {plan.source}",
            expected=f"a second of {slices.t0}..{slices.t1 - 1}",
        )
    return Feed(slices, copies, units, begin, end, plan.delivery)


def _copies_and_units(plan: DrivePlan, slices: Slices) -> tuple[Copies, list[list[Unit]]]:
    """The copies of the slices that make up the requested size, and the groups they are delivered in."""
    copies = Copies()
    if plan.copies is not None or plan.expressways is not None:
        if slices.span is None:
            raise InputError(
                f"the slices {plan.source} do not know their span", hint="prepare them again to make copies"
            )
        if slices.halves and plan.expressways is not None:
            return _halves(plan.expressways, plan.groups, slices)
        copies = copies_of(slices.span, count=plan.copies, expressways=plan.expressways)
    return copies, group_plan(slices.groups, copies.count, plan.groups or slices.groups)


def _halves(expressways: float, groups: int | None, slices: Slices) -> tuple[Copies, list[list[Unit]]]:
    assert slices.span is not None
    if expressways <= 0 or 2 * expressways != round(2 * expressways):
        raise InputError(
            f"--xways {expressways:g} is no number of half expressways", expected="0.5, 1, 1.5 and so on"
        )
    copies = copies_of(slices.span, count=math.ceil(expressways / slices.span.expressways))
    return copies, half_plan(slices.groups, expressways, groups or 1)


@dataclass
class _Delivery:
    """A delivery in progress."""

    plan: DrivePlan
    feed: Feed
    target: Target
    stop: threading.Event
    progress: Progress
    say: Say
    lateness: Lateness = field(default_factory=Lateness)
    behind: Behind = field(default_factory=Behind)
    rows: int = 0
    bytes: int = 0
    stopped_at: int | None = None
    lost: str | None = None
    clock: Clock | None = None
    _resumed_at: float = 0.0
    _recorded: float = 0.0
    _warned: bool = False

    def run(self) -> DriveReport:
        began, cpu = time.perf_counter(), time.process_time()
        for second in range(self._first(), self.feed.end):
            if not self._tried(second):
                self.stopped_at = second
                break
        wall = time.perf_counter() - began
        report = self._report(wall, time.process_time() - cpu)
        # A full disk has no room for the notes either; the caller has the report.
        with contextlib.suppress(OSError):
            self._record(self.feed.end if self.stopped_at is None else self.stopped_at, report)
        with contextlib.suppress(OSError):
            if self.stopped_at is not None and self.clock is not None:
                self._keep_clock(self.clock.paused())
        return report

    def _first(self) -> int:
        """The first second to deliver; a resumed drive keeps its clock and starts after what it recorded."""
        if not self.plan.resume or not isinstance(self.target, DirectoryTarget):
            return self.feed.begin
        path = self.target.path
        if (path / CLOCK_FILE).is_file():
            clock = Clock.load(path)
            if clock.speed != self.plan.speed:
                raise InputError(
                    f"the drive to {path} runs at speed {clock.speed:g}",
                    hint="--resume needs the same --speed",
                )
            # While the clock was paused, nothing fell due. What was overdue before the stop still is.
            paused = 0.0 if clock.paused_at is None else self.plan.most_late / self.plan.speed
            self._resumed_at = time.time() - paused
            self._keep_clock(clock.resumed())
        note = read_note(path)
        if "behind" in note:
            self.behind = Behind(**note["behind"])
        return max(self.feed.begin, int(note.get("next", 0)))

    def _tried(self, second: int) -> bool:
        try:
            return self._second(second)
        except OSError as error:
            self.lost = f"{self.plan.to} was lost at second {second}: {error.strerror or error}"
            self.say(f"The target {self.lost}; this run is not valid.")
            return False

    def _second(self, second: int) -> bool:
        """Deliver one second; False if the drive was stopped before it."""
        slices = self.feed.at(second)
        self.target.stage(second, slices)
        if self.clock is None:
            # The clock starts when the first second is ready to go.
            self._keep_clock(Clock(time.time(), self.feed.begin, self.plan.speed))
        # What was staged vanishes when the target is closed, so a stopped drive delivers no half second.
        if not self._wait(second):
            return False
        # From here to the end of `deliver` counts as lateness, so nothing else happens in between.
        self.target.deliver()
        self._delivered(second, slices)
        return True

    def _wait(self, second: int) -> bool:
        assert self.clock is not None
        if not self.clock.ticks:
            return not self.stop.is_set()
        # Waking up early is possible; delivering early is not allowed.
        while (rest := self.clock.due(second) - time.time()) > 0:
            if self.stop.wait(rest):
                return False
        return not self.stop.is_set()

    def _delivered(self, second: int, slices: list[Slice]) -> None:
        rows = sum(piece.rows for piece in slices)
        assert self.clock is not None
        # Due before this attempt began, when nobody drove. That is no fault of this attempt, but it voids the
        # run.
        if self.clock.ticks and self.clock.due(second) < self._resumed_at:
            self.behind = self.behind.unattended()
        # A second without rows makes nobody wait, so it cannot be late.
        elif rows and self.clock.ticks:
            late = time.time() - self.clock.due(second)
            self.lateness.add(late, rows)
            if late > self.plan.most_late / self.plan.speed:
                self.behind = self.behind.late(second)
                self._warn(second, late * self.plan.speed)
        self.rows += rows
        self.bytes += sum(len(piece.data) for piece in slices)
        self._record(second + 1)
        self.progress(second + 1 - self.feed.begin, self.feed.end - self.feed.begin)

    def _warn(self, second: int, late: float) -> None:
        if not self._warned:
            self._warned = True
            self.say(
                f"The driver fell behind: second {second} came {late:.1f} s late; this run is not valid."
            )

    def _keep_clock(self, clock: Clock) -> None:
        self.clock = clock
        if isinstance(self.target, DirectoryTarget):
            clock.save(self.target.path / CLOCK_FILE)
        if self.plan.clock_file is not None:
            clock.save(self.plan.clock_file)

    def _record(self, following: int, report: DriveReport | None = None) -> None:
        """Record the progress of the drive, but rarely enough not to slow down a fast one."""
        if not isinstance(self.target, DirectoryTarget) or (
            report is None and time.time() < self._recorded + _NOTE_EVERY
        ):
            return
        self._recorded = time.time()
        note: DriveNote = {
            "next": following,
            "rows": self.rows,
            "behind": self.behind.as_json(),
            "report": None if report is None else report.as_json(),
        }
        file = self.target.path / STATE_FILE
        # A flush takes longer than writing a second's files, and a lost note only makes a resumed drive skip
        # files that exist. So notes on the way are flushed only if a power cut must do no harm.
        sync = report is not None or self.plan.durability == "power"
        write_text(file, json.dumps(note, indent=2) + "\n", sync=sync)

    def _report(self, wall: float, cpu: float) -> DriveReport:
        manifest = self.feed.slices.manifest
        # Report copies made by --prepare and copies made during delivery together.
        stored = Copies(**manifest["copies"])
        count = stored.count * self.feed.copies.count
        step = stored if stored.count > 1 else self.feed.copies
        return DriveReport(
            source=str(self.plan.source),
            to=self.plan.to,
            format=self.feed.slices.format if self.plan.delivery == "text" else "packed",
            speed="max" if self.plan.speed == MAXIMUM else self.plan.speed,
            t0=self.feed.begin,
            t1=self.feed.end,
            xways=self.feed.expressways,
            groups=self.feed.groups,
            copies=replace(step, count=count).as_json(),
            rows=self.rows,
            bytes=self.bytes,
            seconds=(self.feed.end if self.stopped_at is None else self.stopped_at) - self.feed.begin,
            refused_rows_passed_on=manifest["refused_rows_passed_on"],
            lateness_ms=self.lateness.milliseconds(),
            most_late_allowed_s=self.plan.most_late,
            late_seconds=self.behind.late_seconds,
            first_late=self.behind.first_late,
            stopped_at=self.stopped_at,
            lost=self.lost,
            valid=not self.behind and self.stopped_at is None,
            wall_seconds=round(wall, 3),
            cpu_seconds=round(cpu, 3),
            cpu_share=round(cpu / wall, 4) if wall else 0.0,
            clock="none: maximum speed, Emit = Time" if self.plan.speed == MAXIMUM else "wall clock",
            overdue_at_resume=self.behind.overdue,
        )
