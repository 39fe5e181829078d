import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.local.rows import raw_text
from penstock.model.expressions.casts import to_float
from penstock.model.expressions.typed import float32
from penstock.model.expressions.values import convert, micros, moment

SECOND = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        (127, "TINYINT", 127),
        (-(2**63), "BIGINT", -(2**63)),
        (1, "DOUBLE", 1.0),
        (0.1, "FLOAT", 0.10000000149011612),
        (float("inf"), "FLOAT", float("inf")),
        (True, "BOOLEAN", True),
        (b"x", "BINARY", b"x"),
        ("2026-01-02", "DATE", date(2026, 1, 2)),
        (1, "TIMESTAMP", SECOND),
        (1.0000004, "TIMESTAMP", SECOND),
        ("1970-01-01 00:00:01", "TIMESTAMP", SECOND),
        ("1970-01-01T00:00:01Z", "TIMESTAMP", SECOND),
        (datetime(1970, 1, 1, 0, 0, 1), "TIMESTAMP", SECOND),  # noqa: DTZ001 - without a zone it is UTC
        (datetime(1970, 1, 1, 2, 0, 1, tzinfo=timezone(timedelta(hours=2))), "TIMESTAMP", SECOND),
        (None, "INT", None),
    ],
)
def test_what_can_be_converted(value, type_, expected):
    found = convert(value, type_)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("value", "type_", "reason"),
    [
        (128, "TINYINT", "128 is out of the range of TINYINT"),
        (2**63, "BIGINT", "is out of the range of BIGINT"),
        (1.0, "INT", r"1.0 \(float\) is no INT"),
        (1e300, "FLOAT", "out of the range of FLOAT"),
        (10**400, "DOUBLE", "out of the range of DOUBLE"),
        ("1", "DOUBLE", r"'1' \(str\) is no DOUBLE"),
        (1, "BOOLEAN", r"1 \(int\) is no BOOLEAN"),
        (SECOND, "DATE", "is no DATE"),
        (math.nan, "TIMESTAMP", r"nan \(float\) is no TIMESTAMP"),
        (10**18, "TIMESTAMP", "out of the range of TIMESTAMP"),
        (10**400, "TIMESTAMP", "out of the range of TIMESTAMP"),
        (-1e18, "TIMESTAMP", "out of the range of TIMESTAMP"),
        ("0001-01-01T00:00:00+02:00", "TIMESTAMP", "out of the range of TIMESTAMP"),
    ],
)
def test_what_cannot(value, type_, reason):
    with pytest.raises(ValueError, match=reason):
        convert(value, type_)


def test_times_there_and_back():
    for us in (0, -1, 1, 253_402_300_799_999_999, -62_135_596_800_000_000):
        assert micros(moment(us)) == us


def test_a_tuple_as_text():
    row = {"t": SECOND, "b": b"\x00", "d": date(2026, 1, 2), "x": None, "_ts": 1, "_seq": 2}
    assert raw_text(row) == '{"t": "1970-01-01T00:00:01+00:00", "b": "AA==", "d": "2026-01-02", "x": null}'


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.0000000596046448", 1 + 2**-23),  # just above the middle between two FLOATs
        ("1.0000000596046447", 1.0),
        ("1.000000059604644775390625", 1.0),  # the middle: the even one
        ("1.000000178813934326171875", 1 + 2**-22),
        ("1.000000059604644775390625" + "0" * 5000 + "1f", 1 + 2**-23),
        ("-1.0000000596046448d", -1 - 2**-23),
        ("0x1.000001p0", 1.0),
        (" 0x1.00000100000000001P0 ", 1 + 2**-23),
        ("0x0.00000100000000001p" + "0" * 5000, 2**-24),
        ("7.0064923216240854e-46", 2**-149),  # just above half of the least FLOAT
        ("7.0064923216240853e-46", 0.0),
        ("3.4028235677973367e38", math.inf),
        ("3.4028235677973366e38", (2 - 2**-23) * 2.0**127),
        ("1e300", math.inf),
        ("-0.0", -0.0),
        ("1e-400", 0.0),
        ("inf", math.inf),
        ("x", None),
    ],
)
def test_a_float_is_rounded_once(text, value):
    assert to_float(text) == value
    assert value is None or math.copysign(1, to_float(text)) == math.copysign(1, value)


@given(st.floats(width=32, allow_nan=False))
def test_the_text_of_a_float_gives_it_back(value):
    assert to_float(repr(value)) == value
    assert to_float(value.hex()) == value


@given(st.floats(allow_nan=False))
def test_the_whole_text_of_a_double_gives_the_nearest_float(value):
    assert to_float(str(Decimal(value))) == float32(value)
