"""What a checkpoint accepts and refuses, without Spark."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.steering import Steering
from penstock.engine.spark.trains.query import SubnetworkQuery
from penstock.model.errors import NetworkError
from penstock.rewrite.forms import Form
from penstock.rewrite.subnetworks import at_point, split
from penstock.runtime.box_facts import facts, same
from penstock.runtime.checkpoint_identity import CheckpointError, claim, settled

SCHEMA = "time TIMESTAMP, k INT, v INT"


def take(checkpoint, net, *, fresh=False):
    """What a runtime does with a checkpoint before it starts; gives the names of its sub-networks."""
    subs = settled(checkpoint, split(net), moved=fresh)
    claim(checkpoint, net, subs, facts(subs, 2, fuse=True), fresh=fresh)
    return [sub.name for sub in subs]


def windows(*, name="w", size="1 minute", alarm=False, point=False, out=True, source="s"):
    net = ps.Network("m")
    s = net.source(source, ps.csv("in", SCHEMA), timestamp="time")
    w = s.group_by("k").tumble(size, n="count(*)", name=name)
    if alarm:
        w.filter("n > 3").output("alarm", to=ps.console())
    if point:
        w.connection_point("p", key="k")
    if out:
        w.output("o", to=ps.console())
    return net


def stateless(folder, *, view=False, seen=True, between=False):
    net = ps.Network("m")
    f = net.source("s", ps.csv(str(folder), "time TIMESTAMP, k INT"), timestamp="time").filter("k > 0")
    if view:
        f.view("seen")
    if between:
        f = f.connection_point("between")
    if seen:
        f.output("o", to=ps.parquet(str(folder / "o")))
    return net


def test_an_end_that_is_added_changes_nothing_for_the_others(tmp_path):
    assert take(tmp_path, windows()) == ["o"]
    assert take(tmp_path, windows(alarm=True)) == ["o"]
    assert take(tmp_path, windows(alarm=True, point=True)) == ["o"]
    assert take(tmp_path, windows(alarm=True, out=False)) == ["o"]
    assert take(tmp_path, windows(point=True)) == ["o"]


def test_nothing_is_read_twice_when_a_view_is_added(tmp_path):
    """The place in the input is found again although the sub-network would be named after the view."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("2024-01-01 00:00:00,1\n2024-01-01 00:00:01,2\n")
    checkpoint = tmp_path / "checkpoint"
    tickets = []
    for view in (False, True):
        net = stateless(tmp_path / "in", view=view)
        take(checkpoint, net)
        (sub,) = settled(checkpoint, split(net))
        query = SubnetworkQuery(sub, None, checkpoint, Steering(AsSoonAsPossible()))
        tickets.append((query.last, query.next_ticket()))
    assert tickets == [(-1, True), (0, False)]


def test_a_renamed_box_with_state(tmp_path):
    take(tmp_path, windows())
    with pytest.raises(NetworkError) as caught:
        take(tmp_path, windows(name="renamed", size="5 minutes"))
    said = str(caught.value)
    assert f"checkpoint {tmp_path} holds the state of box 'w', which is gone from the way to 'o'" in said
    assert "expected: a box named 'w'" in said
    assert "Runtime.replace(network, fresh_state=True)" in said
    assert "test_checkpoint_identity.py:" in said
    take(tmp_path, windows())  # the refusal changed nothing
    with pytest.raises(NetworkError, match="was made by another configuration: size changed"):
        take(tmp_path, windows(size="5 minutes"))
    take(tmp_path, windows(name="renamed", size="5 minutes"), fresh=True)
    take(tmp_path, windows(name="renamed", size="5 minutes"))


def two(*, left=True, right=True, size="1 minute"):
    net = ps.Network("m")
    s = net.source("s", ps.csv("in", SCHEMA), timestamp="time").filter("v > 0")
    point = s.connection_point("p")
    if left:
        point.group_by("k").tumble(size, n="count(*)", name="lw").output("left", to=ps.console())
    if right:
        point.group_by("k").tumble("1 minute", n="count(*)", name="rw").output("right", to=ps.console())
    return net


def test_a_sub_network_may_go_and_come_back(tmp_path):
    assert take(tmp_path, two()) == ["p", "left", "right"]
    assert take(tmp_path, two(left=False)) == ["p", "right"]
    with pytest.raises(NetworkError, match="size changed"):
        take(tmp_path, two(size="5 minutes"))
    assert take(tmp_path, two()) == ["p", "left", "right"]


def test_a_box_that_left_with_all_its_ends_comes_back_empty(tmp_path):
    def net(*, both):
        made = ps.Network("m")
        s = made.source("s", ps.csv("in", SCHEMA), timestamp="time")
        s.filter("v > 0").output("plain", to=ps.console())
        if both:
            s.group_by("k").tumble("1 minute", n="count(*)", name="w").output("counts", to=ps.console())
        return made

    (name,) = take(tmp_path, net(both=True))
    state = tmp_path / "queries" / name / "state" / "w"
    state.mkdir(parents=True)
    take(tmp_path, net(both=False))
    assert not state.exists()
    assert take(tmp_path, net(both=True)) == [name]


def test_a_point_put_in_between_would_read_again(tmp_path):
    take(tmp_path, stateless(tmp_path))
    with pytest.raises(
        NetworkError, match="it has read 's' so far and would now read 'between' from the beginning"
    ):
        take(tmp_path, stateless(tmp_path, between=True))


def test_what_ran_apart_cannot_run_as_one_nor_the_other_way_round(tmp_path):
    def net(*, shared):
        made = ps.Network("m")
        one = made.source("a", ps.csv("in", SCHEMA), timestamp="time")
        other = one if shared else made.source("b", ps.csv("in", SCHEMA), timestamp="time")
        one.filter("v > 0").output("x", to=ps.console())
        other.filter("v < 0").output("y", to=ps.console())
        return made

    assert take(tmp_path / "apart", net(shared=False)) == ["x", "y"]
    with pytest.raises(NetworkError, match="'x' and 'y' ran apart and would now run as one"):
        take(tmp_path / "apart", net(shared=True))
    assert take(tmp_path / "one", net(shared=True)) == ["x"]
    with pytest.raises(NetworkError, match="'x' and 'y' ran as one and would now run apart"):
        take(tmp_path / "one", net(shared=False))


def looking(condition, *, on="k"):
    net = ps.Network("m")
    a, b = (
        net.source(n, ps.csv(n, SCHEMA), timestamp="time").connection_point(f"p{n}", key="k") for n in "ab"
    )
    a.filter(condition, name="f").join(b, on=on, within="1 minute", name="pairs").output("o", to=ps.console())
    return net


def test_a_join_that_looked_keys_up_is_not_asked_for_others(tmp_path):
    """It has passed over the partners of the other keys."""
    take(tmp_path / "one", looking("k = 3"))
    take(tmp_path / "one", looking("k = 3"))
    with pytest.raises(NetworkError, match=r"box 'pairs'.*which keys it looks up changed"):
        take(tmp_path / "one", looking("k = 5"))
    take(tmp_path / "all", looking("k = 3", on="v"))
    take(tmp_path / "all", looking("k = 5", on="v"))


@pytest.mark.parametrize("others", ["k IN (3, 5)", "k % 2 = 1"])
def test_a_filter_that_the_optimizer_puts_in_for_a_look_up_is_a_fact(others):
    """An ad-hoc query starts in that form: the state of its join lacks all other keys of the point."""

    def pairs(condition):
        net = looking("k = 3")
        sub = at_point(
            net,
            "pa",
            "q",
            lambda s: s.filter(condition).join(
                s.network.stream("pb"), on="k", within="1 minute", name="near"
            ),
            to=ps.console(),
        )
        running = Form(rewritten=True).of(sub)
        assert [name for name in running.network.nodes if "keys_of_pb" in name]
        return facts([running], 2, fuse=True)["near"]

    assert pairs("k = 3") == pairs("k = 3")
    assert pairs("k = 3")["looked up"] == {"pb, input 1": "k = 3"}
    assert pairs(others)["looked up"] == {"pb, input 1": others}


def test_a_checkpoint_of_another_network(tmp_path):
    take(tmp_path, windows())
    other = ps.Network("another")
    other.source("s", ps.csv("in", SCHEMA), timestamp="time").output("o", to=ps.console())
    with pytest.raises(CheckpointError, match="belongs to network 'm', not to 'another'"):
        take(tmp_path, other)


def choosing(predicate, to):
    net = ps.Network("n")
    net.source("s", ps.csv("in", SCHEMA), timestamp="time").filter(predicate).output("o", to=to)
    return net


def test_other_code_under_the_same_name_is_not_the_same():
    sink = ps.memory()
    one = choosing(lambda batch: batch["v"], sink)
    assert same(one, choosing(lambda batch: batch["v"], sink))
    assert not same(one, choosing(lambda batch: batch["k"], sink))
    assert not same(one, choosing(lambda batch: batch["v"], ps.memory()))
