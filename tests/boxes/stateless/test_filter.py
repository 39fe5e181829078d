import json

import pytest

from penstock.model.errors import NetworkError
from penstock.testing import examples, values

ROWS = [(0, "a", 1), (1, "b", 5), (2, None, None), (3, "a", 0)]


def test_passes_what_is_true(run):
    assert values(run(lambda s: s.filter("v > 0"), ROWS).outputs["out"]) == [(0, "a", 1), (1, "b", 5)]


def test_null_is_not_true_and_neither_is_its_negation(run):
    assert values(run(lambda s: s.filter("NOT v > 0"), ROWS).outputs["out"]) == [(3, "a", 0)]


def test_is_null(run):
    assert values(run(lambda s: s.filter("k IS NULL"), ROWS).outputs["out"]) == [(2, None, None)]


def test_a_failing_expression_sends_the_tuple_to_dead_letters(run, dead):
    result = run(lambda s: s.filter("10 / v > 3", name="risky"), ROWS)
    assert values(result.outputs["out"]) == [(0, "a", 1)]
    assert dead(result) == [("risky", 3)]
    assert json.loads(result.dead_letters[0].raw)["v"] == 0
    assert result.dead_letters[0].source == "cars"


def test_short_circuit_saves_the_tuple(run, dead):
    result = run(lambda s: s.filter("v <> 0 AND 10 / v > 3"), ROWS)
    assert values(result.outputs["out"], "v") == [(1,)]
    assert dead(result) == []


def test_function_over_a_batch(run):
    result = run(lambda s: s.filter(examples.no_nulls), ROWS[:3])
    assert values(result.outputs["out"]) == [(0, "a", 1), (1, "b", 5)]


def test_function_sees_the_columns_it_reads(run):
    result = run(lambda s: s.filter(examples.no_nulls, reads=["k"]), [(0, "a", None), (1, None, 1)])
    assert values(result.outputs["out"], "k") == [("a",)]


def test_one_stream_feeds_several_boxes(run):
    result = run(lambda s: s.filter("v = 1").union(s.filter("v = 5"), s.filter("v = 5")), ROWS)
    assert values(result.outputs["out"], "v") == [(1,), (5,), (5,)]


def test_unstamped_streams_pass(run):
    result = run(lambda s: s.filter("v > 0"), [(None, "a", 1), (5, "a", 0)], timestamp=None)
    assert values(result.outputs["out"]) == [(None, "a", 1)]


def test_a_function_of_the_wrong_length_is_an_error():
    from penstock.engine.local import LocalEngine
    from penstock.model.writing.network import Network
    from penstock.testing import collect, rows_source

    net = Network("wrong")
    stream = net.source("cars", rows_source("v INT")).filter(lambda batch: [True], name="odd")
    stream.output("out", to=collect())
    with pytest.raises(
        NetworkError, match=r"box 'odd': its function gave something else than declared"
    ) as error:
        LocalEngine(net).run([{"cars": [(1,), (2,)]}])
    assert error.value.found == "1 values"
    assert error.value.expected == "2: one boolean for each tuple"


def test_a_function_that_fails_costs_the_tuple():
    from penstock.engine.local import LocalEngine
    from penstock.model.writing.network import Network
    from penstock.testing import collect, rows_source

    def breaks(batch):
        raise RuntimeError("no fuel")

    net = Network("wrong")
    net.source("cars", rows_source("v INT")).filter(breaks, name="odd").output("out", to=collect())
    result = LocalEngine(net).run([{"cars": [(1,)]}])
    assert [letter.reason for letter in result.dead_letters] == [
        (
            f"function {__name__}:test_a_function_that_fails_costs_the_tuple.<locals>.breaks failed: "
            "RuntimeError: no fuel"
        )
    ]
