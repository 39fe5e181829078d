"""Feeds and express trains: whole deliveries, no shuffle of rows, the same rows on every path."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pyarrow as pa
import pytest

import penstock as ps
from penstock.connectors.contract import Target, Written
from penstock.connectors.feed import FeedFile, FeedInput
from penstock.connectors.files.sink import FilesSink
from penstock.engine.spark.layout.plan import lay_out
from penstock.engine.spark.runs.packed_run import PackedTrainRun
from penstock.engine.spark.tasks.packed_stage import labels_for, targets
from penstock.model.errors import PenstockError
from penstock.model.types import Schema
from penstock.rewrite.subnetworks import split
from penstock.store.dead_letters import DeadLetters
from penstock.testing.columns import SCHEMA, ReportsPerCar, ReportsPerRoad, decode, same
from penstock.testing.dry_run import DryRun


def deliver(folder, at, *groups):
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for group, lines in enumerate(groups):
        name = f"t{at}-g{group}.csv"
        (folder / name).write_text("".join(line + "\n" for line in lines))
        files.append([name, group, (folder / name).stat().st_size, len(lines)])
    with (folder / "_delivered.jsonl").open("a") as listing:
        listing.write(json.dumps({"at": at, "files": files}) + "\n")


def network(folder):
    """Counts by road where the rows arrive, by car in a second stage."""
    net = ps.Network("feed")
    text = ps.feed(str(folder / "in"), SCHEMA, decode=decode, keys="road")
    rows = net.source("rows", text, timestamp="second", whole=True, idle=None)
    fast = rows.filter("spd > 10", name="fast")
    roads = fast.group_by("road", name="by_road").column_latch(
        ReportsPerRoad, produces="second TIMESTAMP, road INT, n BIGINT", name="roads"
    )
    cars = fast.group_by("car", name="by_car").column_latch(
        ReportsPerCar, produces="second TIMESTAMP, car INT, n BIGINT", name="cars"
    )
    net.output("roads_out", roads.select("road", "n"), to=ps.csv(str(folder / "out" / "roads")))
    net.output("cars_out", cars.select("car", "n"), to=ps.stamped(ps.csv(str(folder / "out" / "cars")), same))
    return net


def found(folder):
    return {
        name: sorted(
            line for file in (folder / "out" / name).glob("*.csv") for line in file.read_text().splitlines()
        )
        for name in ("roads", "cars")
    }


EXPECTED = {"roads": ["1,1", "1,2", "2,1", "3,1", "3,2"], "cars": ["7,1", "7,2", "7,3", "8,1", "8,2"]}


def three_seconds(folder):
    deliver(folder / "in", 5, ["1,7,30", "bad", "1,8,5"], ["2,7,40"])
    deliver(folder / "in", 6, ["1,8,50"])
    deliver(folder / "in", 9, ["3,7,11", "3,8,12"])


def test_rows_go_packed_from_the_feed_to_the_stage_of_their_key(tmp_path):
    (sub,) = split(network(tmp_path))
    layout = lay_out(sub)
    assert layout.rooted
    assert [stage.nodes for stage in layout.stages] == [
        ["fast", "by_road", "roads", "by_car", "select_1"],
        ["cars", "select_2"],
    ]


@pytest.mark.parametrize(("length", "partitions", "fuse"), [(1, 2, True), (100, 3, True), (100, 2, False)])
def test_the_same_rows_however_it_is_cut(tmp_path, length, partitions, fuse):
    three_seconds(tmp_path)
    DryRun(
        network(tmp_path), tmp_path / "checkpoint", length=length, partitions=partitions, fuse=fuse
    ).run_all()
    assert found(tmp_path) == EXPECTED
    (letter,) = DeadLetters(tmp_path / "checkpoint").read().to_pylist()
    assert (letter["raw"], letter["reason"], letter["source"], letter["offset"]) == (
        "bad",
        "no row",
        "rows",
        "5497558138881",
    )


def test_on_spark(tmp_path, spark):
    three_seconds(tmp_path)
    with ps.Runtime(
        network(tmp_path), spark, tmp_path / "checkpoint", once=True, close=True, partitions=2
    ) as run:
        run.wait()
    assert found(tmp_path) == EXPECTED


def test_behind_another_source_it_is_a_source_like_any(tmp_path, spark):
    """A union with a source of another kind needs rows in the JVM: the feed is decoded on the way there."""
    three_seconds(tmp_path)
    net = network(tmp_path)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.csv").write_text("1970-01-01T00:00:07Z,4,9,99\n")
    more = net.source("more", ps.csv(str(tmp_path / "more"), SCHEMA), timestamp="second")
    net.output("all_out", net.stream("rows").union(more), to=ps.csv(str(tmp_path / "out" / "all")))
    with ps.Runtime(net, spark, tmp_path / "checkpoint", once=True, close=True, partitions=2) as run:
        run.wait()
    assert found(tmp_path) == EXPECTED
    lines = [
        line for file in (tmp_path / "out" / "all").glob("*.csv") for line in file.read_text().splitlines()
    ]
    assert len(lines) == 7


@pytest.mark.parametrize("files", [(1, 1), (2, 1), (0, 1), (1, 0), (0, 0)])
def test_each_group_has_its_partition(tmp_path, spark, files):
    """Spark merges the single partitions of a union if it can, which would run all groups in one task."""
    slices = []
    for group, count in enumerate(files):
        for number in range(count):
            path = tmp_path / f"g{group}-{number}"
            path.write_text(str(group))
            slices.append(FeedFile(str(path), 0, group, 1, 1))
    trains = SimpleNamespace(spark=spark, partitions=2)
    journey = SimpleNamespace(trains=trains, ticket=SimpleNamespace(slices={"rows": slices}))
    journey.slices = lambda: slices
    journey._files = lambda found: PackedTrainRun._files(journey, found)
    frame = PackedTrainRun._packed(journey).selectExpr("path", "spark_partition_id() AS p")
    assert frame.rdd.getNumPartitions() == 2
    assert all(row["path"] == "" or f"/g{row['p']}-" in row["path"] for row in frame.collect())


def test_labels_lead_to_their_partition(spark):
    from pyspark.sql import functions as F

    labels = labels_for(5)
    frame = spark.createDataFrame([(label,) for label in labels], "label INT").repartition(5, "label")
    rows = frame.select("label", F.spark_partition_id().alias("p")).collect()
    assert {row["label"]: row["p"] for row in rows} == {label: p for p, label in enumerate(labels)}


def test_equal_keys_of_any_width_go_the_same_way():
    narrow, wide = (
        pa.table({"k": pa.array([1, 2, 3, None], pa.int32())}),
        pa.table({"k": pa.array([1, 2, 3, None], pa.int64())}),
    )
    assert targets(narrow, ("k",), 7).tolist() == targets(wide, ("k",), 7).tolist()
    texts = pa.table({"k": ["a", "b", "a"]})
    one, _, again = targets(texts, ("k",), 97).tolist()
    assert one == again
    assert targets(texts, (), 7) is None


class TestFeedInput:
    def test_deliveries_are_never_split_and_taken_once(self, tmp_path):
        three_seconds(tmp_path)
        feed = FeedInput(network(tmp_path).nodes["rows"], tmp_path)
        taken = feed.take(None, 1)
        assert [s.group for s in taken.slices] == [0, 1]
        assert (taken.rows, taken.newest, taken.more) == (4, 5_000_000, True)
        rest = feed.take(taken.position, 100)
        assert [s.at for s in rest.slices] == [6, 9]
        assert feed.take(rest.position, 100).slices == []
        # the driver went on after a stop and delivered its last second again
        deliver(tmp_path / "in", 9, ["3,7,11"])
        deliver(tmp_path / "in", 10, ["3,7,11"])
        assert [s.at for s in feed.take(rest.position, 100).slices] == [10]
        fresh = FeedInput(network(tmp_path).nodes["rows"], tmp_path)
        assert [s.at for s in fresh.take(taken.position, 100).slices] == [6, 9, 10]
        few = FeedInput(network(tmp_path).nodes["rows"], tmp_path)
        few.max_bytes = 1
        assert [s.at for s in few.take(taken.position, 100).slices] == [6]

    def test_a_line_being_written_waits(self, tmp_path):
        three_seconds(tmp_path)
        listing = tmp_path / "in" / "_delivered.jsonl"
        text = listing.read_text()
        listing.write_text(text[:-5])
        feed = FeedInput(network(tmp_path).nodes["rows"], tmp_path)
        taken = feed.take(None, 100)
        assert [s.at for s in taken.slices] == [5, 5, 6]
        listing.write_text(text)
        assert [s.at for s in feed.take(taken.position, 100).slices] == [9]

    def test_a_list_that_is_none(self, tmp_path):
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "_delivered.jsonl").write_text('{"at": 5}\n')
        with pytest.raises(PenstockError, match="a line is no delivery"):
            FeedInput(network(tmp_path).nodes["rows"], tmp_path).take(None, 1)

    def test_nothing_yet(self, tmp_path):
        assert FeedInput(network(tmp_path).nodes["rows"], tmp_path).take(None, 1).slices == []


def test_tuples_of_another_time_are_refused(tmp_path):
    deliver(tmp_path / "in", 5, ["1,7,30"])
    net = network(tmp_path)
    wrong = ps.feed(str(tmp_path / "in"), SCHEMA, decode=lambda chunk, at: decode(chunk, at + 1), keys="road")
    nodes = [node for name, node in net.nodes.items() if name != "rows"]
    other = ps.Network("feed")
    other.source("rows", wrong, timestamp="second", whole=True)
    net = ps.Network.of("feed", [*other.nodes.values(), *nodes])
    with pytest.raises(PenstockError, match="another time than their delivery's"):
        DryRun(net, tmp_path / "checkpoint").run_all()


def test_a_file_that_is_there_stays(tmp_path):
    """After a crash a train runs again; what it has shown already keeps its stamp."""
    calls = []

    def stamp(rows):
        calls.append(1)
        return rows.set_column(0, "v", pa.array([len(calls)] * rows.num_rows))

    to = ps.stamped(ps.csv(str(tmp_path)), stamp)
    sink = FilesSink(to, Target("q", Schema.parse("v INT"), "run"))
    for _ in range(2):
        assert sink.write(pa.table({"v": [9]}), 3, 0) == Written(shown=(sink.final(3, 0),)), "nothing to move"
    assert [file.read_text() for file in tmp_path.glob("*.csv")] == ["1\n"]
    assert list((tmp_path / "_staging").iterdir()) == []
