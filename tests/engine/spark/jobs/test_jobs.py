"""A train as a job of tasks gives what the same train gives as DataFrames: rows, letters, counts, files."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.steering import Monitor, Steering
from penstock.engine.spark.jobs.forms import Form
from penstock.engine.spark.jobs.planning import job_plan, stage_levels
from penstock.engine.spark.layout.plan import lay_out
from penstock.engine.spark.outcome import Outcome
from penstock.engine.spark.trains.query import SubnetworkQuery
from penstock.engine.spark.trains.query_settings import QuerySettings
from penstock.rewrite.subnetworks import split
from penstock.store.dead_letters import DeadLetters
from penstock.testing.dry_run import dry_job
from penstock.testing.spark_run import crank

SCHEMA = "time TIMESTAMP, k STRING, v INT"
BOTH = (Form.ONE_TASK, Form.TASKS)


def network(folder):
    """Boxes without state before, beside and behind two stages; three kinds of output, a point in between."""
    net = ps.Network("jobs")
    text = ps.json(str(folder / "in"), SCHEMA, settle="0")
    cars = net.source("cars", text, timestamp="time", lateness="0 seconds")
    fast = cars.filter("100 / v < 50", name="fast")
    minutes = fast.group_by("k").tumble("10 seconds", n="count(*)", s="sum(v)", name="minutes")
    totals = minutes.tumble("1 minute", n="sum(n)", name="totals")
    many = fast.select("k", "v", name="plain").union(
        minutes.map(v="CAST(s AS INT)", name="sums").select("k", "v", name="cut"), name="many"
    )
    net.output("fast_out", fast, to=ps.parquet(str(folder / "out" / "fast")))
    net.output("many_out", many, to=ps.json(str(folder / "out" / "many")))
    net.output("totals_out", totals, to=ps.csv(str(folder / "out" / "totals")))
    return net


def give(folder):
    (folder / "in").mkdir(parents=True, exist_ok=True)
    rows = [{"time": f"2026-01-01T00:00:{n:02d}Z", "k": "abc"[n % 3], "v": n % 7} for n in range(50)]
    late = {"time": "2026-01-01T00:00:01Z", "k": "a", "v": 5}
    for number, part in enumerate((rows[:20], [*rows[20:40], late], rows[40:])):
        lines = [json.dumps(row) for row in part]
        lines += ["no row"] if number == 1 else []
        (folder / "in" / f"{number}.json").write_text("".join(line + "\n" for line in lines))


def run(folder, spark, form, *, partitions=3):
    """All trains in one form; what came out, the letters, and the counts of all trains together."""
    give(folder)
    commits = []
    (sub,) = split(network(folder))
    settings = QuerySettings(
        partitions,
        once=True,
        close=True,
        form=lambda *_: form,
        listen=lambda done: commits.append(done.commit),
    )
    query = SubnetworkQuery(sub, spark, folder / "checkpoint", Steering(AsSoonAsPossible(21)), settings)
    if spark is None:
        query.trains.train_run = dry_job
    crank(query)
    counts = {}
    for commit in commits:
        for box, mine in commit.counts.items():
            for name in ("in", "out", "dead", "late", "offered"):
                counts[box, name] = counts.get((box, name), 0) + mine.get(name, 0)
    letters = DeadLetters(folder / "checkpoint").read().to_pylist()
    return {
        "rows": found(folder),
        "letters": sorted(
            (l["box"], l["offset"], l["reason"], l["raw"], l["source"], l["line"]) for l in letters
        ),
        "counts": {name: number for name, number in counts.items() if number},
        "newest": [commit.newest for commit in commits],
        "estimated": any("estimated" in mine for commit in commits for mine in commit.counts.values()),
        "costs": {box for commit in commits for box in commit.costs},
    }


def found(folder):
    lines = {
        name: sorted(
            line for file in (folder / "out" / name).glob("part-*") for line in file.read_text().splitlines()
        )
        for name in ("many", "totals")
    }
    fast = pa.concat_tables([pq.read_table(file) for file in (folder / "out" / "fast").glob("part-*")])
    return lines | {"fast": sorted((row["k"], row["v"]) for row in fast.to_pylist())}


@pytest.fixture(scope="module")
def dry(tmp_path_factory):
    """What the job gives as one task, without Spark."""
    return run(tmp_path_factory.mktemp("dry"), None, Form.ONE_TASK)


def test_it_is_not_for_nothing(dry):
    """What is compared below: letters of all kinds, and rows of all outputs."""
    assert {box for box, *_ in dry["letters"]} == {"cars", "fast"}
    assert any("late" in reason for _, _, reason, *_ in dry["letters"])
    assert any("malformed" in reason or "JSON" in reason for _, _, reason, *_ in dry["letters"])
    assert all(dry["rows"].values())
    assert dry["counts"]["cars", "offered"] == 52


def test_every_box_is_counted_and_costed_in_every_train(dry):
    assert not dry["estimated"]
    assert {"fast", "plain", "many", "minutes", "totals"} <= dry["costs"]


def test_as_tasks(tmp_path, dry):
    assert run(tmp_path, None, Form.TASKS) == dry


def test_any_number_of_partitions(tmp_path, dry):
    assert run(tmp_path, None, Form.TASKS, partitions=1) == dry


@pytest.mark.parametrize("form", list(Form))
def test_on_spark(tmp_path, spark, dry, form):
    ours = run(tmp_path, spark, form)
    if form is Form.FRAMES:  # boxes of DataFrames are counted in some trains only, and have no costs
        ours |= {"estimated": False, "costs": dry["costs"]}
        assert {n: c for n, c in ours["counts"].items() if n[0] in ("cars", "minutes", "totals")} == {
            n: c for n, c in dry["counts"].items() if n[0] in ("cars", "minutes", "totals")
        }
        ours |= {"counts": dry["counts"]}
    assert ours == dry


def test_stages_run_behind_all_that_feeds_them(tmp_path):
    (sub,) = split(network(tmp_path))
    assert stage_levels(sub.network, lay_out(sub)) == {"minutes": 1, "totals": 2}


def test_stateless_boxes_run_where_their_tuples_are(tmp_path):
    """`many` gets tuples of the source in the first phase, and those of windows in the second."""
    give(tmp_path)
    (sub,) = split(network(tmp_path))
    query = SubnetworkQuery(sub, None, tmp_path / "checkpoint", Steering(AsSoonAsPossible()))
    ticket = query._planner.ticket(0, query._planner.look(1, 0.0), final=False, epoch=0)
    phases = job_plan(dry_job(query.trains, ticket, Outcome())).phases
    names = [[n.name for n in phase.stateless.nodes] if phase.stateless else [] for phase in phases]
    assert "many" in names[0]
    assert "many" in names[1]
    assert [[stage.name for stage in phase.stages] for phase in phases] == [[], ["minutes"], ["totals"]]


@pytest.mark.parametrize("form", BOTH)
def test_a_point_is_read_by_tasks_and_files_are_skipped(tmp_path, form):
    (tmp_path / "in").mkdir()
    rows = [{"time": f"2026-01-01T00:00:{n:02d}Z", "k": "k", "v": n} for n in range(60)]
    for number in range(3):
        part = rows[number * 20 : number * 20 + 20]
        text = "".join(json.dumps(row) + "\n" for row in part)
        (tmp_path / "in" / f"{number}.json").write_text(text)
    net = ps.Network("points")
    cars = net.source("cars", ps.json(str(tmp_path / "in"), SCHEMA, settle="0"), timestamp="time")
    kept = cars.connection_point("kept", keep="1 hour", key="v")
    net.output("high", kept.filter("v >= 45", name="asked"), to=ps.json(str(tmp_path / "out")))
    for sub in split(net):
        settings = QuerySettings(2, once=True, close=True, form=lambda *_: form)
        query = SubnetworkQuery(sub, None, tmp_path / "checkpoint", Steering(AsSoonAsPossible(20)), settings)
        query.trains.train_run = dry_job
        crank(query)
    found = [json.loads(line)["v"] for file in (tmp_path / "out").glob("part-*") for line in file.open()]
    assert sorted(found) == list(range(45, 60))


@pytest.mark.parametrize("form", BOTH)
def test_monitors_see_tuples_of_inputs_native_boxes_and_stages(tmp_path, form):
    give(tmp_path)
    (sub,) = split(network(tmp_path))
    monitors = {"a": Monitor("cars", 3), "b": Monitor("fast", 50, "v > 5"), "c": Monitor("minutes")}
    steering = Steering(AsSoonAsPossible(21), monitors=monitors)
    seen = []
    settings = QuerySettings(
        2, once=True, close=True, form=lambda *_: form, listen=lambda done: seen.append(done.samples)
    )
    query = SubnetworkQuery(sub, None, tmp_path / "checkpoint", steering, settings)
    query.trains.train_run = dry_job
    crank(query)
    assert seen[0]["a"].num_rows in range(1, 7)
    assert set(seen[0]["b"].column("v").to_pylist()) == {6}
    assert sum(samples["c"].num_rows for samples in seen if "c" in samples) > 0
