"""What a policy knows before each train, and what trains cost: the real conductor and tasks, no Spark."""

from __future__ import annotations

import pytest

import penstock as ps
from engine.spark.trains.test_express import network, three_seconds
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.situation import RecentCost
from penstock.testing.dry_run import DryRun


class Recording(AsSoonAsPossible):
    """The default policy, with a memory."""

    def next_train(self, situation):
        self.seen = [*getattr(self, "seen", []), situation]
        return super().next_train(situation)


@pytest.fixture
def run(tmp_path):
    three_seconds(tmp_path)
    done = []
    dry = DryRun(network(tmp_path), tmp_path / "checkpoint", listen=done.append)
    dry.query.steering.policy = Recording(length=1)
    while dry.train():
        pass
    return dry.query.steering.policy.seen, done


def test_the_first_train_knows_only_what_waits(run):
    first = run[0][0]
    assert (first.train, first.departed, first.recent) == (0, None, RecentCost())
    rows = first.inputs["rows"]
    assert (rows.taken_tuples, rows.waiting_tuples, rows.offered_tuples) == (0, 7, 7)
    assert (rows.waiting_bytes, rows.offered_rate) == (45, None)
    assert 0 <= rows.oldest_age < 600


def test_a_ticket_tells_when_each_delivery_came(run):
    for each in run[1]:
        assert sum(tuples for _, tuples in each.ticket.arrivals) == each.ticket.rows
    assert any(each.ticket.arrivals for each in run[1])


def test_later_trains_know_what_was_taken_and_what_it_cost(run):
    situations, done = run
    last = situations[-1]
    assert last.inputs["rows"].taken_tuples == sum(each.ticket.rows for each in done) == 7
    assert last.recent.trains == len(done)
    assert last.recent.tuples == 7
    assert 0 < last.recent.wall_per_tuple < 60


def test_every_box_of_a_stage_has_its_cost(run):
    _, done = run
    costs = done[0].commit.costs
    assert set(costs) >= {"fast", "by_road", "roads", "cars"}
    assert all(cost.wall > 0 and cost.cpu >= 0 for cost in costs.values())
    total = sum(cost.cpu for each in done for cost in each.commit.costs.values())
    assert run[0][-1].recent.cpu == pytest.approx(total)


def test_qos_of_the_outputs(tmp_path):
    three_seconds(tmp_path)
    net = network(tmp_path)
    qos = ps.QoS(delay=[(0, 1.0), (5, 1.0), (30, 0.0)])
    net.output("watched", net.stream("fast"), to=ps.csv(str(tmp_path / "watched")), qos=qos)
    dry = DryRun(net, tmp_path / "checkpoint")
    dry.query.steering.policy = Recording()
    dry.train()
    assert dry.query.steering.policy.seen[0].qos == {"watched": qos}
