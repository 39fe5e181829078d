import pytest

from penstock.testing import values

LEFT = [(10, "a", 1), (20, "b", 2), (30, None, 3)]
RIGHT = [(12, "a", 10), (20, "a", 20), (20, "b", 30), (30, None, 40)]


def _near(a, b):
    return a.join(b, on="k", within="5 seconds")


def test_pairs_within_the_bound_and_null_never_equal(run_two):
    result = run_two(_near, (LEFT, RIGHT))
    assert values(result.outputs["out"]) == [(10, "a", 1, 12, 10), (20, "b", 2, 20, 30)]


@pytest.mark.parametrize(("t", "pairs"), [(6.999999, 0), (7, 1), (10, 1), (15, 1), (15.000001, 0)])
def test_ends_are_included(run_two, t, pairs):
    # the right one up to 5 s after, the left one up to 3 s after
    def build(a, b):
        return a.join(b, on="k", within=("5 seconds", "3 seconds"))

    assert len(run_two(build, ([(10, "a", 1)], [(t, "a", 2)])).outputs["out"]) == pairs


def test_over_trains(run_two):
    trains = [([row], []) for row in LEFT] + [([], [row]) for row in RIGHT]
    assert len(run_two(_near, *trains).outputs["out"]) == 2
    trains = [([], [row]) for row in RIGHT] + [([row], []) for row in LEFT]
    assert len(run_two(_near, *trains).outputs["out"]) == 2


def test_emitted_as_soon_as_both_are_there(run_two):
    result = run_two(_near, (LEFT[:1], []), ([], RIGHT[:1]), final=False)
    assert len(result.outputs["out"]) == 1


def test_without_keys(run_two):
    result = run_two(lambda a, b: a.join(b, within=0), (LEFT, RIGHT))
    assert values(result.outputs["out"], "k", "k_right") == [(None, None), ("b", "a"), ("b", "b")]


def test_keys_of_other_names_both_stay(run_two):
    def build(a, b):
        return a.join(b.select("time", who="k", v="v"), on=[("k", "who")], within="5 seconds")

    result = run_two(build, (LEFT, RIGHT))
    assert values(result.outputs["out"], "k", "who", "v", "v_right") == [("a", "a", 1, 10), ("b", "b", 2, 30)]


def test_predicate(run_two, dead):
    def build(a, b):
        return a.join(b, within="10 seconds", where="v_right / v = 10", name="meet")

    result = run_two(build, ([(0, "a", 1), (1, "b", 0), (2, "c", None)], [(3, "a", 10), (3, "b", 20)]))
    assert values(result.outputs["out"], "v", "v_right") == [(1, 10)]
    assert dead(result) == [("meet", 1), ("meet", 1)]


def test_numbers_of_different_types_are_compared_as_numbers(run_two):
    def build(a, b):
        return a.join(b, on=[("v", "w")], within="1 second")

    result = run_two(
        build, ([(0, "a", 2), (0, "a", 3)], [(0, 2.0), (0, float("nan"))]), other="time TIMESTAMP, w DOUBLE"
    )
    assert values(result.outputs["out"], "v", "w") == [(2, 2.0)]


@pytest.mark.parametrize("swapped", [False, True])
def test_whole_numbers_beyond_53_bits_are_compared_with_fractions_as_doubles(run_two, swapped):
    """As Spark does: as doubles, both are the same."""
    large = 2**53
    whole, fraction = [(0, large + 1), (0, large + 2)], [(0, float(large))]
    schemas = ["time TIMESTAMP, v BIGINT", "time TIMESTAMP, w DOUBLE"]
    if swapped:
        result = run_two(
            lambda a, b: a.join(b, on=[("w", "v")], within="1 second"),
            (fraction, whole),
            schema=schemas[1],
            other=schemas[0],
        )
    else:
        result = run_two(
            lambda a, b: a.join(b, on=[("v", "w")], within="1 second"),
            (whole, fraction),
            schema=schemas[0],
            other=schemas[1],
        )
    assert values(result.outputs["out"], "v", "w") == [(large + 1, float(large))]


def test_nan_equals_nan_as_in_spark(run_two):
    schema = "time TIMESTAMP, w DOUBLE"
    result = run_two(
        lambda a, b: a.join(b, on="w", within="1 second"),
        ([(0, float("nan"))], [(0, float("nan"))]),
        schema=schema,
    )
    assert len(result.outputs["out"]) == 1


def test_the_earlier_timestamp_is_kept(run_two):
    def build(a, b):
        return a.join(b, on="k", within="5 seconds").tumble("10 seconds", n="count(*)")

    assert values(run_two(build, ([(12, "a", 1)], [(8, "a", 2)])).outputs["out"]) == [(8, 1)]


def test_with_itself(run):
    result = run(lambda s: s.join(s, on="k", within="5 seconds"), [(0, "a", 1), (3, "a", 2)])
    assert values(result.outputs["out"], "v", "v_right") == [(1, 1), (1, 2), (2, 1), (2, 2)]


def test_what_cannot_meet_any_more_is_forgotten():
    from penstock.engine.local import LocalEngine
    from penstock.model.writing.network import Network
    from penstock.testing import collect, rows_source

    net = Network("expiry")
    schema = "time TIMESTAMP, k STRING, v INT"
    left = net.source("left", rows_source(schema), timestamp="time")
    right = net.source("right", rows_source(schema), timestamp="time")
    left.join(right, within=("5 seconds", "3 seconds"), name="near").output("out", to=collect())
    local = LocalEngine(net)
    local.train({"left": [(10, "a", 1)], "right": [(10, "a", 1)]})
    local.train({"left": [(13, "a", 2)], "right": [(15, "a", 2)]})
    kept = local.logics["near"]
    assert [row["v"] for row in kept.left] == [1, 2]
    assert [row["v"] for row in kept.right] == [1, 2]
    local.train({"left": [(13.1, "a", 3)], "right": [(15.1, "a", 3)]})
    assert [row["v"] for row in kept.left] == [2, 3]
    assert [row["v"] for row in kept.right] == [2, 3]
