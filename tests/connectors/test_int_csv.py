"""Numbers as CSV: every number that fits is written as Python writes it."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.connectors.files.int_csv import int_csv

WHOLE = st.integers(-(2**63), 2**63 - 1) | st.integers(-110, 110)


@settings(deadline=None)
@given(st.lists(WHOLE, min_size=1))
def test_whole_numbers(numbers: list[int]) -> None:
    text = int_csv(pa.table({"x": pa.array(numbers, pa.int64())}))
    assert text is not None
    assert bytes(text).decode().split() == [str(number) for number in numbers]


@settings(deadline=None)
@given(st.lists(st.integers(-(10**18) + 1, 10**18 - 1), min_size=1), st.integers(1, 6))
def test_decimals(numbers: list[int], scale: int) -> None:
    decimals = [Decimal(number).scaleb(-scale) for number in numbers]
    text = int_csv(pa.table({"x": pa.array(decimals, pa.decimal128(18, scale))}))
    assert text is not None
    assert bytes(text).decode().split() == [f"{number:.{scale}f}" for number in decimals]
