"""The Spark engine's plan of horizons against the definition, on random networks and horizons."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.engine.spark.layout.horizons import HorizonPlan
from penstock.model.checks.horizons import MIN, after
from penstock.testing.strategies import networks

HORIZONS = st.one_of(
    st.just(MIN), st.integers(-(10**7), 10**7), st.integers(MIN, MIN + 10**8), st.integers(2**62, 2**63 - 1)
)


def throughout(nodes, given_):
    """The horizon behind every node, from those of the inputs; nodes in topological order."""
    horizons = {}
    for node in nodes:
        inputs = tuple(horizons[up] for up in node.inputs)
        horizons[node.name] = after(node, inputs) if inputs else given_.get(node.name, MIN)
    return horizons


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(network=networks(), data=st.data())
def test_the_plan_promises_what_the_definition_promises(network, data):
    nodes = list(network.nodes.values())
    given_ = {name: data.draw(HORIZONS) for name in network.sources}
    assert HorizonPlan.of(nodes).behind(given_) == throughout(nodes, given_)
