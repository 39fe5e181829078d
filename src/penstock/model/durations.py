"""Lengths of time and of windows. Inside, time is whole microseconds since 1970 UTC; outside, it is text."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction

from penstock.model.errors import ExpressionError, shown

_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_SHORT = {
    "us": "microsecond",
    "ms": "millisecond",
    "s": "second",
    "min": "minute",
    "m": "minute",
    "h": "hour",
    "d": "day",
}
_TEXT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


@dataclass(frozen=True)
class Time:
    """A window or step measured in time."""

    us: int

    def __str__(self) -> str:
        return format_duration(self.us)


@dataclass(frozen=True)
class Count:
    """A window or step measured in tuples."""

    tuples: int

    def __str__(self) -> str:
        return f"{self.tuples} tuples"


Extent = Time | Count


def parse_duration(text: str | float) -> int:
    """Microseconds of a text such as '2 hours', '90 s', '1 minute 30 seconds'; a bare number is seconds.

    >>> parse_duration("1 minute 30 seconds")
    90000000
    """
    if isinstance(text, int | float) and not isinstance(text, bool) and math.isfinite(text):
        return round(text * 1_000_000)
    if not isinstance(text, str):
        raise ExpressionError(
            "not a length of time",
            found=shown(text),
            expected="a text, or a number of seconds",
            hint="for example '10 seconds', '1 minute', '2 hours'",
        )
    total, at = Fraction(0), 0
    for match in _TEXT.finditer(text):
        unit = match[2].lower()
        unit = _SHORT.get(unit, unit.removesuffix("s"))
        if match.start() != at or unit not in _UNITS:
            break
        total, at = total + Fraction(match[1]) * _UNITS[unit], match.end()
    if at == 0 or at != len(text):
        raise ExpressionError(
            f"'{text}' is not a length of time",
            expected="a number and a unit",
            hint="for example '10 seconds', '1 minute', '2 hours'",
        )
    return round(total)


def parse_extent(text: str | float | Extent) -> Extent:
    """A window length: time ('1 minute') or tuples ('100 tuples').

    >>> parse_extent("100 tuples"), parse_extent("1 s")
    (Count(tuples=100), Time(us=1000000))
    """
    if isinstance(text, Time | Count):
        return text
    match = re.fullmatch(r"\s*(\d+)\s*(?:tuples?|rows?)\s*", str(text))
    extent: Extent = Count(int(match[1])) if match else Time(parse_duration(text))
    if (extent.tuples if isinstance(extent, Count) else extent.us) <= 0:
        raise ExpressionError(f"a window of '{text}' is empty", expected="a length above 0")
    return extent


def format_duration(us: int) -> str:
    """The text that parse_duration reads back, in as few units as are exact.

    >>> format_duration(5_400_000_000), format_duration(60_000_000)
    ('1 hour 30 minutes', '1 minute')
    """
    # no weeks: "7 days" reads better than "1 week"
    parts, rest = [], us
    for unit in ("day", "hour", "minute", "second", "millisecond", "microsecond"):
        size = _UNITS[unit]
        number, rest = divmod(rest, size)
        if number:
            parts.append(f"{number} {unit}{'s' if number != 1 else ''}")
    return " ".join(parts) or "0 seconds"
