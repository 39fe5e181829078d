"""The Spark engine's plan of horizons against the definition: random networks, horizons, idle inputs."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.engine.spark.layout.horizons import HorizonPlan, Step
from penstock.model.checks.horizons import MIN, after, lift
from penstock.testing.strategies import networks

HORIZONS = st.one_of(
    st.just(MIN), st.integers(-(10**7), 10**7), st.integers(MIN, MIN + 10**8), st.integers(2**62, 2**63 - 1)
)
SEARCH = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))


class Reference:
    """What the reference engine does in `_through`, and its boxes in their gates, without any tuples."""

    def __init__(self, nodes):
        self.nodes, self.promised, self.acted = nodes, {}, {}

    def train(self, given_, idle):
        """The horizon behind every node, from those of the inputs; nodes in topological order."""
        horizons, asleep = {}, set(idle)
        for node in self.nodes:
            if not node.inputs:
                horizons[node.name] = given_.get(node.name, MIN)
                continue
            arrows = lift([horizons[up] for up in node.inputs], [up in asleep for up in node.inputs])
            self.acted[node.name] = tuple(map(max, self.acted.get(node.name, arrows), arrows))
            promise = max(self.promised.get(node.name, MIN), after(node, arrows))
            horizons[node.name] = self.promised[node.name] = promise
            if asleep.issuperset(node.inputs):
                asleep.add(node.name)
        return horizons


@SEARCH
@given(network=networks(), data=st.data())
def test_the_plan_promises_what_the_definition_promises(network, data):
    nodes = list(network.nodes.values())
    given_ = {name: data.draw(HORIZONS) for name in network.sources}
    assert HorizonPlan.of(nodes).reached(given_).behind == Reference(nodes).train(given_, [])


@SEARCH
@given(network=networks(), data=st.data())
def test_train_after_train_inputs_fall_asleep_and_wake_up(network, data):
    nodes = list(network.nodes.values())
    plan, reference = HorizonPlan.of(nodes), Reference(nodes)
    given_, lifted = dict.fromkeys(network.sources, MIN), {}
    for _ in range(data.draw(st.integers(1, 6))):
        given_ = {name: max(before, data.draw(HORIZONS)) for name, before in given_.items()}
        idle = [name for name in network.sources if data.draw(st.booleans())]
        now = plan.reached(given_, idle, lifted)
        assert now.behind == reference.train(given_, idle)
        assert now.before == reference.acted
        assert plan.reached(given_, idle, now.lifted) == now  # a train that runs again
        lifted = now.lifted


def test_an_idle_input_is_passed_only_where_it_meets_others():
    plan = HorizonPlan((Step("a", ()), Step("b", ()), Step("own", ("a",)), Step("all", ("a", "b"))))
    asleep = plan.reached({"a": 0, "b": 50}, ["a"])
    assert (asleep.behind["own"], asleep.before["all"]) == (0, (50, 50))
    awake = plan.reached({"a": 0, "b": 60}, [], asleep.lifted)
    assert (awake.behind["own"], awake.before["all"]) == (0, (50, 60))
    assert plan.reached({"a": 55, "b": 60}, [], awake.lifted).lifted == {}


def test_another_form_of_a_box_begins_anew():
    plan = HorizonPlan((Step("a", ()), Step("b", ()), Step("c", ()), Step("all", ("a", "b", "c"))))
    assert plan.reached({"a": 1, "b": 2, "c": 3}, [], {"all": (50, 50), "gone": (9, 9)}).before == {
        "all": (1, 2, 3)
    }
