"""Which way a train runs follows from its ticket and its layout alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

import penstock as ps
from penstock.connectors.rows import SpoolFile
from penstock.engine.contract.policy import LIMITS, LONG_TASK_BYTES
from penstock.engine.contract.ticket import Ticket
from penstock.engine.spark.entry.points import PointEntries
from penstock.engine.spark.jobs.forms import Form, form_of, forms_text
from penstock.engine.spark.jobs.planning import stage_levels
from penstock.engine.spark.layout.plan import Layout, Stage, lay_out
from penstock.rewrite.subnetworks import split
from penstock.testing import collect, rows_source

PLAIN = Layout((), (), {})
PACKED = Layout((), (), {}, rooted=True)
MANY = Layout((), tuple(Stage(str(n), ("k",)) for n in range(LIMITS.frame_stages + 1)), {})
DIFFUSED = Layout((), (Stage("pairs", ("_server",), 4),), {})


@dataclass(frozen=True)
class Heavy(SpoolFile):
    """A slice of given weight."""

    size: int = 0

    def weight(self) -> int:
        return self.size


def ticket(rows: int, size: int = 0) -> Ticket:
    return Ticket(3, 0.0, slices={"cars": [Heavy("x", 0, rows, size)]}, rows=rows)


@pytest.mark.parametrize(
    ("rows", "size", "form"),
    [
        (0, 0, Form.ONE_TASK),
        (LIMITS.one_task_tuples, LIMITS.one_task_bytes, Form.ONE_TASK),
        (LIMITS.one_task_tuples + 1, 0, Form.TASKS),
        (1, LIMITS.one_task_bytes + 1, Form.TASKS),
        (LIMITS.job_tuples, LIMITS.job_bytes, Form.TASKS),
        (LIMITS.job_tuples + 1, 0, Form.FRAMES),
        (1, LIMITS.job_bytes + 1, Form.FRAMES),
    ],
)
def test_by_tuples_and_bytes(rows, size, form):
    assert form_of(ticket(rows, size), PLAIN) is form
    assert form_of(ticket(rows, size), PACKED) is (Form.TASKS if form is Form.FRAMES else form)
    assert form_of(ticket(rows, size), MANY) is (Form.TASKS if form is Form.FRAMES else form)
    assert form_of(ticket(rows, size), DIFFUSED) is Form.FRAMES


@pytest.mark.parametrize(
    ("rows", "size", "form"),
    [
        (9_000, LONG_TASK_BYTES, Form.ONE_TASK),
        (9_001, 0, Form.TASKS),
        (9_000, LONG_TASK_BYTES + 1, Form.TASKS),
    ],
)
def test_a_ticket_may_ask_for_one_task(rows, size, form):
    asks = replace(ticket(rows, size), one_task_tuples=9_000)
    assert form_of(asks, PLAIN) is form
    assert form_of(asks, DIFFUSED) is Form.FRAMES


def test_entries_of_a_point_count_by_their_tuples():
    entries = Ticket(3, 0.0, slices={"p": [PointEntries(0, 7, 30_000)]}, rows=30_000)
    assert form_of(entries, PLAIN) is Form.FRAMES


def test_explain_says_it():
    net = ps.Network("n")
    net.source("cars", rows_source("time TIMESTAMP, k INT"), timestamp="time").output("out", to=collect())
    text = forms_text(lay_out(split(net)[0]))
    assert text.startswith("trains: one task up to 2,000 tuples")
    assert text.endswith("longer ones DataFrames")
    assert forms_text(PACKED).endswith("longer ones tasks; packed")
    assert forms_text(MANY).endswith("longer ones tasks, because of 9 stages")
    assert forms_text(DIFFUSED) == "trains: DataFrames"


def test_a_stage_may_stand_before_those_that_it_gets_tuples_from():
    net = ps.Network("turned")
    cars = net.source("cars", rows_source("time TIMESTAMP, k INT, v INT"), timestamp="time")
    first = cars.group_by("k").tumble("10 seconds", n="count(*)", name="first")
    first.group_by("n").tumble("1 minute", m="count(*)", name="second").output("out", to=collect())
    (sub,) = split(net)
    layout = lay_out(sub)
    turned = replace(layout, stages=tuple(reversed(layout.stages)))
    assert sorted(stage_levels(sub.network, layout).values()) == [1, 2]
    assert stage_levels(sub.network, turned) == stage_levels(sub.network, layout)
