"""The roles that go into tickets: the planner's part, without trains."""

from __future__ import annotations

from penstock.engine.contract.commit import Commit
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.steering import Steering
from penstock.engine.contract.ticket import Ticket
from penstock.engine.spark.trains.ticket_planner import TakenInput, TicketPlanner
from penstock.model.diffused.roles import NEVER, Report, Roles
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import split
from penstock.testing import collect, rows_source

SECOND = 1_000_000


class Planned:
    """The tickets of one sub-network, by the horizons of its inputs in seconds."""

    def __init__(self, net, partitions=2):
        (sub,) = split(net)
        self.steering = Steering(AsSoonAsPossible())
        self.planner = TicketPlanner(sub, {}, self.steering, partitions)

    def roles(self, train, **horizons):
        """The roles of the join in the next train."""
        given = {name: at * SECOND for name, at in horizons.items()}
        looked = TakenInput({}, given, [], 0.0, self.planner._reached(given, []))
        ticket = self.planner.ticket(train, looked, final=False, epoch=0)
        self.planner.written(ticket, 0.0)
        return ticket.joins["j"]


def two_sources(build):
    net = Network("n")
    a, b = (net.source(n, rows_source("time TIMESTAMP, k INT, v INT"), timestamp="time") for n in "ab")
    build(a, b).output("out", to=collect())
    return net


def behind_windows(a, b):
    sums = a.group_by("k").tumble("10 seconds", total="sum(v)")
    return sums.join(b, on="k", within="5 seconds", distribution="diffused", servers=2, name="j")


def test_windows_that_a_train_closes_are_older_than_its_horizon():
    """Train 1 has the horizon 100 and closes the window of 0: that one meets tuples of before the switch."""
    planned = Planned(two_sources(behind_windows))
    assert planned.roles(0, a=0, b=0).scheme == "left"
    planned.planner.learn(Commit(0, joins={"j": (Report(0, newest=(NEVER, 9 * SECOND)),)}))
    planned.steering.schemes = {"j": "right"}
    switched = planned.roles(1, a=100, b=9)
    assert (switched.scheme, switched.both) == ("right", True)
    # What comes from now on is behind the horizon 100 of the train before.
    assert not planned.roles(2, a=110, b=100).both


def band(a, b):
    return a.join(b, within="5 seconds", distribution="diffused", servers=3, name="j")


def by_key(a, b):
    return a.join(b, on="k", within="5 seconds", distribution="auto", name="j")


def test_a_join_does_not_go_on_from_the_roles_of_another_one_of_its_name():
    """It was replaced, with fresh state: there may be nothing to hash, and other servers."""
    planned = Planned(two_sources(band))
    planned.planner.resume(Ticket(0, 0.0, joins={"j": Roles(2, "hash", (0, 1), epoch=4)}))
    planned.steering.schemes = {"j": "hash"}
    first = planned.roles(1, a=0, b=0)
    assert (first.scheme, first.servers, first.epoch, first.both) == ("left", 3, 5, False)
    assert planned.roles(2, a=0, b=0).scheme == "left", "it cannot be forced to hash"


def test_a_join_goes_on_from_its_own_roles():
    planned = Planned(two_sources(by_key))
    planned.planner.resume(Ticket(0, 0.0, joins={"j": Roles(2, "right", (0, 1), epoch=4)}))
    assert (planned.roles(1, a=0, b=0).scheme, planned.roles(2, a=0, b=0).epoch) == ("right", 4)
