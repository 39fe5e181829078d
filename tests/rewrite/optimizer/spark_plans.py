"""What Spark plans for a train of DataFrames: the plan in front of each stage, as Catalyst leaves it.

Nothing runs. A stage is Python, so the plan ends there: what boxes in it do, Catalyst never sees.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.steering import Steering
from penstock.engine.spark.jobs.forms import Form
from penstock.engine.spark.outcome import Outcome
from penstock.engine.spark.runs.train_run import TrainRun
from penstock.engine.spark.trains.query import SubnetworkQuery
from penstock.engine.spark.trains.query_settings import QuerySettings
from penstock.model.boxes import Source
from penstock.rewrite.subnetworks import split
from penstock.testing.spark_run import CutByHand


class PlanOnly(TrainRun):
    """A train up to the point where Spark would run it."""

    def run(self):
        self.plans = {}
        for name in self.trains.sub.inputs:
            self._keep(name, self._input(self.net.nodes[name]))
        self._boxes()
        for name in self.net.outputs:
            tail = self.net.nodes[name].inputs[0]
            if tail in self.frames and tail not in self.layout.home:
                self.plans[name] = plan_of(self.frames[tail])

    def _keep(self, name, frame):
        self.frames[name] = frame  # not persisted: a plan shall show how its tuples come about

    def _stage(self, stage):
        onward = self._onward(stage)
        frame = self._partitioned(stage, self.stage_task(stage, onward))
        self.plans[", ".join(stage.nodes)] = plan_of(frame)
        for name, _ in onward:
            self.frames[name] = self._nothing(name)


def spark_plans(network, spark):
    """The plan in front of each stage by its boxes, and in front of each output that no stage feeds."""
    plans = {}
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        for sub in split(network):
            plans |= _plans_of(sub, spark, Path(folder))
    return plans


def _plans_of(sub, spark, root):
    rows = {"time": 1.0, "k": 1, "v": 2, "w": 0.5, "s": "a"}
    inputs = {
        name: CutByHand(node, root / name, [[rows]])
        for name in sub.inputs
        if isinstance(node := sub.network.nodes[name], Source)
    }
    settings = QuerySettings(2, once=True, inputs=inputs, form=lambda _ticket, _layout: Form.FRAMES)
    query = SubnetworkQuery(sub, spark, root, Steering(AsSoonAsPossible(), clock=lambda: 0.0), settings)
    assert query.next_ticket()
    run = PlanOnly(query.trains, query.log.ticket(query.last), Outcome())
    run.sampled = False  # as in fifteen trains of sixteen
    run.early = run._done_early = {}  # as for files that Spark reads itself: all native boxes are its own
    run.run()
    return run.plans


def in_words(plan):
    """A plan as the guide shows it: an operator a line, from the top, with visible columns only.

    What counts tuples and refuses bad ones is in every plan, and left out.
    """
    lines = []
    for line in plan.strip().splitlines():
        operator, _, rest = re.sub(r"^[\s:+-]*", "", line).partition(" ")
        if operator == "Filter":
            parts = re.split(r" AND ", rest.replace("(", "").replace(")", ""))
            told = [part for part in parts if not re.match(r"isnotnull|isnull_why", part)]
            lines += [f"Filter {' AND '.join(told)}"] if told else []
        elif operator == "Project" and "_dead.reason" not in rest:
            lines.append(f"Project {_visible(rest)}")
        elif operator == "RepartitionByExpression":
            lines.append(f"Shuffle by {_visible(rest)}")
        elif operator == "Aggregate":
            lines.append(f"Aggregate by {_visible(rest.partition(']')[0])}")
        elif operator in ("MapInArrow", "Union", "Join"):
            lines.append("read" if "Unpack" in rest else operator)
    return lines


def _visible(text):
    names = re.findall(r"[A-Za-z_]\w*", text.partition("]")[0].partition(" AS ")[0])
    return ", ".join(name for name in names if not name.startswith("_"))


def plan_of(frame):
    """Catalyst's optimized plan without the numbers that it gives to columns."""
    text = frame._jdf.queryExecution().optimizedPlan().toString()
    return re.sub(r"#\d+L?", "", text)
