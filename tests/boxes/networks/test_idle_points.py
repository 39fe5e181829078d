"""An idle input, also behind connection points: the same on both engines, train by train, after a restart and
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
from penstock.engine.spark.jobs.forms import Form, form_of
from penstock.engine.spark.outcome import Outcome
from penstock.engine.spark.runs.train_run import TrainRun
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import split
from penstock.store.dead_letters import DeadLetters
from penstock.testing import HandClock, collect, rows_source, values
from penstock.testing.dry_run import dry_job


def two_points(chain: bool = False, idle: str | None = "10 seconds", window: str = "1 second") -> Network:
    """a and b, each behind a point of its own (`chain`: b behind two), merged into windows."""
    net = Network("n")
    a = net.source("a", rows_source("time TIMESTAMP"), timestamp="time", idle="10 seconds")
    b = net.source("b", rows_source("time TIMESTAMP"), timestamp="time", idle=idle)
    behind = b.filter("time IS NOT NULL").connection_point("pb")
    behind = behind.filter("true").connection_point("pc") if chain else behind
    both = a.connection_point("pa").union(behind)
    both.tumble(window, n="count(*)", name="seconds").output("out", to=collect())
    return net


def one_point() -> Network:
    """a and b merged in front of a point, which windows of ten seconds read."""
    net = Network("n")
    a, b = (
        net.source(name, rows_source("time TIMESTAMP"), timestamp="time", idle="10 seconds") for name in "ab"
    )
    both = a.union(b).connection_point("pa")
    both.tumble("10 seconds", n="count(*)", name="seconds").output("out", to=collect())
    return net


def own_and_all() -> Network:
    """Windows of a alone, and the union of a with b, which is never idle."""
    net = Network("n")
    a = net.source("a", rows_source("time TIMESTAMP"), timestamp="time", idle="10 seconds")
    b = net.source("b", rows_source("time TIMESTAMP"), timestamp="time", idle=None)
    a.tumble("1 second", n="count(*)", name="seconds").output("own", to=collect())
    union = a.union(b, name="both")
    union.output("all", to=collect())
    union.tumble("1 second", n="count(*)", name="merged").output("out", to=collect())
    return net


class Local:
    def __init__(self, net: Network, clock: HandClock, *_place: object) -> None:
        self.engine = LocalEngine(net, clock=clock.now)

    def train(self, **rows):
        self.engine.train(rows)
        return self.left("out")

    def left(self, output):
        return values(self.engine.result.outputs[output])

    def late(self):
        return [(letter.box, letter.offset) for letter in self.engine.result.dead_letters]

    def restart(self) -> None:
        """It knows no restart."""


class Spark:
    """The conductors, tickets and trains of all sub-networks, cranked by hand; here, if without a session."""

    def __init__(self, net: Network, clock: HandClock, place: Path, spark: object, form=form_of) -> None:
        from penstock.testing.spark_run import with_memory_sinks

        self.net, self.sinks = with_memory_sinks(net)
        self.clock, self.place, self.spark, self.form = clock, place, spark, form
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
                    },
                    form=self.form,
                ),
            )
            for sub in split(self.net)
        ]
        if self.spark is None:
            for query in self.queries:
                query.trains.train_run = dry_job
        self.crank()  # looks round, as it does all the time

    def train(self, **rows):
        for name, given in rows.items():
            self.rows[name].append(given)
        self.crank()
        return self.left("out")

    def left(self, output):
        return values(self.sinks[output].rows)

    def late(self):
        letters = DeadLetters(self.place).read().to_pylist()
        return [(letter["box"], int(letter["offset"])) for letter in letters]

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
    return lambda net, *form: (made(net, clock, tmp_path, engine.spark, *form), clock)


@pytest.fixture(params=[None, Form.ONE_TASK, Form.TASKS], ids=["reference", "one task", "tasks"])
def here(request, tmp_path):
    """Both engines in this process, without a session."""
    clock = HandClock(1_000_000_000)
    if request.param is None:
        return lambda net: (Local(net, clock), clock)
    return lambda net: (Spark(net, clock, tmp_path, None, always(request.param)), clock)


def always(form: Form):
    return lambda _ticket, _layout: form


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


def check_that_own_windows_wait(running, clock, *, restart=False):
    """b goes on without a where the two meet; a alone is no further than it says."""
    running.train(a=[(0,)], b=[(0,)])
    running.train(b=[(50,)])
    clock.advance("20 seconds")
    assert running.train(b=[(60,)]) == [(0, 2), (50, 1)]
    if restart:
        running.restart()
    running.train(a=[(0.5,)])
    assert running.train(a=[(2,)]) == [(0, 2), (50, 1)]
    assert running.left("own") == [(0, 2)]
    assert running.left("all") == [(0,), (0,), (0.5,), (2,), (50,), (60,)]
    assert running.late() == [("merged", 1), ("merged", 2)]


@pytest.mark.parametrize("restart", [False, True])
def test_an_input_that_wakes_up_is_late_only_where_others_went_on(here, restart):
    check_that_own_windows_wait(*here(own_and_all()), restart=restart)


@pytest.mark.parametrize("form", list(Form))
def test_it_is_late_in_no_form_of_train_at_its_source(started, form):
    check_that_own_windows_wait(*started(own_and_all(), always(form)))


POINTS = [lambda: two_points(window="10 seconds"), one_point]


def check_that_windows_refuse_what_points_let_pass(running, clock):
    """Points refuse no tuple, however late: the box behind them must."""
    running.train(a=[(0,), (5,)], b=[(0,)])
    clock.advance("20 seconds")
    running.train(a=[(7,)])
    running.train(a=[(8,)])
    running.train(b=[(0.5,)])
    clock.advance("20 seconds")
    assert running.train(a=[(12,)]) == [(0, 5)]
    assert running.late() == [("seconds", 1)]


@pytest.mark.parametrize("network", POINTS)
def test_behind_points_a_late_tuple_is_refused(here, network):
    check_that_windows_refuse_what_points_let_pass(*here(network()))


@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize("network", POINTS)
def test_behind_points_a_late_tuple_is_refused_in_every_form_of_train(started, network, form):
    check_that_windows_refuse_what_points_let_pass(*started(network(), always(form)))


@pytest.mark.parametrize("network", POINTS)
def test_only_a_train_with_late_tuples_brings_no_partial_aggregates(tmp_path, network):
    """In one of DataFrames a partial aggregate would hide them."""
    clock = HandClock(1_000_000_000)
    running = Spark(network(), clock, tmp_path, None)
    check_that_windows_refuse_what_points_let_pass(running, clock)
    reader = running.queries[-1]
    (stage,) = reader.trains.layout.stages
    tickets = [reader.log.ticket(train) for train in range(reader.last + 1)]
    runs = [TrainRun(reader.trains, ticket, Outcome()) for ticket in tickets]
    partials = [run.stage_task(stage, []).partials for run in runs]
    assert [bool(each) for each in partials] == ["seconds" not in ticket.late_at for ticket in tickets]
    assert [ticket.rows for ticket in tickets if ticket.late_at] == [1]
