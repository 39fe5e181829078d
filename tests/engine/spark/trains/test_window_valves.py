"""How long a ticket remembers which windows a valve has chosen: until their box has closed them."""

from __future__ import annotations

import math

import pytest

import penstock as ps
from penstock.connectors.loading import input_for
from penstock.engine.contract.commit import Commit
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.steering import Steering
from penstock.engine.contract.valve import Valve
from penstock.engine.spark.trains.ticket_planner import TicketPlanner
from penstock.rewrite.subnetworks import split

SECOND = 1_000_000
SCHEMA = "time TIMESTAMP, k BIGINT"
WINDOWS = {"grain": "windows", "size": 10 * SECOND, "every": 10 * SECOND}


class Planned:
    """The conductor's planner; each train takes one tuple of each input, in which nothing happens."""

    def __init__(self, build, times, folder, at="a"):
        net = ps.Network("n")
        for name, seconds in times.items():
            given = ({"time": second * SECOND, "k": 1} for second in seconds)
            net.source(name, ps.rows(given, SCHEMA), timestamp="time")
        build(*(net.stream(name) for name in times)).output("out", to=ps.memory())
        (self.sub,) = split(net)
        self.inputs = {name: input_for(net.nodes[name], folder / name) for name in times}
        for given in self.inputs.values():
            given.patience = math.inf
        self.steering, self.train, self.times, self.at = Steering(AsSoonAsPossible()), 0, times, at
        self.planner = self.anew()

    def anew(self):
        return TicketPlanner(self.sub, self.inputs, self.steering, 1)

    def steps(self, now, share=None):
        """The steps of the valve in the next ticket: (share, until), in seconds; None: there is no valve."""
        self.steering.valves = () if share is None else (Valve(self.at, share, **WINDOWS),)
        ticket = self.planner.ticket(self.train, self.planner.look(1, now), final=False, epoch=0)
        self.planner.written(ticket, now)
        newest = {name: max(seconds[: self.train + 1]) for name, seconds in self.times.items() if seconds}
        self.planner.learn(Commit(self.train, newest={n: second * SECOND for n, second in newest.items()}))
        self.train, self.last = self.train + 1, ticket
        steps = [(step.share, step.until // SECOND) for valve in ticket.valves for step in valve.steps]
        return steps[:-1] if ticket.valves else None

    def restart(self, newest):
        self.planner = self.anew()
        self.planner.resume(self.last)
        self.planner.learn(Commit(self.train - 1, newest={"a": newest * SECOND}))


def counted(a, b):
    return a.union(b).tumble("10 seconds", n="count(*)")


def joined_and_counted(a, b):
    both = a.join(b, on="k", within="60 seconds", name="both")
    return both.tumble("10 seconds", n="count(*)", name="counts")


@pytest.mark.parametrize("restarted", [False, True])
def test_windows_that_close_without_an_idle_input_are_forgotten(tmp_path, restarted):
    """The idle input itself never gets anywhere."""
    run = Planned(counted, {"a": [5, 8, 60, 61, 62], "b": []}, tmp_path)
    assert run.steps(0, 0.5) == []
    assert run.steps(1) == [(0.5, 5)]
    assert run.steps(2) == [(0.5, 5)]
    assert run.steps(20) == [(0.5, 5)], "this train closes the window that was chosen"
    if restarted:
        run.restart(61)
    assert run.steps(21) is None


def test_windows_behind_a_box_that_holds_back_are_remembered(tmp_path):
    """They are open for longer than the inputs tell."""
    times = [5, 65, 80, 140, 141]
    run = Planned(joined_and_counted, {"a": times, "b": times}, tmp_path, at="both->counts")
    assert [run.steps(0, 0.5) for _ in range(2)] == [[], []]
    assert [run.steps(0) for _ in range(3)] == [[(0.5, 65)]] * 3
    assert run.steps(0) is None
