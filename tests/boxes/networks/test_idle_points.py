"""An idle input behind connection points: the same on both engines, train by train, also after a restart and
a replay.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.connectors.contract import Input, Position, Taken
from penstock.connectors.rows import SpoolFile
from penstock.engine.local import LocalEngine
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import split
from penstock.testing import HandClock, collect, rows_source, values


def two_points(chain: bool = False, idle: str | None = "10 seconds") -> Network:
    """a and b, each behind a point of its own (`chain`: b behind two), merged into windows of a second."""
    net = Network("n")
    a = net.source("a", rows_source("time TIMESTAMP"), timestamp="time", idle="10 seconds")
    b = net.source("b", rows_source("time TIMESTAMP"), timestamp="time", idle=idle)
    behind = b.filter("time IS NOT NULL").connection_point("pb")
    behind = behind.filter("true").connection_point("pc") if chain else behind
    both = a.connection_point("pa").union(behind)
    both.tumble("1 second", n="count(*)", name="seconds").output("out", to=collect())
    return net


class Local:
    def __init__(self, net: Network, clock: HandClock, _place: Path, _spark: object) -> None:
        self.engine = LocalEngine(net, clock=clock.now)

    def train(self, **rows):
        return values(self.engine.train(rows).outputs["out"])

    def restart(self) -> None:
        """It knows no restart."""


class Spark:
    """The conductors, tickets and trains of all sub-networks, cranked by hand."""

    def __init__(self, net: Network, clock: HandClock, place: Path, spark: object) -> None:
        from penstock.testing.spark_run import with_memory_sinks

        self.net, self.sinks = with_memory_sinks(net)
        self.clock, self.place, self.spark = clock, place, spark
        self.rows = {name: [] for name in net.sources}
        self.restart()

    def restart(self) -> None:
        from penstock.engine.contract.policy import AsSoonAsPossible
        from penstock.engine.contract.steering import Steering
        from penstock.engine.spark.trains.query import SubnetworkQuery
        from penstock.engine.spark.trains.query_settings import QuerySettings

        self.queries = [
            SubnetworkQuery(
                sub,
                self.spark,
                self.place,
                Steering(AsSoonAsPossible(), clock=lambda: self.clock.now() / 1e6),
                QuerySettings(
                    inputs={
                        n: Given(self.place / n, self.rows[n]) for n in sub.inputs if n in self.net.sources
                    }
                ),
            )
            for sub in split(self.net)
        ]
        self.crank()  # looks round, as it does all the time

    def train(self, **rows):
        for name, given in rows.items():
            self.rows[name].append(given)
        self.crank()
        return values(self.sinks["out"].rows)

    def crank(self) -> None:
        for query in self.queries:
            while query.next_ticket():
                query.run_train(query.last)


@dataclass(frozen=True)
class GivenPosition(Position):
    number: int
    row: int


class Given(Input):
    """A source that has what was put into the list so far."""

    def __init__(self, place: Path, trains: list) -> None:
        self.place, self.trains = place, trains
        place.mkdir(exist_ok=True)

    def take(self, position, limit):
        number, first = (position.number, position.row) if position else (0, 0)
        if number >= len(self.trains):
            return Taken([], position, 0)
        path, rows = self.place / f"{number}.jsonl", self.trains[number]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        slices = [SpoolFile(str(path), first, len(rows))]
        return Taken(slices, GivenPosition(number + 1, first + len(rows)), len(rows))


@pytest.fixture
def started(engine, tmp_path):
    clock = HandClock(1_000_000_000)
    made = {"local": Local, "spark": Spark}[engine.name]
    return lambda net: (made(net, clock, tmp_path, engine.spark), clock)


@pytest.mark.parametrize("chain", [False, True])
def test_an_idle_input_behind_a_point_does_not_stall_windows(started, chain):
    running, clock = started(two_points(chain))
    assert running.train(a=[(0,), (5,)], b=[(0,)]) == []
    assert running.train(a=[(6,)]) == []  # b may still bring something
    clock.advance("20 seconds")
    assert running.train(a=[(7,)])[:2] == [(0, 2), (5, 1)]
    # it wakes up: others wait for it again
    before = running.train(a=[(8,)], b=[(9,)])
    assert running.train(a=[(20,)]) == [(0, 2), (5, 1), (6, 1), (7, 1), (8, 1)]
    assert before in ([(0, 2), (5, 1)], [(0, 2), (5, 1), (6, 1)], [(0, 2), (5, 1), (6, 1), (7, 1)])


def test_idle_never_waits_for_ever(started):
    running, clock = started(two_points(idle=None))
    running.train(a=[(0,), (5,)], b=[(0,)])
    clock.advance("1 hour")
    assert running.train(a=[(6,)]) == []


def test_a_point_stays_idle_over_a_restart(started):
    running, clock = started(two_points())
    running.train(a=[(0,), (5,)], b=[(0,)])
    clock.advance("20 seconds")
    assert running.train(a=[(6,)])[:1] == [(0, 2)]
    running.restart()
    assert (5, 1) in running.train(a=[(7,)])


def test_the_idle_mark_is_part_of_the_train(spark_session, tmp_path, engine):
    """Written with the ticket, so a train that is run again says the same; kept by compaction."""
    if engine.name != "spark":
        pytest.skip("the local engine has no tickets")
    from penstock.store.points.compaction import Sizes, compact
    from penstock.store.points.point import PointReader

    clock = HandClock(1_000_000_000)
    running = Spark(two_points(), clock, tmp_path, spark_session)
    running.train(a=[(0,), (5,)], b=[(0,)])
    clock.advance("20 seconds")
    query = next(q for q in running.queries if q.sub.points == ("pb",))
    assert query.next_ticket()
    before = query.last
    running.restart()  # killed between the ticket and its train
    query = next(q for q in running.queries if q.sub.points == ("pb",))
    assert query.last == before
    query.run_train(before)
    running.train(b=[(3,)])
    entries = PointReader(tmp_path, "pb").entries()
    marks = [entry.idle for entry in entries]
    assert (marks.count(True), marks[-1]) == (1, False)
    query.run_train(before)  # published again
    compact(tmp_path, "pb", Sizes(min_entries=1))
    assert [entry.idle for entry in PointReader(tmp_path, "pb").entries()] == marks
