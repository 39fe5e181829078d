"""Functions of time on single rows: TIMESTAMP as microseconds, DATE as days since 1970.

NumPy's calendar does the work. The reference engine uses another: a fault in one shows against the other.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from penstock.engine.arrow.columns.row_types import Act, RowFailure, Value, without_node
from penstock.model.expressions import casts
from penstock.model.expressions.typed import Call

SECOND = 1_000_000


def _stamp(micros: int) -> int:
    if not casts.FIRST_STAMP <= micros <= casts.LAST_STAMP:
        raise RowFailure("TIMESTAMP out of range")
    return micros


def _stamp_of_seconds(node: Call, x: Value) -> int | None:
    if node.args[0].type == "BIGINT":
        return _stamp(x * SECOND)
    with np.errstate(all="ignore"):
        micros = float(np.float64(x) * SECOND)
    if not math.isfinite(x):
        return None
    # Finite seconds, infinite microseconds: 2**63 is out of range, and `_stamp` says so.
    return _stamp(math.trunc(micros)) if math.isfinite(micros) else _stamp(2**63)


def _part(unit: str, length: int, within: str) -> Act:
    """How many whole units, of so many microseconds, have passed since the larger one began."""

    def act(_node: Call, micros: int) -> int:
        moment = np.datetime64(micros, "us")
        # NumPy floors times before 1970 downwards, as the calendar does.
        return int((_floor(moment, unit) - _floor(moment, within)).astype(np.int64)) // length

    return act


def _floor(moment: np.datetime64, unit: str) -> np.datetime64:
    start: np.datetime64 = moment.astype(f"datetime64[{unit}]").astype("datetime64[us]")
    return start


def _calendar(unit: str) -> Act:
    def act(_node: Call, days: int) -> int:
        day = np.datetime64(days, "D")
        if unit == "Y":
            return int(day.astype("datetime64[Y]").astype(int)) + 1970
        month = day.astype("datetime64[M]")
        return (
            int(month.astype(int)) % 12 + 1
            if unit == "M"
            else int((day - month.astype(day.dtype)).astype(int)) + 1
        )

    return act


# Any Sunday and Monday would do: weeks are counted from them, and % rounds down.
_SUNDAY = np.datetime64("1969-12-28", "D")
_MONDAY = np.datetime64("1969-12-29", "D")
_UNITS = {
    "microsecond": "us", "millisecond": "ms", "second": "s", "minute": "m", "hour": "h", "day": "D",
    "month": "M", "year": "Y",
}  # fmt: skip


def _days_since(start: np.datetime64, day: np.datetime64) -> int:
    return int((day - start).astype(int))


def _date_trunc(_node: Call, unit: str, micros: int) -> int:
    moment = np.datetime64(micros, "us")
    day = moment.astype("datetime64[D]")
    if unit in _UNITS:
        first = moment.astype(f"datetime64[{_UNITS[unit]}]")
    elif unit == "week":
        first = day - np.timedelta64(_days_since(_MONDAY, day) % 7, "D")
    else:  # a quarter has three months, and 1970 began with one
        month = day.astype("datetime64[M]")
        first = month - np.timedelta64(int(month.astype(int)) % 3, "M")
    return int(first.astype("datetime64[us]").astype(np.int64))


def _truncated_seconds(micros: int) -> int:
    return math.trunc(Fraction(micros, SECOND))


TIME_FUNCTIONS: dict[str, Act] = {
    "shift": without_node(lambda micros, length: _stamp(micros + length)),
    "hour": _part("h", 3600 * SECOND, "D"), "minute": _part("m", 60 * SECOND, "h"),
    "second": _part("s", SECOND, "m"), "year": _calendar("Y"), "month": _calendar("M"), "day": _calendar("D"),
    "dayofweek": without_node(lambda days: _days_since(_SUNDAY, np.datetime64(days, "D")) % 7 + 1),
    "date_trunc": _date_trunc,
    # unix_timestamp cuts towards zero in Spark, unix_seconds downwards.
    "unix_timestamp": without_node(_truncated_seconds),
    "unix_seconds": without_node(lambda micros: micros // SECOND),
    "unix_millis": without_node(lambda micros: micros // 1_000),
    "unix_micros": without_node(lambda micros: micros), "timestamp_seconds": _stamp_of_seconds,
    "timestamp_millis": without_node(lambda x: _stamp(x * 1_000)), "timestamp_micros": without_node(_stamp),
}  # fmt: skip
