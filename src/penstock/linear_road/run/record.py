"""What `run.json` holds: the record of a run, which ratings, reports and comparisons read."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from penstock.linear_road.drive.drive_report import DriveFigures
from penstock.linear_road.rows.copies import CopiesFigures
from penstock.linear_road.run.response_times import ResponseFigures, WarmUpLatency
from penstock.linear_road.validate.answer_files import LeftOut

READ_BY = "a task of Spark"
"""Who reads a delivered file: the system under test, not the driver or this process."""


class Machine(TypedDict):
    """The machine that the figures come from: `cores` that could be used, `load` at that moment."""

    cores: int
    memory_gb: float
    processor: str
    system: str
    load: float


class SampleFigures(TypedDict):
    """One `resource_use.Sample` in JSON."""

    t: float
    wall: float
    cpu_s: float
    memory_mb: float
    rows_in: int
    rows_out: int
    backlog_s: float
    stolen_s: NotRequired[float | None]
    major_faults: NotRequired[int | None]
    dirty_mb: NotRequired[float | None]


class TrainFigures(TypedDict):
    """One train: the last second it took, its tuples, and its time by phase.

    `waited_s`: from the arrival of its oldest tuple until it began. `ran_s`: from there to its commit, of
    which `job_s` until the last task had ended. As means of the partitions: `read_s`, in which tuples were
    read and decoded, `boxes_s`, in which boxes worked, `write_s`, in which answers were written, `state_s`,
    in which state was loaded and kept. What is left of `job_s` is Spark's own, or a partition that took
    longer.
    """

    second: int
    rows: int
    waited_s: float
    ran_s: float
    job_s: float
    read_s: float
    boxes_s: float
    write_s: float
    state_s: float


class Cost(TypedDict, total=False):
    """What a stretch of a run cost; empty if it was too short to be sampled."""

    wall_s: float
    cores: float
    cpu_s: float
    cpu_s_per_million: float | None
    tuples_in_per_s: float
    tuples_out_per_s: float
    memory_mb: float
    backlog_s: float


class WarmUp(TypedDict):
    """How long the warm-up took, and the first second whose answers are timed."""

    seconds: float
    scored_from: int


class InputFigures(TypedDict):
    """What was driven."""

    rows: int
    xways: float | None
    t0: int
    t1: int
    copies: CopiesFigures | None
    stored_xways: float | None
    kept_together: list[list[int]]


class Attempts(TypedDict):
    """How often a run was started, stopped cleanly, and killed."""

    starts: int
    clean_stops: int
    kills: int


class Rates(TypedDict):
    """Counts of one call (`answers`: of all calls), and rates."""

    tuples_in: int
    answers: int
    trains: int
    wall_s: float
    tuples_in_per_s: float
    answers_per_s: float


class Series(TypedDict, total=False):
    """The run over time: samples, trains, and response times by second if there was a clock."""

    samples: list[SampleFigures]
    trains: list[TrainFigures]
    second: list[int]
    p50: list[float | None]
    p99: list[float | None]


class RunRecord(TypedDict):
    """The contents of `run.json`.

    `format`: how the driver delivered tuples, as text or packed columns. `read_by`: who read them.
    `left_out`: of a run under control.
    """

    kind: str
    started: str
    finished: bool
    gave_up_at: int | None
    valid: bool
    speed: float | str
    clock: str
    machine: Machine
    versions: dict[str, str]
    config: dict[str, str | float | None]
    warm_up: WarmUp
    input: InputFigures
    attempts: Attempts
    format: str
    read_by: str
    driver: DriveFigures
    rates: Rates
    latency: dict[str, ResponseFigures]
    warm_up_latency: NotRequired[WarmUpLatency]
    answers: dict[str, int]
    cost: Cost
    series: Series
    dead_letters: NotRequired[int]
    answer_bytes: NotRequired[int]
    left_out: NotRequired[list[LeftOut]]
