"""No pair is lost or doubled: random streams, skew, rates and switches, compared with two nested loops."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from diffusion.worlds import ArrowEngine, LoopsEngine, network, run, worlds
from penstock.engine.local import LocalEngine
from penstock.model.join_distribution import Diffusion
from penstock.model.writing.network import Network

ENGINES = pytest.mark.parametrize("kind", [LoopsEngine, ArrowEngine], ids=["loops", "arrow"])
MANY = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))


@ENGINES
@MANY
@given(world=worlds())
def test_switches_at_any_moment(kind, world):
    result = run(kind(world.network), world).result
    assert world.pairs(result.outputs["out"]) == world.truth()
    assert result.dead_letters == []


@ENGINES
@MANY
@given(world=worlds(forced=False))
def test_switches_as_measured(kind, world):
    assert world.pairs(run(kind(world.network), world).result.outputs["out"]) == world.truth()


def by_hash(net: Network) -> Network:
    """The same network with a join that knows nothing of servers."""
    plain = network((0, 0), on=False, where="").nodes["pairs"]
    nodes = [
        replace(n, distribution="hash", servers=None, diffusion=plain.diffusion) if n.name == "pairs" else n
        for n in net.nodes.values()
    ]
    return Network.of(net.name, nodes)


@ENGINES
@MANY
@given(world=worlds(late=True))
def test_late_tuples_are_the_same_and_told_once(kind, world):
    # the reference of the reference: the plain join on the same trains
    plain = LocalEngine(by_hash(world.network)).run(world.trains)
    result = run(kind(world.network), world).result
    assert world.pairs(result.outputs["out"]) == world.pairs(plain.outputs["out"])
    told = [sorted((d.box, d.offset, d.reason) for d in r.dead_letters) for r in (result, plain)]
    assert told[0] == told[1]


@ENGINES
@settings(MANY, max_examples=40)
@given(world=worlds(forced=False).filter(lambda world: world.on))
def test_hash_over_servers_of_its_own(kind, world):
    nodes = [
        replace(n, distribution="hash", diffusion=Diffusion(), servers=3) if n.name == "pairs" else n
        for n in world.network.nodes.values()
    ]
    engine = kind(Network.of("two", nodes))
    assert world.pairs(run(engine, world).result.outputs["out"]) == world.truth()
    assert (engine.logics["pairs"].roles.servers, engine.logics["pairs"].roles.scheme) == (3, "hash")


def test_a_plain_switch_would_lose_and_double_pairs():
    """Why there is an owner rule: the same switches without a transition and without epochs."""
    from penstock.engine.local.boxes import diffused_join as diffused

    net = network((5, 5), on=True, where="", distribution="diffused", servers=3, sample=1)
    trains = [{"left": [(t, 1, t)], "right": [(t, 1, t)]} for t in range(12)]
    engine = LoopsEngine(net)
    logic = engine.logics["pairs"]
    for n, train in enumerate(trains):
        logic.forced = ("left", "right")[n // 2 % 2]
        engine.train(train)
        logic.roles = replace(logic.roles, both=False, epoch=0)
    naive = len(engine.finish().outputs["out"])
    plain = len(LocalEngine(by_hash(net)).run(trains).outputs["out"])
    assert naive != plain
    assert diffused.producer(0, True, 1, 1, True, 2) == 1
