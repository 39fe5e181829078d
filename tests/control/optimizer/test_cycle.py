"""The optimizer's cycle over a run without Spark: when it swaps, when it does not, when it takes it back."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from penstock.control.optimizer.decide import Limits
from penstock.engine.contract.valve import Step, Valve
from penstock.model.errors import PenstockError
from penstock.model.qos import QoS
from penstock.model.writing.network import Network
from penstock.rewrite.forms import Form
from penstock.rewrite.subnetworks import at_point
from penstock.store.catalog.record_types import OutputSecond
from penstock.testing import collect, rows_source

from .plant import LIMITS, Plant

COSTLY = {"odd": (40.0, 0.9), "large": (0.1, 0.1)}


def odd(batch):
    return batch.column("v")


def network(*, qos=None):
    net = Network("n")
    trades = net.source("trades", rows_source("k INT, v INT"))
    chosen = trades.filter(odd, reads="v", rowwise=True, name="odd").filter("k > 9", name="large")
    net.output("alarms", chosen, to=collect(), qos=qos)
    return net


def order(plant):
    return [name for name in plant.queries[plant.name].sub.network.nodes if name in COSTLY]


def test_a_costly_function_in_front_is_moved_behind(tmp_path):
    plant = Plant(tmp_path, network(), COSTLY)
    before = plant.cpu()
    plant.look()
    assert order(plant) == ["large", "odd"]
    assert plant.cpu() < before / 5
    (sentence,) = plant.said()
    assert sentence.startswith("alarms runs in another form: ")
    assert "'large' goes in front of 'odd'" in sentence
    plant.look()  # measured: it keeps its promise
    (decision,) = plant.decisions.last()
    assert decision.kind == "optimize"
    assert decision.subject == "alarms"
    assert decision.outputs == ("alarms",)
    assert decision.realised["cpu_share"] == pytest.approx(decision.expected["cpu_share"], abs=0.1)
    plant.look()
    assert len(plant.swaps) == 1


def test_nothing_before_enough_trains_were_measured(tmp_path):
    plant = Plant(tmp_path, network(), COSTLY)
    plant.look(seconds=7)
    assert plant.swaps == []
    assert plant.said() == []


def test_what_was_not_realised_is_undone_and_remembered(tmp_path):
    """The measured costs are wrong: the function costs nothing, something around it does."""
    plant = Plant(tmp_path, network(), {"odd": (0.5, 0.9), "large": (0.5, 0.1)})
    plant.told = lambda: COSTLY
    plant.look()
    assert order(plant) == ["large", "odd"]
    plant.truth = {"odd": (0.1, 0.9), "large": (4.0, 0.1)}  # now it costs more
    plant.look()
    assert order(plant) == ["odd", "large"]
    assert "alarms runs as before: the other form saved" in plant.said()[-1]
    first = plant.decisions.last()[0]
    assert first.realised["cpu_share"] < first.expected["cpu_share"] / 2
    for _ in range(6):
        plant.look()
    assert len(plant.swaps) == 2
    plant.optimizer = plant.begun()  # a restart remembers too
    plant.look()
    assert len(plant.swaps) == 2


def test_a_sub_network_that_gets_no_more_tuples_does_not_stop_the_cycle(tmp_path):
    plant = Plant(tmp_path, network(), COSTLY)
    plant.look()
    assert plant.optimizer._memory.swap is not None
    plant.now += LIMITS.repaid + 1
    plant.optimizer.look()
    assert plant.optimizer._memory.swap is None


def test_a_form_that_somebody_else_has_changed_is_not_judged(tmp_path):
    """`replace` in between: the trains since then say nothing about the swap."""
    plant = Plant(tmp_path, network(), COSTLY)
    plant.look()
    plant.rewrite(plant.name, Form())
    plant.look()
    assert plant.optimizer._memory.swap is None
    assert len(plant.swaps) == 2  # ours and theirs; none undone
    assert plant.decisions.last()[0].realised == {}


def test_a_way_back_that_is_refused_does_not_stop_the_cycle(tmp_path):
    plant = Plant(tmp_path, network(), COSTLY)
    plant.look()
    plant.truth = {"odd": (40.0, 0.9), "large": (60.0, 0.1)}

    def refuse(*_):
        raise PenstockError("cannot run in this form with the state that it has")

    plant.rewrite = refuse
    plant.look()
    assert "alarms stays in its form, though it saved" in plant.said()[-1]
    plant.look()
    assert plant.optimizer.failure is None


def test_a_swap_is_judged_after_a_restart_too(tmp_path):
    plant = Plant(tmp_path, network(), COSTLY)
    plant.look()
    plant.optimizer = plant.begun()
    plant.truth = {"odd": (40.0, 0.9), "large": (60.0, 0.1)}
    plant.look()
    assert order(plant) == ["odd", "large"]


def test_less_than_five_percent_is_not_worth_a_blip(tmp_path):
    plant = Plant(tmp_path, network(), {"odd": (0.2, 0.9), "large": (0.1, 0.1)}, rate=1_000)
    plant.look()
    assert plant.swaps == []
    assert "less than 5 %" in plant.said()[0]
    plant.look()
    assert len(plant.said()) == 1  # said once


def test_a_blip_must_be_repaid_in_ten_minutes(tmp_path):
    plant = Plant(tmp_path, network(), COSTLY, rate=1_000)
    plant.catalog.record_event("rewrite", plant.name, blip=400.0)
    plant.look()
    assert plant.swaps == []
    assert "is repaid only after" in plant.said()[0]


def test_at_most_one_swap_in_five_minutes(tmp_path):
    plant = Plant(tmp_path, network(), COSTLY)
    plant.look()
    plant.look()
    plant.rewrite(plant.name, Form())  # somebody put it back
    plant.swaps.clear()
    plant.look()
    assert "the last swap was 120 s ago" in plant.said()[-1]
    for _ in range(3):
        plant.look()
    assert len(plant.swaps) == 1


def test_never_while_tuples_are_shed(tmp_path):
    plant = Plant(tmp_path, network(), COSTLY)
    plant.queries[plant.name].steering.valves = ("one",)
    plant.look()
    assert plant.swaps == []
    assert plant.said() == ["nothing is optimized now: tuples of 'alarms' are shed"]
    plant.queries[plant.name].steering.valves = ()
    plant.look()
    assert len(plant.swaps) == 1


def test_never_while_windows_are_open_that_a_valve_has_chosen(tmp_path):
    """The valve has opened, but the last ticket still names what is missing, by the places of this form."""
    plant = Plant(tmp_path, network(), COSTLY)
    query = plant.queries[plant.name]
    chosen = Valve("cars", 1.0, "windows", size=10, every=10, steps=(Step(0.5, 0),))
    query.log.ticket = {query.last: SimpleNamespace(valves=(chosen,), horizons={})}.get
    plant.look()
    assert plant.swaps == []
    assert plant.said() == ["nothing is optimized now: tuples of 'alarms' are shed"]
    query.log.ticket = {query.last: SimpleNamespace(valves=(), horizons={})}.get
    plant.look()
    assert len(plant.swaps) == 1


def test_never_while_an_output_is_out_of_its_zone(tmp_path):
    plant = Plant(tmp_path, network(qos=QoS(delay=[(0, 1), (2, 1), (12, 0)])), COSTLY)
    plant.run(60)
    plant.catalog.record_second(int(plant.now), [], [OutputSecond("alarms", int(plant.now), ((7.0, 3),))])
    plant.optimizer.look()
    assert plant.swaps == []
    assert "'alarms' is out of its good zone" in plant.said()[0]


def test_a_run_with_once_is_left_alone(tmp_path):
    plant = Plant(tmp_path, network(), COSTLY)
    plant.once = True
    plant.look()
    assert plant.swaps == []


@pytest.mark.parametrize("watched", [{"held": True}, {"monitors": {"large": "somebody looks"}}], ids=str)
def test_a_sub_network_that_is_held_or_watched_is_left_alone(tmp_path, watched):
    plant = Plant(tmp_path, network(), COSTLY)
    plant.queries[plant.name].steering.__dict__.update(watched)
    plant.look()
    assert plant.swaps == []


def test_a_form_that_state_does_not_allow_is_not_tried_again(tmp_path):
    plant = Plant(tmp_path, network(), COSTLY)

    def refuse(*_):
        plant.swaps.append("refused")
        raise PenstockError("cannot run in this form with the state that it has")

    plant.rewrite = refuse
    plant.look()
    plant.look()
    assert plant.swaps == ["refused"]
    assert "stays in its form: cannot run" in plant.said()[0]


def test_a_query_is_rewritten_before_it_starts(tmp_path):
    net = Network("n")
    cars = net.source("cars", rows_source("time TIMESTAMP, k INT, v INT"), timestamp="time")
    cars.connection_point("kept", key="k")
    sub = at_point(net, "kept", "asked", lambda s: s.map(x="v * 2.0").filter("k = 7"), to=collect())
    plant = Plant(tmp_path, network(), COSTLY)
    form = plant.first_form(sub)
    first = next(node for node in form.of(sub).network.nodes.values() if node.is_box)
    assert first.kind == "filter"  # so that files without the key are not opened
    assert plant.said()[0].startswith("asked starts in another form, ")


def test_limits_are_those_of_the_docs():
    assert Limits() == Limits(every=60, share=0.05, repaid=600, pause=300, kept=0.5, trains=8)
