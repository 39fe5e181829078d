"""Who runs next and for how long: decisions on candidates as they were recorded, and a small simulation."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import penstock as ps
from penstock.control.priority import (
    FIRST_LENGTH,
    LEAST_LENGTH,
    Candidate,
    Ranking,
    RatedEnd,
    choose,
    loss_if_deferred,
    next_boost,
    priorities,
    should_wait,
    train_length,
)
from penstock.model.control_settings import SCHEMES
from penstock.model.costs import Line


def rated(name, threshold, *, weight=1.0, below=0.0):
    end = threshold + 8
    return RatedEnd(name, ps.QoS(delay=[(0, 1), (threshold, 1), (end, 0)], weight=weight), below)


LINE = Line(0.2, 1e-5)
STRICT = Candidate("strict", 20_000, 1.9, LINE, LINE, (rated("alarms", 2.0, weight=4),))
LAZY = Candidate("lazy", 500_000, 6.0, LINE, LINE, (rated("means", 15.0),))
BULK = Candidate("bulk", 10**6, 60.0, LINE, LINE)


def test_the_one_that_loses_utility_runs_before_the_one_that_is_older():
    grant = choose([LAZY, STRICT, BULK], Ranking("state"))
    assert grant.name == "strict"
    assert "oldest 1.90 s, good to 2.00 s" in grant.why
    assert choose([LAZY, STRICT, BULK], Ranking("fifo")).name == "bulk"


def test_those_without_qos_get_what_is_left():
    assert choose([BULK, LAZY], Ranking("state")).name == "lazy"
    assert choose([BULK, replace(LAZY, waiting=0)], Ranking("state")).name == "bulk"
    waits = replace(STRICT, waiting=10, age=0.0)
    assert should_wait(waits, train_length(waits, []))
    assert choose([BULK, waits], Ranking("state")).name == "bulk"


def test_trains_whose_fixed_part_is_too_long_anyway_are_not_made_short():
    slow = Candidate("slow", 10**6, 1.0, Line(1.5, 1e-5), None, (rated("out", 2.0),))
    assert train_length(slow, []) == 150_000


def test_a_bulk_train_is_short_enough_for_the_strict_one():
    length = train_length(BULK, [STRICT])
    assert LINE.at(length) == pytest.approx(0.8, abs=0.001)
    assert train_length(BULK, []) == Ranking().cap
    assert train_length(replace(BULK, wall=Line(5.0, 1e-5)), [STRICT]) == 1000  # cannot be short enough


def test_unknown_costs_begin_small_and_double():
    new = replace(BULK, wall=None, cpu=None)
    assert train_length(new, [STRICT]) == FIRST_LENGTH
    grown = replace(new, last_length=FIRST_LENGTH, last_seconds=0.1)
    assert train_length(grown, [STRICT]) == 2 * FIRST_LENGTH


def test_unknown_costs_do_not_double_into_trains_that_block_others():
    """Twice 0.6 s is more than a strict neighbour can wait for a train of others: 0.8 s."""
    slow = replace(BULK, wall=None, cpu=None, last_length=30_000, last_seconds=0.6)
    assert train_length(slow, [STRICT]) == 40_000
    assert train_length(replace(slow, last_seconds=60.0), [STRICT]) == LEAST_LENGTH


def test_what_lies_below_a_point_counts():
    above = replace(LAZY, ends=(rated("means", 15.0, below=13.9),), age=1.0)
    assert above.threshold == pytest.approx(1.1)
    assert loss_if_deferred(above, 1000, 1.0) > loss_if_deferred(LAZY, 1000, 1.0)


def test_utility_is_weighed_by_cpu():
    cheap = replace(STRICT, name="cheap", cpu=Line(0.01, 1e-7))
    assert choose([STRICT, cheap], Ranking("state")).name == "cheap"


def test_an_output_that_is_already_worthless_gives_way():
    lost = replace(STRICT, age=99.0)
    late = replace(LAZY, age=16.0)
    assert choose([lost, late], Ranking("state")).name == "lazy"


def test_all_in_time_the_least_slack_first():
    one, other = replace(STRICT, age=0.1, waiting=10**6), replace(LAZY, age=0.1)
    assert choose([one, other], Ranking("state")).name == "strict"


def test_nothing_waits_nothing_runs():
    assert choose([replace(each, waiting=0) for each in (STRICT, LAZY, BULK)], Ranking("state")) is None
    assert choose([], Ranking("fifo")) is None


def test_unknown_backlog_is_not_an_empty_one():
    assert choose([Candidate("new")], Ranking("state")).name == "new"


def test_round_robin_takes_turns():
    turns = []
    granted = {"strict": -1.0, "lazy": -2.0, "bulk": -3.0}
    for turn in range(6):
        grant = choose(
            [replace(each, granted=granted[each.name]) for each in (STRICT, LAZY, BULK)],
            Ranking("round-robin"),
        )
        granted[grant.name] = float(turn)
        turns.append(grant.name)
    assert turns == ["bulk", "lazy", "strict"] * 2


def served(candidates, ranking):
    """In which order they get their trains."""
    left, order = list(candidates), []
    while left:
        order.append(choose(left, ranking).name)
        left = [each for each in left if each.name != order[-1]]
    return order


@pytest.mark.parametrize("scheme", SCHEMES)
def test_priorities_are_numbers_in_the_order_of_service(scheme):
    old = replace(BULK, name="old", age=3600.0)
    granted = {"strict": 50.0, "lazy": 40.0, "bulk": float("-inf"), "old": 45.0}
    candidates = [replace(each, granted=granted[each.name]) for each in (BULK, LAZY, old, STRICT)]
    table = priorities(candidates, Ranking(scheme))
    json.dumps(table, allow_nan=False)
    assert sorted(table, key=table.get, reverse=True) == served(candidates, Ranking(scheme))


def test_who_never_had_a_turn_has_a_priority_that_is_a_number():
    assert priorities([STRICT, LAZY], Ranking("round-robin")) == {"strict": 1.0, "lazy": 1.0}


def test_feedback_raises_who_does_badly_and_lets_go_again():
    boost = {}
    for _ in range(30):
        boost = next_boost(boost, {"means": False, "alarms": True}, 1.0)
    assert choose([STRICT, LAZY], Ranking("feedback", boost)).name == "lazy"
    for _ in range(60):
        boost = next_boost(boost, {"means": True, "alarms": True}, 1.0)
    assert boost == {"means": 1.0, "alarms": 1.0}
    assert choose([STRICT, LAZY], Ranking("feedback", boost)).name == "strict"


def test_a_decision_is_the_same_again():
    for scheme in SCHEMES:
        assert choose([LAZY, STRICT, BULK], Ranking(scheme)) == choose([BULK, STRICT, LAZY], Ranking(scheme))


SHORT = Line(0.12, 1e-5)


def simulate(scheme, seconds=120.0):
    """One train at a time: a strict stream beside one that could use all the time. The largest delay."""
    now, ages, waiting = 0.0, [], {"strict": 0.0, "bulk": 1e9}
    since, granted, done = (
        {"strict": 0.0, "bulk": -100.0},
        {"strict": 0.0, "bulk": 0.0},
        {"strict": 0, "bulk": 0},
    )
    while now < seconds:
        candidates = [
            replace(
                STRICT, waiting=int(waiting["strict"]), age=now - since["strict"], granted=granted["strict"]
            ),
            replace(
                BULK,
                wall=SHORT,
                cpu=SHORT,
                waiting=int(waiting["bulk"]),
                age=now - since["bulk"],
                granted=granted["bulk"],
            ),
        ]
        grant = choose(candidates, Ranking(scheme))
        tuples = min(grant.length, int(waiting[grant.name]))
        took, granted[grant.name] = SHORT.at(tuples), now
        waiting[grant.name] -= tuples
        if grant.name == "strict":
            ages.append(now + took - since["strict"])
            since["strict"] = now
        done[grant.name] += tuples
        now += took
        waiting["strict"] += 10_000 * took
    return max(ages, default=seconds), done["bulk"] / seconds


def test_the_strict_stream_stays_good_beside_bulk():
    worst, bulk = simulate("state")
    assert worst <= 2.0
    for other in ("round-robin", "fifo"):
        assert worst <= simulate(other)[0] / 2
    alone = 500_000 / SHORT.at(500_000)
    assert bulk >= 0.6 * alone


def test_a_boost_is_bounded_and_ends_soon():
    boost = {"a": 1.0}
    for _ in range(2_000):
        boost = next_boost(boost, {"a": False}, 5.0)
    seconds = 0
    while boost["a"] > 1.0:
        boost, seconds = next_boost(boost, {"a": True}, 1.0), seconds + 1
    assert seconds < 60
