"""What is told of a run beside its utility, on runs made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.common.results import Record
from benchmarks.qos.capacity import offered_rates
from benchmarks.qos.judge import Second
from benchmarks.qos.no_overload import shed_in
from benchmarks.qos.overload import check
from benchmarks.qos.plots import load_curve, loss_curve
from benchmarks.qos.scheduler import ratios
from benchmarks.qos.trial import Observed
from benchmarks.qos.verdict import all_open_after, keeps_all_zones, kept_load
from benchmarks.qos.workload import PERMUTATIONS, SOURCE, graphs, network

from penstock.control.loop.structure import Structure
from penstock.control.roadmap import LoadNode
from penstock.control.valve_places import places
from penstock.model.costs import MeasuredBox, MeasuredCosts
from penstock.rewrite.subnetworks import split
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.record_types import Shed, TrainRecord

QOS = graphs(PERMUTATIONS[0])


def observed(*events, cpu=()):
    return Observed(Path("run"), [100.0, 100.25], [], 200.0, 1.0, cpu=list(cpu), events=list(events))


def seconds(count, late=0):
    return [Second(k, 1.0, 1.0, 1.0, 1.0, 99.0 if k < late else 0.5) for k in range(count)]


def test_valves_are_open_when_the_last_one_is():
    run = observed(
        (110.0, "kept", {"metric->burn": 0.3}),
        (112.0, "archive", {"kept": 0.5}),
        (165.0, "kept", {}),
        (168.0, "archive", {}),
    )
    assert all_open_after(run, end=60.0) == pytest.approx(8.0)
    assert all_open_after(observed((110.0, "kept", {"metric->burn": 0.3})), end=60.0) is None
    assert all_open_after(observed(), end=60.0) == 0.0


def test_the_kept_load_follows_from_valves_and_nodes(tmp_path):
    net = network(tmp_path / "in", tmp_path / "out", PERMUTATIONS[0])
    nodes = [LoadNode("shared", 1.0, frozenset(QOS)), LoadNode("burn", 3.0, frozenset(["scores"]))]
    run = observed(
        (110.0, "kept", {"metric->burn": 0.5}), (120.0, "kept", {SOURCE: 0.5}), (190.0, "kept", {})
    )
    series = kept_load(run, places(net), nodes, begin=0.0, end=60.0)
    assert series == [(10.0, pytest.approx(2.5 / 4)), (20.0, pytest.approx(0.5))]


def test_zones_are_kept_if_nearly_all_seconds_are_in_them():
    assert keeps_all_zones({"alarms": seconds(20, late=2)}, QOS, begin=0, least=0.9)
    assert not keeps_all_zones({"alarms": seconds(20, late=3)}, QOS, begin=0, least=0.9)
    assert keeps_all_zones({"alarms": seconds(20, late=3)}, QOS, begin=3, least=1.0)


def test_cpu_is_that_of_a_stretch():
    run = observed(cpu=[(100.0, 5.0), (105.0, 8.0), (110.0, 14.0), (115.0, 20.0)])
    assert run.cpu_between(5.0, 15.0) == pytest.approx(12.0)


def test_points_get_what_their_selectivities_leave(tmp_path):
    net = network(tmp_path / "in", tmp_path / "out", PERMUTATIONS[0])
    costs = MeasuredCosts({"slow": MeasuredBox("slow", tuples_in=100, tuples_out=5)})
    rates = offered_rates(Structure(tuple(split(net))), costs, {SOURCE: 1000.0})
    assert rates["kept"] == pytest.approx(50.0)


def test_answers_that_nobody_asked_for_make_a_result_wrong():
    fine = {"unasked_files": {"alarms": 0}, "control_failure": None, "wrong_windows": 0}
    piece = {"factor": 2.0, "contenders": {"state": fine, "random": {**fine, "wrong_windows": 9}}}
    record = Record("qos-overload")
    check(record, piece)
    assert record.wrong == []  # random shedding in front of windows is known to change them
    for wrong in ({"unasked_files": {"alarms": 1}}, {"control_failure": "x"}, {"wrong_windows": 1}):
        record = Record("qos-overload")
        check(record, {**piece, "contenders": {"state": {**fine, **wrong}}})
        assert len(record.wrong) == 1


def test_a_scheme_is_compared_with_both_alone():
    rows = [
        {"case": "strict alone", "strict_p99_s": 0.5, "bulk_per_s": None},
        {"case": "bulk alone", "strict_p99_s": None, "bulk_per_s": 1000.0},
        {"case": "state", "strict_p99_s": 1.0, "bulk_per_s": 700.0},
        {"case": "fifo", "strict_p99_s": 4.0, "bulk_per_s": 900.0},
        {"case": "round-robin", "strict_p99_s": 5.0, "bulk_per_s": 900.0},
    ]
    state = ratios(rows)[0]
    assert state["case"] == "state"
    assert (state["p99_over_alone_s"], state["p99_of_the_better_other"]) == (0.5, 0.25)
    assert state["bulk_of_alone"] == pytest.approx(0.7)


def test_the_papers_axes_can_be_drawn(tmp_path):
    points = {"state": [(0.5, 1.0), (2.0, 0.8), (4.0, 0.7)], "random": [(2.0, 0.4)]}
    load_curve(points, tmp_path / "q3.svg")
    loss_curve(points, tmp_path / "q4.svg")
    assert "<svg" in (tmp_path / "q3.svg").read_text()
    assert "<svg" in (tmp_path / "q4.svg").read_text()


def test_what_any_valve_shed_is_counted(tmp_path):
    catalog = Catalog(tmp_path / "catalog.db")
    for train, sheds in enumerate([(), (Shed("metric->burn", 100, 30), Shed("cars", 50, 5))]):
        catalog.record_train(TrainRecord("first", train, 0.0, 1.0, 100, sheds=sheds))
    catalog.close()
    assert shed_in(tmp_path) == 35
