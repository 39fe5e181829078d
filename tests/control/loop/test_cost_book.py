"""What trains cost, from recorded trains: those of a start, and forms that differ in what is fixed."""

from __future__ import annotations

import pytest
from tests.control.loop.networks import network, subs
from tests.control.loop.recorded import START_UP, records

from penstock.control.costs import costs_of
from penstock.control.loop.cost_book import CostBook
from penstock.control.loop.picture import Picture, SubnetworkPicture
from penstock.control.loop.plan import Memory, decide
from penstock.control.loop.structure import Structure
from penstock.control.loop.valves import Places
from penstock.store.catalog.record_types import BoxCount, InputLoad, TrainRecord

STRUCTURE = Structure(subs())
MAY = Places.of(network(), STRUCTURE).sheddable(STRUCTURE.qos)


def book(trains, cores=2):
    found = CostBook({}, cores)
    for train in trains:
        found.note(train)
    return found


def train(number, tuples, cpu, seconds):
    return TrainRecord("alarms", number, float(number), number + seconds, tuples, cpu=cpu)


def test_the_backlog_and_the_cold_trains_of_a_start_are_no_overload():
    """As it happened: a train of 37 s, 190,000 tuples waited for up to 50 s, and everything was shed."""
    known, memory = book([]), Memory()
    for record in records(START_UP):
        known.note(record)
        now = record.end + 20
        load = InputLoad("cars", "alarms", now, 0, 4000.0, 190_000, None, 50.0)
        seen = SubnetworkPicture("alarms", (load,), trains=known.trains("alarms"))
        used = known.used() or (None, None)
        picture = Picture(now, (seen,), known.costs(now), known.capacity, *used)
        plan, memory = decide(STRUCTURE, picture, memory, headroom=0.9, sheddable=MAY)
        assert not plan.shedding, record


def test_the_first_trains_of_each_form_do_not_count():
    cold = [train(k, 1000, 9.0, 9.0) for k in range(8)] + [train(8 + k, 5000, 9.0, 9.0) for k in range(8)]
    known = book(cold)
    assert (known.trains("alarms"), known.costs(0.0).subnetworks) == (0, {})
    known.note(train(16, 1000, 0.1, 0.1))
    assert known.trains("alarms") == 1


def test_one_task_and_many_are_not_one_line():
    """1,900 tuples cost 0.18 s as one task, 2,100 cost 0.36 as a job: that is no millisecond a tuple."""
    trains = [train(k, 1800 + 10 * (k % 20), 0.18, 0.2) for k in range(32)]
    trains += [train(32 + k, 2100 + 200 * (k % 20), 0.35 + 2e-5 * (k % 20) * 200, 0.3) for k in range(32)]
    cpu = book(trains).costs(0.0).subnetworks["alarms"].cpu
    assert cpu.per_tuple == pytest.approx(2e-5, rel=0.1)


@pytest.mark.parametrize("cores", [1.0, 1.6])
def test_capacity_is_how_many_cores_work_for_a_further_second_whatever_is_shed(cores):
    """CPU and tuples have nothing to do with each other here, as when shares change."""
    used = [0.2 + 0.05 * (k * 7 % 11) for k in range(40)]
    trains = [train(k, 5000 + 13 * k % 900, cpu, 0.1 + cpu / cores) for k, cpu in enumerate(used)]
    known = book(trains)
    known.costs(0.0)
    assert known.capacity == pytest.approx(cores, rel=0.01)


def test_where_the_cpu_of_trains_is_not_known_there_is_no_capacity():
    """On a cluster: the cores of the driver say nothing."""
    known = book([train(k, 5000, None, 0.2) for k in range(40)])
    known.costs(0.0)
    assert known.capacity is None


def scored(number, tuples, each, *, cold=0.0):
    """A train of which the function `score` takes `each` seconds a tuple, and the rest 1 us."""
    in_box, around = each * tuples, 0.05 + 1e-6 * tuples + cold
    box = BoxCount("score", tuples, tuples, wall=2 * in_box, cpu=in_box)
    seconds = (in_box + around) / 1.5
    return TrainRecord("alarms", number, float(number), number + seconds, tuples, (box,), cpu=in_box + around)


LENGTHS = (1000, 3000, 20_000, 60_000, 2500, 360_000)


def test_a_function_that_has_become_dear_between_two_runs_is_found_out_by_cold_trains():
    """As it happened: trains planned for 0.9 s took 5 s, and for 90 s nothing was shed."""
    known = CostBook({"alarms": [scored(k, LENGTHS[k % 6], 2.5e-6) for k in range(256)]}, 2)
    known.costs(0.0)
    for k in range(3):
        known.note(scored(300 + k, 88_000, 2.5e-5, cold=3.0 if k == 0 else 0.3))
    costs = known.costs(1.0)
    assert costs.boxes["score"].cpu.per_tuple == pytest.approx(2.5e-5, rel=0.05)
    assert costs.subnetworks["alarms"].around.fixed == pytest.approx(0.05, abs=0.01), "of the cold"
    for k in range(5):
        known.note(scored(303 + k, 20_000, 2.5e-5, cold=0.2))
    assert known.trains("alarms") == 8


@pytest.mark.parametrize("factor", [1.0, 1.8, 0.6])
def test_cold_trains_that_contradict_nothing_do_not_count(factor):
    known = CostBook({"alarms": [scored(k, LENGTHS[k % 6], 1e-5) for k in range(256)]}, 2)
    for k in range(8):
        known.note(scored(300 + k, 88_000, factor * 1e-5, cold=3.0 / (k + 1)))
    assert known.trains("alarms") == 0
    assert known.costs(1.0).boxes["score"].cpu.per_tuple == pytest.approx(1e-5, rel=0.01)


@pytest.mark.parametrize("new", [3, 5, 10, 17, 40, 100])
@pytest.mark.parametrize("each", [2.5e-7, 2.5e-5])
def test_costs_of_a_checkpoint_are_those_since_a_function_has_changed(new, each):
    trains = [scored(k, LENGTHS[k % 6] if k < 200 else 88_000, 2.5e-6) for k in range(200)]
    trains += [scored(200 + k, (44_000, 88_000, 60_000)[k % 3], each) for k in range(new)]
    cost = costs_of({"alarms": trains}, jobs=True).boxes["score"].cpu.per_tuple
    assert cost == pytest.approx(each, rel=0.05)


def test_two_odd_trains_are_no_change():
    trains = [scored(k, LENGTHS[k % 6], 2.5e-6) for k in range(60)]
    trains += [scored(60 + k, 88_000, 2.5e-5) for k in range(2)]
    cost = costs_of({"alarms": trains}, jobs=True).boxes["score"].cpu.per_tuple
    assert cost == pytest.approx(2.5e-6, rel=0.05)


def test_trains_cheaper_than_their_fixed_part_have_worked_all_the_same():
    """The fixed part that the line says is too large for them: less it, nothing would remain."""
    lengths = [5000 + 1000 * (k % 20) for k in range(40)]
    known = book([train(k, tuples, 0.2 + 2e-5 * tuples, 0.3) for k, tuples in enumerate(lengths)])
    known.costs(0.0)
    known.used()
    before = known.spent["alarms"]
    known.note(train(40, 5000, 0.15, 0.2))
    known.used()
    assert known.spent["alarms"] - before == pytest.approx(0.15 / 3, rel=0.1), "a third of it is for tuples"
