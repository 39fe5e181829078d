"""The dispatcher: who gets the next train, who waits, who is woken. A clock by hand, no threads."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.control.loop.dispatcher import Dispatcher, SubnetworkFacts
from penstock.control.priority import Ranking, RatedEnd
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.situation import InputSituation, Situation
from penstock.model.costs import Line

STRICT = ps.QoS(delay=[(0, 1.0), (2, 1.0), (4, 0.0)])
LOOSE = ps.QoS(delay=[(0, 1.0), (60, 1.0), (120, 0.0)])
FACTS = {
    "strict": SubnetworkFacts(Line(0.1, 1e-6), Line(0.1, 1e-6), (RatedEnd("alarms", STRICT),)),
    "bulk": SubnetworkFacts(Line(0.1, 1e-5), Line(0.2, 2e-5), (RatedEnd("sums", LOOSE),)),
    "view": SubnetworkFacts(Line(0.1, 1e-5), Line(0.2, 2e-5)),
}


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def dispatcher(scheme="state", at_once=1, **options):
    clock = Clock()
    made = Dispatcher(AsSoonAsPossible(), Ranking(scheme), at_once=at_once, clock=clock, **options)
    made.facts, made.woken = FACTS, []
    made.wake = made.woken.append
    made.clock = clock
    return made


def ask(made, name, waiting, age=1.0):
    inputs = {"in": InputSituation(0, waiting, None, age if waiting else None, None)}
    return made.next_train(Situation(name, 0, made.clock(), inputs=inputs))


def test_one_train_at_a_time_and_the_strict_one_next():
    made = dispatcher()
    assert ask(made, "bulk", 10**6) is not None
    assert ask(made, "strict", 500) is None
    assert ask(made, "view", 500) is None
    made.ended("bulk")
    assert made.woken == ["strict"]
    assert ask(made, "bulk", 10**6) is None  # it asks first, but the other one is more urgent
    assert ask(made, "strict", 500) is not None


def test_bulk_trains_are_short_enough_for_a_strict_output_that_waits_for_nothing_yet():
    made = dispatcher(at_once=2)
    made.declined("strict") if ask(made, "strict", 0) is not None else None
    length = ask(made, "bulk", 10**7)
    assert FACTS["bulk"].wall.at(length) <= 0.4 * 2 + 1e-9


@pytest.mark.parametrize("scheme", ["fifo", "round-robin"])
def test_other_schemes_know_no_lengths(scheme):
    made = dispatcher(scheme)
    assert ask(made, "bulk", 10**7) == 500_000


def test_who_has_nothing_may_look_and_gives_its_place_back():
    made = dispatcher()
    assert ask(made, "strict", 0) is not None
    assert ask(made, "bulk", 100, 61.0) is None
    made.declined("strict")
    assert ask(made, "bulk", 100, 61.0) is not None


def test_a_long_train_does_not_leave_beside_a_stricter_one():
    made = dispatcher(at_once=2)
    assert ask(made, "strict", 500, age=0.9) is not None
    assert ask(made, "bulk", 10**7) is None
    made.ended("strict", tuples=500, seconds=0.1)
    ask(made, "strict", 0)
    made.declined("strict")
    assert made.woken[-1] == "bulk"
    assert ask(made, "bulk", 10**7) is not None


def test_who_is_soon_late_leaves_beside_a_stricter_one():
    made = dispatcher(at_once=2)
    assert ask(made, "strict", 500, age=0.9) is not None
    assert ask(made, "bulk", 10**7, age=40.0) is not None


def test_a_train_may_wait_to_become_longer_while_nothing_is_lost():
    made = dispatcher()
    assert ask(made, "strict", 10, age=0.05) is None
    assert ask(made, "strict", 10, age=0.75) is not None


def test_an_unknown_age_is_not_waited_for():
    made = dispatcher()
    inputs = {"in": InputSituation(0, 10)}
    assert made.next_train(Situation("strict", 0, made.clock(), inputs=inputs)) is not None


def test_an_input_that_cannot_tell_what_waits_blocks_nobody():
    made = dispatcher()
    unknown = Situation("strict", 0, made.clock(), inputs={"in": InputSituation(0)})
    assert made.next_train(unknown) is not None
    assert ask(made, "bulk", 0) is None
    assert ask(made, "view", 10) is None
    made.declined("strict")
    assert made.woken == ["view"]
    assert ask(made, "view", 10) is not None
    made.declined("view")
    assert ask(made, "bulk", 0) is not None


def test_those_without_qos_get_what_is_left_but_never_nothing():
    made = dispatcher(unrated=0.1)
    runs = {"bulk": 0, "view": 0}
    for _ in range(200):
        made.clock.now += 0.1
        for name in ("view", "bulk"):
            if ask(made, name, 10**6, 100.0) is not None:
                runs[name] += 1
                made.ended(name)
    assert runs["bulk"] > 5 * runs["view"] > 0


def test_a_sub_network_that_does_not_ask_blocks_nobody():
    made = dispatcher()
    assert ask(made, "bulk", 10**6) is not None
    assert ask(made, "strict", 500) is None
    made.ended("bulk")
    made.clock.now += 0.6  # strict was held, and asks no more
    assert ask(made, "bulk", 10**6) is not None


def test_a_grant_whose_train_is_gone_is_given_again():
    made = dispatcher()
    assert ask(made, "bulk", 10**6) is not None
    made.clock.now += 2.0
    assert ask(made, "strict", 500, 1.9) is None
    made.sync({"bulk": False, "strict": False})
    assert ask(made, "strict", 500, 1.9) is not None


def test_a_loop_that_is_silent_is_found_out_once():
    made, silent = dispatcher(), []
    made.on_silence = lambda: silent.append(made.clock())
    made.sync({})
    made.clock.now += 11
    ask(made, "bulk", 1)
    ask(made, "bulk", 1)
    assert silent == [111.0]


def test_while_the_loop_is_silent_trains_leave_as_they_come():
    made, silent = dispatcher(), []
    made.on_silence = lambda: silent.append(made.clock())
    made.sync({})
    made.clock.now += 11
    assert (ask(made, "bulk", 10), ask(made, "strict", 10)) == (500_000, 500_000)
    made.sync({"bulk": False, "strict": False})
    assert ask(made, "bulk", 10**7) is not None
    assert ask(made, "strict", 500) is None, "one at a time again"
    made.clock.now += 11
    made._asked_last = made.clock() - 1
    ask(made, "bulk", 10)
    assert silent == [111.0, 122.0]


def test_who_stood_still_with_the_loop_waits_for_it_for_a_moment():
    made, silent = dispatcher(), []
    made.on_silence = lambda: silent.append(made.clock())
    made.sync({})
    ask(made, "bulk", 1)
    made.clock.now += 60  # the process was stopped
    ask(made, "bulk", 1)
    made.clock.now += 0.5
    ask(made, "bulk", 1)
    assert silent == []
    made.clock.now += 1.0
    ask(made, "bulk", 1)
    assert silent == [161.5], "only conductors go on"


def test_a_fault_in_what_the_loop_is_told_is_none_of_the_trains():
    made, errors = dispatcher(), []
    made.on_error = errors.append

    def broken():
        raise OSError("the catalog cannot be written")

    made.on_silence = broken
    made.sync({})
    made.clock.now += 11
    assert ask(made, "bulk", 10) == 500_000
    assert [type(error) for error in errors] == [OSError]


def test_a_fault_when_a_train_is_declined_is_none_of_the_trains():
    made, errors = dispatcher(), []
    made.on_error = errors.append
    assert ask(made, "bulk", 10**6) is not None
    ask(made, "strict", 10)
    made.facts = None  # whatever goes wrong
    made.declined("bulk")
    assert [type(error) for error in errors] == [AttributeError]
    assert ask(made, "strict", 10) == 500_000


def test_a_fault_of_ours_lets_trains_leave_as_they_come():
    made, errors = dispatcher(), []
    made.on_error = errors.append
    made.facts = None  # whatever goes wrong
    assert ask(made, "bulk", 10) == 500_000
    assert [type(error) for error in errors] == [AttributeError]
    assert ask(made, "strict", 10) == 500_000
    assert len(errors) == 1


def test_after_its_end_trains_leave_as_they_come():
    made = dispatcher()
    ask(made, "bulk", 10**6)
    made.end()
    assert ask(made, "strict", 500) == 500_000


def test_the_table_tells_priorities():
    made = dispatcher()
    ask(made, "bulk", 10**6)
    ask(made, "strict", 500, 1.9)
    table = made.table()
    assert table["bulk"][2]
    assert table["strict"][0] > 0
