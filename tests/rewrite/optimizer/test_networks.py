"""The eight networks of the optimizer's benchmark: both forms are sound, and give the same rows."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from benchmarks.engine.optimizer_networks import PAIRS

from penstock.engine.local import LocalEngine
from penstock.model.text.yaml_form import from_yaml, to_yaml
from penstock.model.types import Schema
from penstock.rewrite.check import check
from penstock.rewrite.optimize import optimize
from penstock.testing import assert_same_result

START = datetime(2026, 1, 1, tzinfo=UTC)
RUNNABLE = [pair for pair in PAIRS if pair.name != "linear_road"]


def rows_for(schema: Schema, count: int = 300) -> list[dict[str, object]]:
    """Rows in order of time, with values that the filters of the networks tell apart."""
    dice = random.Random(7)
    values = {
        "INT": lambda: dice.choice([None, 42, *range(0, 1_200, 7)]),
        "BIGINT": lambda: dice.randrange(10**6),
        "DOUBLE": lambda: dice.random() * 100,
        "STRING": lambda: dice.choice(["coast", "own", "else", None]),
    }
    rows = []
    for second in range(count):
        row = {column.name: values[column.type]() for column in schema if column.type in values}
        rows.append({"time": START + timedelta(seconds=second // 4), **row})
    return rows


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_both_forms_are_sound(pair):
    check(pair.as_written())
    check(pair.by_hand())


@pytest.mark.parametrize("pair", RUNNABLE, ids=lambda pair: pair.name)
def test_the_best_by_hand_gives_the_same_rows(pair):
    written, by_hand = pair.as_written(), pair.by_hand()
    rows = {name: rows_for(source.schema) for name, source in written.sources.items()}
    expected = LocalEngine(written).run([rows])
    assert_same_result(LocalEngine(by_hand).run([rows]), expected)
    assert any(rows for rows in (*expected.outputs.values(), *expected.points.values()))


@pytest.mark.parametrize("pair", RUNNABLE, ids=lambda pair: pair.name)
def test_the_optimized_form_written_down_gives_the_same_rows(pair):
    """As `penstock optimize NET -o NEW.yaml` writes it, and anybody reads it back."""
    written = pair.as_written()
    plan = optimize(written)
    assert plan.steps
    again = from_yaml(to_yaml(plan.network))
    check(again)
    rows = {name: rows_for(source.schema) for name, source in written.sources.items()}
    assert_same_result(LocalEngine(again).run([rows]), LocalEngine(written).run([rows]))
