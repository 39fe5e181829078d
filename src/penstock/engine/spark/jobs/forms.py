"""Which way a train runs: as one task, as a job of tasks, or as DataFrames.

A train of DataFrames is analysed, planned and compiled anew, which costs hundreds of milliseconds of
processor time, whatever it carries. A job of plain tasks costs a fraction of that, but has no generated code.
So short trains are jobs, and long ones are DataFrames. A DataFrame that goes through dozens of stages is
planned anew after each of them, which takes minutes; such sub-networks run as tasks, however long the train.
Ticket and network alone decide, so a replay runs the same way.
"""

from __future__ import annotations

from enum import StrEnum

from penstock.connectors.contract import Slice
from penstock.engine.contract.policy import LIMITS, LONG_JOB_BYTES, LONG_TASK_BYTES, FormLimits
from penstock.engine.contract.ticket import Ticket
from penstock.engine.spark.layout.plan import Layout


class Form(StrEnum):
    """How a train runs."""

    ONE_TASK = "one task"  # the whole train is one partition
    TASKS = "tasks"  # a task for each partition, and Spark's shuffle before each further stage
    FRAMES = "DataFrames"


def forms_text(layout: Layout, limits: FormLimits = LIMITS) -> str:
    """One line for `explain`: which way the trains of a sub-network run.

    >>> from penstock.engine.spark.layout.plan import Layout
    >>> forms_text(Layout((), (), {}))
    'trains: one task up to 2,000 tuples and 512 kB, tasks up to 20,000 and 8 MB, longer ones DataFrames'
    """
    if any(stage.spread for stage in layout.stages):
        return "trains: DataFrames"
    one = f"one task up to {limits.one_task_tuples:,} tuples and {limits.one_task_bytes >> 10} kB"
    if layout.rooted:
        return f"trains: {one}, longer ones tasks; packed"
    if len(layout.stages) > limits.frame_stages:
        return f"trains: {one}, longer ones tasks, because of {len(layout.stages)} stages"
    many = f"tasks up to {limits.job_tuples:,} and {limits.job_bytes >> 20} MB"
    return f"trains: {one}, {many}, longer ones DataFrames"


def form_of(ticket: Ticket, layout: Layout, limits: FormLimits = LIMITS) -> Form:
    """The form of a train.

    A packed train is never one of DataFrames, nor one through many stages, nor one whose ticket asks for a
    job. One with a diffused join always is: its roles say where tuples go.
    """
    if any(stage.spread for stage in layout.stages):
        return Form.FRAMES
    size = sum(s.weight() for pieces in ticket.slices.values() for s in pieces if isinstance(s, Slice))
    asked = ticket.rows <= ticket.one_task_tuples and size <= LONG_TASK_BYTES
    if asked or (ticket.rows <= limits.one_task_tuples and size <= limits.one_task_bytes):
        return Form.ONE_TASK
    if layout.rooted or len(layout.stages) > limits.frame_stages:
        return Form.TASKS
    asked = ticket.rows <= ticket.job_tuples and size <= LONG_JOB_BYTES
    if asked or (ticket.rows <= limits.job_tuples and size <= limits.job_bytes):
        return Form.TASKS
    return Form.FRAMES
