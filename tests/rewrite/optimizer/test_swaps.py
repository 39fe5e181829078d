"""Random network, any rule, any cutting, any moment: a swap in between changes nothing that anybody sees."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from penstock.engine.local import LocalEngine
from penstock.rewrite.forms import Form
from penstock.rewrite.optimize import RULES, optimize
from penstock.rewrite.settling import lacking, settled
from penstock.testing import assert_same_result
from soak import count

from .random_cases import optimizer_cases
from .swapping import same_inputs, stateful, swap
from .test_random import CHECKS, figures, letters

MANY = count(200, soak=2_000)


@settings(max_examples=30, **CHECKS)
@given(optimizer_cases(), st.data())
def test_a_swap_changes_nothing(case, data):
    check_swap(case, data)


@settings(max_examples=MANY, **CHECKS)
@given(optimizer_cases(), st.data())
def many_swaps(case, data):
    check_swap(case, data)


@pytest.mark.slow
def test_a_swap_at_any_moment_changes_nothing(record_property):
    many_swaps()
    record_property("random_swaps", MANY)


def check_swap(case, data):
    """To the rewritten form, and perhaps back: an optimizer that was wrong about costs undoes what it did."""
    trains = case.trains[0]
    written, in_use = case.network, stateful(case.network)
    costs = replace(data.draw(figures(written)), in_use=in_use)
    forms = {rule.name: rule(written, costs) for rule in RULES}
    forms["all rules"] = optimize(written, costs).network
    changed = {name: form for name, form in forms.items() if form is not written}
    assume(changed)
    name = data.draw(st.sampled_from(sorted(changed)))
    form = changed[name]
    event(name)
    assert same_inputs(written, form)
    there = data.draw(st.integers(0, len(trains)), label="train before which it swaps")
    back = data.draw(st.none() | st.integers(there, len(trains)), label="train before which it is undone")
    engine = LocalEngine(written)
    for number, train in enumerate([*trains, {}]):
        engine = swap(engine, form) if number == there else engine
        engine = swap(engine, written) if number == back else engine
        engine.train(train, final=number == len(trains))
    assert_same_end(engine.result, written, trains)


@settings(max_examples=count(100, soak=1_000), **CHECKS)
@given(optimizer_cases(), st.data())
def test_filters_leave_when_the_horizon_has_passed(case, data):
    """A filter that was pushed stays behind the box, until nothing is left that it has not seen.

    Figures change, so a filter may go back behind its box and later in front of it again.
    """
    trains = case.trains[0]
    written, in_use = case.network, stateful(case.network)
    drawn = [data.draw(figures(written)) for _ in range(2)]
    there = data.draw(st.integers(0, len(trains)), label="train before which it swaps")
    engine, form, newest, gone = LocalEngine(written), written, 0, frozenset()
    for number, train in enumerate([*trains, {}]):
        if number >= there and data.draw(st.booleans(), label=f"look before train {number}"):
            horizon = min(source.horizon for source in engine.sources.values())
            in_front = lacking(form, written)
            gone = (gone & in_front) | settled(form, in_front, in_use, newest, horizon)
            costs = replace(data.draw(st.sampled_from(drawn)), in_use=in_use, settled=frozenset(gone))
            later = optimize(written, costs).network
            if later != form:
                event("a filter leaves" if gone else "another form")
                engine, form = swap(engine, later), later
                came = [row["time"] for each in trains[:number] for rows in each.values() for row in rows]
                newest = int(max(came, default=0) * 1_000_000)
        engine.train(train, final=number == len(trains))
    assert_same_end(engine.result, written, trains)


@settings(max_examples=count(25, soak=500), **CHECKS)
@given(optimizer_cases(), st.data())
def test_from_a_first_form_on(case, data):
    """State that never had some columns goes on in a form that keeps them out, and back."""
    trains, written = case.trains[0], case.network
    first = Form(pruned=True).start(written)
    assume(first is not written)
    form = Form(pruned=True, rewritten=True, in_use=stateful(written)).plan(written).network
    there = data.draw(st.integers(0, len(trains)), label="train before which it swaps")
    back = data.draw(st.none() | st.integers(there, len(trains)), label="train before which it is undone")
    engine = LocalEngine(first)
    for number, train in enumerate([*trains, {}]):
        engine = swap(engine, form) if number == there else engine
        engine = swap(engine, first) if number == back else engine
        engine.train(train, final=number == len(trains))
    assert_same_end(engine.result, written, trains)


def assert_same_end(result, written, trains):
    expected = LocalEngine(written).run(trains)
    assert_same_result(result, expected)
    assert letters(result) == letters(expected)
    assert result.accounts == expected.accounts
