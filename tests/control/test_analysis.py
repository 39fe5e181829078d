"""Static analysis: rates through selectivities, load against capacity, thresholds that trains can meet."""

from __future__ import annotations

from dataclasses import replace

import pytest

import penstock as ps
from penstock.control.analysis import analyse, box_rates, capacity_of, usable_share
from penstock.control.calibration import LengthsInTurn, calibrate, warm_trains
from penstock.control.costs import costs_of
from penstock.engine.contract.situation import Situation
from penstock.model.costs import Line, MeasuredBox, MeasuredCosts, MeasuredSubnetwork
from penstock.model.errors import PenstockError
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.record_types import TrainRecord


def network(*, alarms=2.0, means=8.0):
    net = ps.Network("n")
    cars = net.source("cars", ps.csv("in", "time TIMESTAMP, spd INT, seg INT"), timestamp="time")
    fast = cars.filter("spd > 90", name="fast")
    fast.output("alarms", to=ps.csv("out/a"), qos=ps.QoS(delay=[(0, 1), (alarms, 1), (60, 0)]))
    kept = cars.group_by("seg").tumble("10 seconds", n="count(*)", name="tens").connection_point("kept")
    busy = kept.filter("n > 3", name="busy")
    busy.output("means", to=ps.csv("out/m"), qos=ps.QoS(delay=[(0, 1), (means, 1), (60, 0)]))
    return net


def costs(*, fixed=0.2, wall=2e-6, cpu=4e-6):
    boxes = {
        "fast": MeasuredBox("fast", "kept", 4, 1000, 100),
        "tens": MeasuredBox("tens", "kept", 4, 1000, 10, Line(0.01, 1e-6)),
        "busy": MeasuredBox("busy", "means", 4, 10, 5),
    }
    subs = {
        name: MeasuredSubnetwork(name, 64, 10**6, Line(fixed, wall), Line(fixed, cpu), Line(fixed, cpu))
        for name in ("kept", "means")
    }
    return MeasuredCosts(boxes, subs)


def problems(analysis):
    return {output.name: output.problem for output in analysis.outputs}


def test_rates_run_through_selectivities():
    flow = box_rates(network(), costs(), {"cars": 10_000})
    assert flow["alarms"].rate_in == 1_000
    assert flow["kept"].rate_in == pytest.approx(100)
    assert flow["means"].rate_in == pytest.approx(50)
    assert flow["tens"].load == pytest.approx(0.01)
    assert flow["fast"].load is None


def test_what_fits_is_fine():
    analysis = analyse(network(), costs(), {"cars": 100_000}, cores=2)
    assert analysis.feasible
    assert analysis.load == pytest.approx(0.404, rel=0.01)
    assert analysis.capacity == 2


def test_a_threshold_that_no_rate_can_meet():
    analysis = analyse(network(alarms=0.4), costs(), {"cars": 1}, cores=2)
    (alarms,) = (output for output in analysis.outputs if output.name == "alarms")
    assert alarms.never
    assert "cannot be good at any rate" in alarms.problem
    assert "0.50 s is the least" in alarms.problem


def test_the_way_through_a_point_takes_both_trains():
    outputs = {o.name: o for o in analyse(network(), costs(), {"cars": 1}, cores=2).outputs}
    assert (outputs["alarms"].fixed, outputs["means"].fixed) == (0.2, 0.4)


def test_strict_outputs_have_less_of_the_capacity():
    """At 400,000 a second trains are busy 0.8 of the time: too long for 2 s, short enough for 8 s."""
    analysis = analyse(network(), costs(), {"cars": 400_000}, cores=2)
    told = problems(analysis)
    assert (
        "the trains of 'kept' would take 0.80 s for each second of input, 0.75 s may be used"
        in told["alarms"]
    )
    assert told["means"] == ""


def test_all_sub_networks_together_need_the_cpu():
    told = problems(analyse(network(), costs(cpu=4e-6, wall=1e-6), {"cars": 450_000}, cores=2))
    assert "need 1.82 CPU-s a second" in told["alarms"]


def test_what_has_no_qos_keeps_no_rated_output_from_being_good():
    """It gets what is left, so only its own output falls behind."""
    net = network()
    bulk = net.source("bulk", ps.csv("in2", "time TIMESTAMP, spd INT"), timestamp="time")
    net.output("slow", bulk.filter("spd > 0", name="moving"), to=ps.csv("out/s"))
    known = costs()
    known.subnetworks["slow"] = MeasuredSubnetwork(
        "slow", 64, 10**6, Line(0.1, 1e-6), Line(0.1, 2e-6), Line(0.1, 2e-6)
    )
    told = problems(analyse(net, known, {"cars": 100_000, "bulk": 900_000}, cores=2))
    assert told["alarms"] == told["means"] == ""
    assert "need 2.20 CPU-s a second" in told["slow"]


def test_what_writes_a_point_for_a_rated_output_is_its_load_too():
    net = ps.Network("n")
    cars = net.source("cars", ps.csv("in", "time TIMESTAMP, spd INT"), timestamp="time")
    kept = cars.filter("spd > 0", name="fast").connection_point("kept")
    kept.filter("spd > 9", name="busy").output("means", to=ps.csv("out/m"), qos=network().nodes["means"].qos)
    told = problems(analyse(net, costs(cpu=4e-6, wall=1e-6), {"cars": 450_000}, cores=2))
    assert "CPU-s a second" in told["means"]


def test_capacity_is_what_trains_can_spread_over():
    assert capacity_of(costs(wall=4e-6, cpu=4e-6).subnetworks.values(), 2) == 1.0
    assert capacity_of(costs(wall=1e-6, cpu=9e-6).subnetworks.values(), 2) == 2.0
    assert capacity_of([], 4) == 4.0


def test_usable_shares_of_the_design():
    assert [round(usable_share(f, 2.0, 0.9), 3) for f in (0.22, 0.27, 0.49)] == [0.725, 0.662, 0.388]


def test_notes_name_what_is_assumed_and_what_helps():
    unknown = MeasuredCosts({}, costs().subnetworks)
    notes = analyse(network(), unknown, {"cars": 460_000}, cores=2).notes
    assert any("selectivity of 'fast' is not known" in note for note in notes)
    assert any(note.startswith("what helps") for note in notes)


@pytest.mark.parametrize("loss", [(), [(0, 0), (100, 1)]])
def test_a_loss_graph_helps_only_who_has_none(loss):
    net = network()
    for name in net.outputs:
        net.set_qos(name, ps.QoS(delay=[(0, 1), (2, 1), (10, 0)], loss=loss))
    helps = analyse(net, costs(), {"cars": 460_000}, cores=2).notes[-1]
    assert helps.startswith("what helps: ")
    assert ("a loss graph for alarms, means, so" in helps) is not bool(loss)
    assert "a larger threshold; a lower rate; cheaper boxes" in helps


def test_refusals():
    with pytest.raises(PenstockError, match="no source 'car'"):
        analyse(network(), costs(), {"car": 1, "cars": 1}, cores=2)
    with pytest.raises(PenstockError, match="rate of source 'cars' is missing"):
        analyse(network(), costs(), {}, cores=2)
    with pytest.raises(PenstockError, match="what sub-network 'kept' costs is not known"):
        analyse(network(), MeasuredCosts(), {"cars": 1}, cores=2)
    net = ps.Network("n")
    net.source("cars", ps.rows(iter([]), "time TIMESTAMP"), timestamp="time").output("out", to=ps.memory())
    with pytest.raises(PenstockError, match="can be read only once"):
        calibrate(net, 1.0)


def test_a_calibration_gives_each_subnetwork_trains_of_all_lengths():
    """Where two asked in turn, one got all the long trains, and neither told what is fixed."""
    policy = LengthsInTurn()
    asked = [policy.next_train(Situation(name, n, now=1.0)) for n in range(8) for name in ("a", "b")]
    assert asked[::2] == asked[1::2] == [1_000, 20_000, 5_000, 100_000] * 2


def test_the_first_trains_of_a_calibration_are_cold(tmp_path):
    catalog = Catalog(tmp_path / "catalog.db")
    lengths = [1_000, 20_000, 5_000, 100_000] * 3
    for k, n in enumerate(lengths):
        took = 0.2 + 2e-5 * n + (5.0 if k < 4 else 0.0)
        catalog.record_train(TrainRecord("kept", k, 10.0 * k, 10.0 * k + took, n, cpu=took))
    catalog.record_train(TrainRecord("means", 0, 0.0, 9.0, 10, cpu=9.0))
    catalog.close()
    warm = warm_trains(tmp_path)
    assert [train.train for train in warm["kept"]] == [4, 5, 6, 7, 8, 9, 10, 11]
    assert len(warm["means"]) == 1, "a cold one is better than none"
    known = costs_of(warm, jobs=True)
    assert known.fixed_seconds("kept") == pytest.approx(0.2)
    assert (known.subnetworks["kept"].fixed_known, known.subnetworks["means"].fixed_known) == (True, False)


def test_what_is_fixed_must_be_known_before_it_is_a_reason():
    known = costs(fixed=5.1)
    never = analyse(network(), known, {"cars": 1}, cores=2)
    assert all(output.never for output in never.outputs)
    subs = {name: replace(sub, fixed_known=False) for name, sub in known.subnetworks.items()}
    told = analyse(network(), MeasuredCosts(known.boxes, subs), {"cars": 1}, cores=2)
    assert told.feasible
    assert [output.fixed for output in told.outputs] == [None, None]
    assert any("takes without tuples is not known" in note for note in told.notes)


def test_a_box_costs_no_more_than_its_subnetwork():
    known = costs()
    known.boxes["tens"] = MeasuredBox("tens", "kept", 4, 1000, 10, Line(0.0, 1.42e-4))
    told = analyse(network(), known, {"cars": 100_000}, cores=2)
    load = next(box.load for box in told.boxes if box.box == "tens")
    assert told.subnetworks[0].load >= load


def test_a_calibration_run_leaves_nothing_behind(spark, tmp_path):
    (tmp_path / "in").mkdir()
    lines = [f"{k},{k % 120}\n" for k in range(4000)]
    (tmp_path / "in" / "a.csv").write_text("".join(lines))
    net = ps.Network("small")
    cars = net.source(
        "cars", ps.csv(str(tmp_path / "in"), "time TIMESTAMP, spd INT", settle=0), timestamp="time"
    )
    cars.filter("spd >= 90", name="fast").output("alarms", to=ps.csv(str(tmp_path / "out")))
    measured = calibrate(net, 0.5, spark)
    assert not (tmp_path / "out").exists()
    assert measured.boxes["fast"].selectivity == 0.2475
    assert measured.subnetworks["alarms"].wall.at(4000) > 0
    assert analyse(net, measured, {"cars": 0}, cores=2).outputs[0].problem == ""
