"""What is told of an output: delays of the last minute, and of one that starves the age of what waits."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import replace
from threading import Thread

import pytest
from tests.control.loop.networks import STRICT
from tests.control.loop.test_control import ALL, FakeRun, begun, overload, sentences

from penstock.control.loop.decision_log import LengthNews
from penstock.control.loop.exactness import Exactness
from penstock.control.loop.picture import Picture
from penstock.control.loop.plan import Plan
from penstock.control.loop.reporting import ShedRates, achieved, output_report, report_of
from penstock.control.loop.sentences import length_decision
from penstock.control.priority import Candidate, Ranking, RatedEnd
from penstock.control.report import ROAD_MAP
from penstock.model.costs import Line
from penstock.store.catalog.decisions import Decisions
from penstock.store.catalog.record_types import Decision, OutputSecond, SourceAccount, TrainRecord


def report(*seconds):
    return output_report("alarms", STRICT, seconds, 1.0, Exactness(), {})


def test_an_output_that_starves_has_the_delay_of_what_waits():
    now = int(time.time())
    told = report(OutputSecond("alarms", now - 1, age=6.0), OutputSecond("alarms", now, age=7.0))
    assert (told.delay_p50, told.delay_p99, told.in_zone) == (6.0, 7.0, False)


def test_an_output_that_starves_since_half_a_minute_does_not_look_perfect():
    now = int(time.time())
    good = [OutputSecond("alarms", now - 50 + k, ((0.1, 10_000),)) for k in range(20)]
    told = report(*good, *(OutputSecond("alarms", now - 30 + k, age=float(k)) for k in range(30)))
    assert (told.delay_p50, told.delay_p99) == (4.0, 29.0)


def test_what_was_delivered_tells_the_delay():
    now = int(time.time())
    told = report(OutputSecond("alarms", now, ((1.0, 99), (3.0, 1)), age=0.2))
    assert (told.delay_p50, told.delay_p99) == (1.0, 1.0)


def test_a_starved_output_has_the_share_of_its_valves_and_its_utility():
    """Right after a restart no train has told what was shed; 100 % stood above a shut valve."""
    now, tolerant = int(time.time()), replace(STRICT, loss=[(0, 0), (100, 1)])
    starved = [OutputSecond("scores", now - 1, age=0.5), OutputSecond("scores", now, age=0.5)]
    told = output_report("scores", tolerant, starved, 0.25, Exactness(), {})
    assert (told.share, told.utility, told.utility_minute) == (0.25, 0.25, 0.25)
    counted = OutputSecond("scores", now, ((0.5, 10),), share=0.5)
    told = output_report("scores", tolerant, [*starved, counted], 0.25, Exactness(), {})
    assert (told.share, told.utility) == (0.5, 0.5)


def test_an_output_for_which_nothing_is_due_has_no_delay():
    assert report(OutputSecond("alarms", int(time.time()) - 600, age=7.0)).delay_p99 is None


def test_the_load_holds_what_gets_only_what_is_left():
    told = [
        report_of((), (), {}, {}, Picture(0.0, ()), plan).load
        for plan in (Plan(), Plan(load=1.5, left_over=0.25))
    ]
    assert told == [None, 1.75]


def test_rates_of_shedding_are_asked_for_by_one_thread_at_a_time():
    """The loop, pages and the live view ask; one must not take away what another looks at."""

    class Seen(deque):
        inside = most = 0

        def append(self, each):
            self.inside += 1
            self.most = max(self.most, self.inside)
            time.sleep(0.02)
            super().append(each)
            self.inside -= 1

    rates = ShedRates()
    rates._seen = seen = Seen()
    asking = [Thread(target=rates.note, args=(now, [SourceAccount("cars")])) for now in (1.0, 2.0, 3.0)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert (seen.most, len(seen)) == (1, 3)


def test_the_kept_map_follows_a_load_that_rises_evenly(tmp_path):
    run = FakeRun(tmp_path)
    control = begun(run, shed=False)

    def kept_after(factor, seconds):
        run.rate = factor / ALL
        control._began -= seconds
        control.look()
        at, kept = Decisions(run.catalog).state(ROAD_MAP)
        return at, kept["load"]

    low, high = kept_after(0.1, 0), kept_after(1.0, 2)
    assert high[1] == pytest.approx(10 * low[1], rel=0.1)
    assert kept_after(1.0, 2) == high, "nothing has moved"
    assert kept_after(1.0, 11)[0] > high[0], "a map that still holds does not look old"


def test_a_length_is_told_with_the_limit_that_decides_it():
    def why(wall, own=(), other=()):
        ends = [tuple(RatedEnd(n, STRICT) for n in names) for names in (own, other)]
        mine, others = Candidate("mine", wall=wall, ends=ends[0]), [Candidate("other", ends=ends[1])]
        return length_decision(mine, others, Ranking(), 0.0).sentence

    assert why(Line(0.1, 1e-5), own=["a"]).endswith(
        "about 0.60 s: a is good to 2 s, and its own trains may take no more than 0.3 of that"
    )
    assert why(Line(0.1, 1e-5), other=["b"]).endswith(
        "about 0.80 s: b is good to 2 s, and trains of others may take no more than 0.4 of that"
    )
    assert why(Line(0.7, 1e-5), own=["a"]).endswith(
        "about 1.40 s: a is good to 2 s, but they take 0.70 s even without tuples, so shorter ones would get "
        "less done"
    )
    assert why(Line(3.0, 1e-5), other=["b"]).endswith("shorter ones would get next to nothing done")
    assert why(Line(0.01, 1e-9), own=["a"]).endswith("500,000 tuples, about 0.01 s: no train is ever longer")
    assert why(Line(0.01, 1e-9)).endswith("no output is strict")


def test_only_lengths_that_change_much_and_stay_so_are_told():
    news = LengthNews()

    def told(now, per_tuple):
        mine = Candidate("mine", wall=Line(0.1, per_tuple), ends=(RatedEnd("a", STRICT),))
        return [each.numbers["length"] for each in news.news([mine], Ranking(), now)]

    assert told(0.0, 1e-5) == [50_000]
    assert [told(now, 1.9e-5) for now in range(1, 60)] == [[]] * 59, "not twice as short"
    assert [told(now, 3e-5 if now % 5 else 1e-5) for now in range(60, 121)] == [[]] * 61, "it moves back"
    assert [told(121 + now, 3e-5) for now in range(12)] == [[]] * 10 + [[16_666]] + [[]]


def test_a_load_that_no_train_has_told_is_not_0(tmp_path):
    run = FakeRun(tmp_path)
    control = begun(run)
    overload(run)
    control.look()
    control._began -= 6
    control.look()
    assert sentences(run, "shed")
    assert not any("load" in each.realised for each in sentences(run, "shed"))


def test_a_short_train_tells_nothing_about_the_longest():
    made = Decision(100.0, "train", "mine", "", expected={"seconds": 1.2, "tuples": 40_000.0})

    def after(start, rows):
        newest = {"mine": TrainRecord("mine", 1, start, start + 0.5, rows)}
        return achieved(made, None, newest, {}, {})

    assert after(101.0, 22_000) == {"seconds": 0.5, "tuples": 22_000.0}
    assert after(101.0, 2_000) == {}
    assert after(99.0, 40_000) == {}, "it left before the decision"
