"""Results of several seeds are brought together; what was no overload does not count."""

from __future__ import annotations

from benchmarks.qos.plots import pieces_of
from benchmarks.qos.summary import ahead, rows_of, trials_of


def told(utility, **more):
    strict = {"in_time": 1.0, "complete": 1.0}
    figures = {"utility": utility, "of_oracle": utility / 0.9, "strict": strict, **more}
    return {"valves_open_s": 3.0, "turns_per_minute": 1.0, **figures}


def result(seed, contenders, name="base", overloaded=True, factor=2.0, doubled=None):
    piece = {"factor": factor, "contenders": contenders, "overloaded": overloaded}
    assignment = {"name": name, "doubled": doubled}
    return {"seed": seed, "config": {"assignment": assignment}, "figures": {"pieces": [piece]}}


def test_seeds_make_a_mean_and_a_spread():
    runs = [
        result(1, {"state": told(0.9), "random": told(0.5)}),
        result(2, {"state": told(0.7, valves_open_s=None), "random": told(0.8)}),
    ]
    trials, left_out = trials_of(runs)
    state, random = rows_of(trials)
    assert left_out == 0
    assert (state["contender"], state["seeds"], state["least"], state["largest"]) == ("state", 2, 0.7, 0.9)
    assert state["valves_open_s"] is None, "in one run they never opened"
    assert random["valves_open_s"] == 3.0
    (against,) = ahead(trials)
    assert (against["other"], against["seeds"], against["ahead"]) == ("random", 2, 1)


def test_assignments_are_kept_apart_and_what_was_no_overload_is_left_out():
    runs = [
        result(1, {"state": told(0.9)}),
        result(1, {"state": told(0.8)}, name="costs: means"),
        result(1, {"state": told(0.6)}, doubled=[45.0, 75.0]),
        result(1, {"state": told(1.0)}, overloaded=False),
    ]
    trials, left_out = trials_of(runs)
    assert left_out == 1
    assert {row["assignment"] for row in rows_of(trials)} == {"base", "base, cost doubled", "costs: means"}
    assert [piece["contenders"]["state"]["utility"] for piece in pieces_of(runs)] == [0.9]
