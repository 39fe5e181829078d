"""Readers of a connection point know times and losses of what they have read: no source tells them."""

from __future__ import annotations

import threading

import pytest

import penstock as ps
from penstock.engine.contract.backlog import InputBacklog
from penstock.engine.contract.commit import Commit
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.steering import Steering
from penstock.engine.contract.ticket import Ticket
from penstock.engine.contract.valve import LeftOut, Valve
from penstock.engine.spark.entry.points import PointEntries, PointInput, PointPosition, kept_above
from penstock.engine.spark.trains.ticket_planner import TicketPlanner
from penstock.engine.spark.trains.train import _newest
from penstock.rewrite.subnetworks import split
from penstock.store.errors import HistoryLostError
from penstock.store.points.compaction import Sizes, compact
from penstock.store.points.point import PointWriter
from store.points import SCHEMA as KEPT
from store.points import put as put_entry

SECOND = 1_000_000


@pytest.fixture
def writer(tmp_path):
    return PointWriter(tmp_path, "kept", KEPT)


def test_entries_tell_their_newest_time(tmp_path, writer):
    put_entry(writer, 0, [(1, "x", 5, 1), (1, "x", 9, 2)])
    put_entry(writer, 1, [(1, "x", 7, 3)])
    put_entry(writer, 2, [])
    taken = PointInput(tmp_path, "kept", "reader", seconds=60).take(None, 10)
    assert taken.newest == 9
    assert taken.slices == [PointEntries(0, 2, 3, 9)]


def test_a_commit_knows_the_newest_time_of_every_input():
    slices = {"kept": [PointEntries(0, 2, 3, 9), PointEntries(3, 3, 1)], "bare": [PointEntries(0, 0, 1)]}
    ticket = Ticket(3, 0.0, slices=slices, shed={"cars": LeftOut(4, 20), "bikes": LeftOut(4, 2)})
    assert _newest(ticket, {"cars": 10, "bikes": 3}) == {"cars": 20, "bikes": 3, "kept": 9}


def test_windows_that_a_valve_at_a_point_has_chosen_stay_chosen(tmp_path, writer):
    """Otherwise a window that lost some of its tuples would be told as if it were whole."""
    net = ps.Network("n")
    cars = net.source("cars", ps.rows([], "time TIMESTAMP, v BIGINT"), timestamp="time")
    windows = cars.connection_point("kept").tumble("10 seconds", n="count(*)")
    net.output("out", windows, to=ps.memory())
    reader = next(sub for sub in split(net) if sub.inputs == ("kept",))
    steering = Steering(AsSoonAsPossible())
    inputs = {"kept": PointInput(tmp_path, "kept", "reader", seconds=60)}
    planner = TicketPlanner(reader, inputs, steering, 1)

    steering.valves = (Valve("kept", 0.5, "windows", size=10 * SECOND, every=10 * SECOND),)
    put_entry(writer, 0, [(1, "x", 5 * SECOND, 1)], horizon=0)
    first = planner.ticket(0, planner.look(10, 0.0), final=False, epoch=0)
    planner.written(first, 0.0)
    planner.learn(Commit(0, newest=_newest(first, {})))

    steering.valves = ()
    put_entry(writer, 1, [(1, "x", 8 * SECOND, 2)], horizon=5 * SECOND)
    (valve,) = planner.ticket(1, planner.look(10, 1.0), final=False, epoch=0).valves
    assert (valve.steps[0].share, valve.steps[0].until) == (0.5, 5 * SECOND)


def test_entries_tell_what_valves_above_the_point_have_kept(tmp_path, writer):
    """Also an entry without rows, of which all was shed: it is told with the next one."""
    reader = PointInput(tmp_path, "kept", "reader", seconds=60)
    put_entry(writer, 0, [(1, "x", 5, 1)], offered=100, kept=1.0)
    first = reader.take(None, 10)
    assert kept_above(Ticket(0, 0.0, slices={"kept": first.slices})) == {"kept": 1.0}
    put_entry(writer, 1, [], offered=100, kept=0.0)
    nothing = reader.take(first.position, 10)
    assert not nothing.slices
    put_entry(writer, 2, [(1, "x", 6, 2)], offered=300, kept=1.0)
    both = reader.take(nothing.position, 10)
    assert kept_above(Ticket(1, 0.0, slices={"kept": both.slices})) == {"kept": 0.75}
    put_entry(writer, 3, [(1, "x", 7, 3)])
    (last,) = reader.take(both.position, 10).slices
    assert last.kept == 1.0, "of an earlier version, which told nothing"


def test_what_an_entry_has_lost_survives_compaction(tmp_path, writer):
    for entry in range(3):
        put_entry(writer, entry, [(1, "x", entry, entry)], offered=100, kept=0.3)
    assert compact(tmp_path, "kept", Sizes(min_entries=1)) is not None
    (piece,) = PointInput(tmp_path, "kept", "reader", seconds=60).take(None, 10).slices
    assert piece.kept == pytest.approx(0.3)


def test_what_is_offered_to_a_reader_is_counted_in_front_of_all_valves(tmp_path, writer):
    """Else what is shed above the point would look like less to do, and valves would open and close."""
    now = [0.0]
    reader = PointInput(tmp_path, "kept", "reader", seconds=60)
    backlog = InputBacklog({"kept": reader}, lambda: now[0], lambda: now[0])
    position = None
    # Ten tuples a second come to the writer, which makes five rows of them if it gets all.
    for second, kept in enumerate([1.0, 1.0, 0.4, 0.4, 0.0, 0.0]):
        now[0] = float(second)
        rows = [(1, "x", second, second * 10 + n) for n in range(round(5 * kept))]
        put_entry(writer, second, rows, offered=10, kept=kept)
        taken = reader.take(position, 100)
        position = taken.position
        backlog.took("kept", taken)
        backlog.look({"kept": position})
    assert backlog.situation("kept").offered_rate == pytest.approx(5.0)
    put_entry(writer, 6, [], offered=10, kept=0.0)
    assert reader.waiting(position).lost == 5


def test_entries_that_move_while_they_are_taken_are_not_passed_over(tmp_path, writer):
    """A train commits in its own thread: its lease brings the reader up to date, in the middle of a look."""
    for entry in range(10):
        put_entry(writer, entry, [(1, "x", entry, entry)])
    compact(tmp_path, "kept", Sizes(min_entries=1))
    given = PointInput(tmp_path, "kept", "reader", seconds=60)
    position = given.take(PointPosition(2), 1).position
    reader, threads = given._reader, []
    told = reader._entries_of

    def entries_of(segment):
        if not threads:
            for entry in (10, 11):
                put_entry(writer, entry, [(1, "x", entry, entry)])
            compact(tmp_path, "kept", Sizes(min_entries=1))
            given._lease._written = float("-inf")  # so that it is renewed now
            threads.append(threading.Thread(target=given.committed, args=[position]))
            threads[0].start()
            threads[0].join(1)
        return told(segment)

    reader._entries_of = entries_of
    taken = given.take(position, 100)
    threads[0].join(60)
    seen = sum(piece.rows for piece in taken.slices)
    while (taken := given.take(taken.position, 1)).slices:
        seen += sum(piece.rows for piece in taken.slices)
    assert seen == 12 - 4


@pytest.mark.parametrize("kept", [False, True])
def test_a_position_beyond_the_end_is_refused(tmp_path, writer, kept):
    """A view that is attached anew numbers its entries from 0: a query that resumes would wait for 58."""
    for entry in range(3):
        put_entry(writer, entry, [(1, "x", entry, entry)])
    resumed = PointInput(tmp_path, "kept", "asked", seconds=60)
    if kept:
        resumed.keep_from(PointPosition(1))
    with pytest.raises(
        HistoryLostError, match=r"'asked' of connection point 'kept' has read more than there is"
    ):
        resumed.take(PointPosition(57), 10)
    at_the_end = PointInput(tmp_path, "kept", "asked", seconds=60)
    assert not at_the_end.take(PointPosition(2), 10).slices
