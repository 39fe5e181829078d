"""Exchange the network under a reference engine between two trains, as `replace` does: state is kept."""

from __future__ import annotations

from penstock.engine.local import LocalEngine
from penstock.model.boxes import Trait


def swap(engine: LocalEngine, network):
    """An engine that goes on with this network where the other one is."""
    other = LocalEngine(network)
    other.result, other.sources, other.trains = engine.result, engine.sources, engine.trains
    for name, node in network.nodes.items():
        if name in engine.network.nodes:
            other._promised[name] = engine._promised[name]
        if Trait.STATEFUL in node.traits:
            assert other._logic(node).__class__ is engine.logics[name].__class__
            other.logics[name] = engine.logics[name]
    return other


def run_with_swaps(network, trains, swaps):
    """Run all trains; before the train of each number, exchange the network for the one given."""
    engine = LocalEngine(network)
    for number, train in enumerate(trains):
        if number in swaps:
            engine = swap(engine, swaps[number])
        engine.train(train)
    return engine.finish()


def stateful(network):
    """The boxes that would be in use after a train."""
    return frozenset(name for name, node in network.nodes.items() if Trait.STATEFUL in node.traits)


def same_inputs(written, form):
    """Whether every box with state gets the columns that it got as written."""
    return all(
        [t.schema for t in written.input_types(name)] == [t.schema for t in form.input_types(name)]
        for name in stateful(written)
    )
