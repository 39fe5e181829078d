"""Valves in a ticket: what they say, and what open windows remember of earlier shares."""

from __future__ import annotations

import json

import pytest

from penstock.engine.contract.account import Account
from penstock.engine.contract.commit import Commit
from penstock.engine.contract.ticket import UNKNOWN, Ticket
from penstock.engine.contract.valve import LeftOut, Progress, Step, Valve, ValveFlow, next_valves
from penstock.model.errors import PenstockError

TUPLES = Valve("cars", 0.5, lot=7)
WINDOWS = Valve("cars", 0.5, "windows", lot=7, size=20, every=10)


def at(horizon, newest):
    return lambda _valve: Progress(horizon, horizon, newest)


def shares(valve):
    return [(step.share, step.since, step.until) for step in valve.steps]


def with_share(share):
    return Valve("cars", share, "windows", lot=7, size=20, every=10)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"share": 1.5}, "share 1.5"),
        ({"share": float("nan")}, "share nan"),
        ({"grain": "rows"}, "grain 'rows'"),
        ({"grain": "windows"}, "size 0, every 0"),
        ({"grain": "windows", "size": 10, "every": 20}, "size 10, every 20"),
        ({"grain": "values"}, "no predicate"),
        ({"part": 2.0}, "part 2.0"),
    ],
)
def test_a_valve_that_cannot_be_is_refused(given, problem):
    with pytest.raises(PenstockError, match=problem):
        Valve("cars", **given)


def test_ticket_and_commit_carry_valves_as_json():
    stepped = Valve("a->b", 0.5, "windows", keys=("k",), size=2, every=1, steps=(Step(0.5, 3, 4),))
    ticket = Ticket(3, 1.0, valves=(TUPLES, stepped), shed={"cars": LeftOut(5, 77)})
    assert Ticket.of(json.loads(json.dumps(ticket.plain()))) == ticket
    commit = Commit(3, valves={"cars": ValveFlow(10, 5)})
    assert Commit.of(json.loads(json.dumps(commit.plain()))) == commit


def test_a_ticket_of_an_older_version_has_no_valves():
    plain = Ticket(3, 1.0).plain()
    del plain["valves"], plain["shed"]
    assert Ticket.of(plain) == Ticket(3, 1.0)


def test_an_account_holds_what_was_shed():
    counts = {"offered": 9, "in": 6, "out": 4, "dead": 2, "late": 1, "shed": 3}
    assert Account.of_counts(counts) == Account(offered=9, let_in=4, dead=1, late=1, shed=3)
    assert Account.of_counts(counts).balanced


def test_at_share_1_there_is_no_valve():
    assert next_valves([Valve("cars"), with_share(1.0)], (), at(0, None)) == ()
    assert next_valves([TUPLES], (), at(0, None)) == (TUPLES,)


def test_a_valve_on_tuples_is_forgotten_at_once():
    assert next_valves([], (TUPLES,), at(0, 100)) == ()


def test_windows_begun_under_another_share_remember_it():
    first = next_valves([WINDOWS], (), at(UNKNOWN, None))
    assert shares(first[0]) == [(0.5, UNKNOWN, 2**62)]
    second = next_valves([with_share(0.8)], first, at(0, 35))
    assert shares(second[0]) == [(0.5, UNKNOWN, 35), (0.8, 0, 2**62)]
    assert next_valves([with_share(0.8)], second, at(5, 60))[0].steps == second[0].steps


def test_an_open_valve_stays_until_the_windows_it_chose_are_closed():
    first = next_valves([WINDOWS], (), at(UNKNOWN, None))
    opened = next_valves([], first, at(30, 35))
    assert shares(opened[0]) == [(0.5, UNKNOWN, 35), (1.0, 30, 2**62)]
    assert opened[0].share == 1.0
    # The last window that 35 lies in is [30, 50).
    assert next_valves([], opened, at(49, 60)) != ()
    assert next_valves([], opened, at(50, 60)) == ()


def test_no_window_was_chosen_before_the_first_tuple():
    first = next_valves([WINDOWS], (), at(UNKNOWN, None))
    assert next_valves([], first, at(UNKNOWN, None)) == ()


def test_many_changes_do_not_make_a_ticket_grow_for_ever():
    valves = ()
    for i in range(500):
        valves = next_valves([with_share(0.3 + (i % 7) / 100)], valves, at(UNKNOWN, i))
    assert len(valves[0].steps) <= 64
    assert min(step.share for step in valves[0].steps) == 0.3


def test_a_window_that_is_complete_cannot_be_chosen_any_more():
    first = next_valves([WINDOWS], (), at(UNKNOWN, None))
    second = next_valves([with_share(0.1)], first, lambda _: Progress(closed=10, complete=40, newest=40))
    # [20, 40) has all its tuples; the train that closes it still knows that 0.5 was its share.
    assert shares(second[0]) == [(0.5, UNKNOWN, 40), (0.1, 40, 2**62)]
