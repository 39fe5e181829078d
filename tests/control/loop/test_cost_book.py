"""What trains cost, from recorded trains: those of a start, and forms that differ in what is fixed."""

from __future__ import annotations

import pytest
from tests.control.loop.networks import network, subs
from tests.control.loop.recorded import START_UP, records

from penstock.control.loop.cost_book import CostBook
from penstock.control.loop.picture import Picture, SubnetworkPicture
from penstock.control.loop.plan import Memory, decide
from penstock.control.loop.structure import Structure
from penstock.control.loop.valves import Places
from penstock.store.catalog.record_types import InputLoad, TrainRecord

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
