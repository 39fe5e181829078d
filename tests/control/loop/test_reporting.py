"""What is told of an output: delays of the last minute, and of one that starves the age of what waits."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import replace
from threading import Thread

from tests.control.loop.networks import STRICT

from penstock.control.loop.exactness import Exactness
from penstock.control.loop.picture import Picture
from penstock.control.loop.plan import Plan
from penstock.control.loop.reporting import ShedRates, output_report, report_of
from penstock.store.catalog.record_types import OutputSecond, SourceAccount


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
