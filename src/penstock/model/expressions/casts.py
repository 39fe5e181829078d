"""Text to values and back, as Spark's ANSI casts do it: plain functions, None where Spark would fail.

Inside expressions a TIMESTAMP is whole microseconds and a DATE whole days since 1970 UTC. Of Spark's text
forms of times we take the unambiguous part: a year of four digits first, and only Z, UTC or an offset as
zone. So no answer depends on today's date or on a zone database.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
FIRST_STAMP = (datetime(1, 1, 1, tzinfo=UTC) - EPOCH) // MICROSECOND
LAST_STAMP = (datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC) - EPOCH) // MICROSECOND
DAY = 86_400_000_000
_FIRST_DAY = date(1970, 1, 1).toordinal()

# What Spark trims (UTF8String.trimAll): ASCII whitespace and control characters.
_BLANK = "".join(map(chr, range(33))) + "\x7f"
_EDGE = r"[\x00-\x20\x7f]*"
# Java reads both patterns too: the Spark engine lets only such texts through to Spark's cast.
DATE_FORM = rf"^{_EDGE}[0-9]{{4}}(-[0-9]{{1,2}}(-[0-9]{{1,2}}([ T].*)?)?)?{_EDGE}$"
TIMESTAMP_FORM = (
    rf"^{_EDGE}[0-9]{{4}}(-[0-9]{{1,2}}(-[0-9]{{1,2}}([ T][0-9]{{1,2}}(:[0-9]{{1,2}}"
    rf"(:[0-9]{{1,2}}([.][0-9]{{0,20}})?( ?(Z|UTC|[+-][0-9]{{2}}(:?[0-9]{{2}})?))?)?)?)?)?)?{_EDGE}$"
)
_DATE = re.compile(DATE_FORM, re.DOTALL)
_TIMESTAMP = re.compile(TIMESTAMP_FORM)
_PARTS = re.compile(
    r"(\d{4})(?:-(\d+))?(?:-(\d+))?(?:[ T](\d+))?(?::(\d+))?(?::(\d+))?(?:\.(\d*))?", re.ASCII
)
_ZONE = re.compile(r"([+-])(\d{2}):?(\d{2})?$")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_MOST_DIGITS = 20
_BEYOND_FLOAT = 2.0**128
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?")
_HEX = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?")
_SPECIAL = {
    "nan": math.nan,
    "inf": math.inf,
    "+inf": math.inf,
    "infinity": math.inf,
    "+infinity": math.inf,
    "-inf": -math.inf,
    "-infinity": -math.inf,
}
_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")


def to_whole(text: str) -> int | None:
    """The whole number a text stands for; '1.5' is none. One beyond every type keeps its sign, not its size.

    >>> to_whole(" -7 "), to_whole("0" * 5000 + "5"), to_whole("-" + "1" * 5000) == -(2**64)
    (-7, 5, True)
    """
    text = text.strip(_BLANK)
    if not _WHOLE.fullmatch(text):
        return None
    # Python refuses to read thousands of digits, and a BIGINT has 19 at most.
    digits = text.lstrip("+-0") or "0"
    size = int(digits) if len(digits) <= _MOST_DIGITS else 2**64
    return -size if text.startswith("-") else size


def to_double(text: str) -> float | None:
    """A double as Java reads it: '1.5', '1e3', ' .5 ', '1d', '0x1p3'; Spark's 'inf' and 'nan' in any case."""
    text = text.strip(_BLANK[:-1])
    if _DECIMAL.fullmatch(text):
        return float(text.rstrip("fFdD"))
    if text.lower() in _SPECIAL:
        return _SPECIAL[text.lower()]
    if text in ("-NaN", "+NaN"):
        return math.nan
    match = _HEX.fullmatch(text)
    return _from_hex(match[1]) if match else None


def _from_hex(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return -math.inf if text.startswith("-") else math.inf


def to_float(text: str) -> float | None:
    """A FLOAT as Java reads it: rounded once, from the text. By way of a double it would be rounded twice.

    >>> to_float("0.1"), to_float("1.0000000596046448"), to_float("1.0000000596046447")
    (0.10000000149011612, 1.0000001192092896, 1.0)
    """
    value = to_double(text)
    if value is None or math.isnan(value):
        return value
    if abs(value) >= _BEYOND_FLOAT:
        return math.copysign(math.inf, value)
    # The distance between FLOATs of this size: 24 bits, and none below 2**-149.
    exponent = max(math.frexp(value)[1] - 24, -149)
    steps = math.ldexp(abs(value), -exponent)
    whole = round(steps)
    if steps % 1 == 0.5:
        # The double lies in the middle between two FLOATs: the text tells on which side it was.
        exact, middle = _size_of(text), Fraction(abs(value))
        whole = whole if exact == middle else math.floor(steps) + (exact > middle)
    size = math.ldexp(whole, exponent)
    return math.copysign(size if size < _BEYOND_FLOAT else math.inf, value)


def _size_of(text: str) -> Fraction:
    """The exact size of the number that a text spells, which is one."""
    digits = text.strip(_BLANK[:-1]).lower().lstrip("+-")
    if not digits.startswith("0x"):
        return Fraction(Decimal(digits.rstrip("fd")))
    mantissa, _, exponent = digits.removeprefix("0x").partition("p")
    whole, _, rest = mantissa.partition(".")
    shift = (to_whole(exponent.rstrip("fd")) or 0) - 4 * len(rest)
    return Fraction(int(whole + rest, 16)) * Fraction(2) ** shift


def to_boolean(text: str) -> bool | None:
    """The words Spark takes for true and false, in any case.

    >>> to_boolean(" Yes "), to_boolean("0"), to_boolean("on")
    (True, False, None)
    """
    word = text.strip(_BLANK).lower()
    return True if word in _TRUE else False if word in _FALSE else None


def to_days(text: str) -> int | None:
    """Days since 1970 of a text such as '2020-01-31'; a time of day after it is ignored, as in Spark."""
    if not _DATE.match(text):
        return None
    match = _PARTS.match(text.strip(_BLANK))
    assert match
    try:
        return date(int(match[1]), int(match[2] or 1), int(match[3] or 1)).toordinal() - _FIRST_DAY
    except ValueError:
        return None


def to_micros(text: str) -> int | None:
    """Microseconds since 1970 UTC of a text such as '2020-01-31 12:00:00.5+01:00'.

    >>> to_micros("1970-01-01 00:00:01.5"), to_micros("1970-01-01T01:00:00+01:00"), to_micros("yesterday")
    (1500000, 0, None)
    """
    if not _TIMESTAMP.match(text):
        return None
    text = text.strip(_BLANK)
    match = _PARTS.match(text)
    assert match
    year, month, day, hour, minute, second = (int(match[i] or (1 if i in (2, 3) else 0)) for i in range(1, 7))
    fraction = int((match[7] or "")[:6].ljust(6, "0"))
    try:
        moment = datetime(year, month, day, hour, minute, second, fraction, UTC)
    except ValueError:
        return None
    offset = _offset(text[match.end() :])
    if offset is None:
        return None
    return within((moment - EPOCH) // MICROSECOND - offset)


def _offset(zone: str) -> int | None:
    match = _ZONE.search(zone)
    if not match:
        return 0
    minutes = int(match[2]) * 60 + int(match[3] or 0)
    # java.time: at most 18 hours, and minutes below 60
    if minutes > 18 * 60 or int(match[3] or 0) > 59:
        return None
    return (minutes if match[1] == "+" else -minutes) * 60_000_000


def within(micros: int) -> int | None:
    """The same timestamp, or None if it lies outside the years 1 to 9999."""
    return micros if FIRST_STAMP <= micros <= LAST_STAMP else None


def date_of(days: int) -> date:
    return date.fromordinal(days + _FIRST_DAY)


def days_of(day: date) -> int:
    return day.toordinal() - _FIRST_DAY


def datetime_of(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def micros_of(moment: datetime) -> int:
    """Microseconds since 1970; a datetime without zone is taken as UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - EPOCH) // MICROSECOND


def timestamp_text(micros: int) -> str:
    """Spark's text of a timestamp in UTC: no trailing zeros in the fraction.

    >>> timestamp_text(1_500_000)
    '1970-01-01 00:00:01.5'
    """
    moment = datetime_of(micros)
    text = f"{moment.year:04}-{moment:%m-%d %H:%M:%S}"
    return f"{text}.{moment.microsecond:06}".rstrip("0") if moment.microsecond else text


def number_text(digits: str) -> str:
    """Java's text of a double whose shortest digits are given as Python's repr has them.

    >>> number_text("1e+16"), number_text("0.00012"), number_text("1234.5")
    ('1.0E16', '1.2E-4', '1234.5')
    """
    special = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
    if digits in special:
        return special[digits]
    sign, figures, exponent = Decimal(digits).normalize().as_tuple()
    assert isinstance(exponent, int)
    text, point = "".join(map(str, figures)), len(figures) + exponent
    minus = "-" if sign else ""
    if text == "0":
        return minus + "0.0"
    if not -3 < point <= 7:
        return f"{minus}{text[0]}.{text[1:] or '0'}E{point - 1}"
    if point <= 0:
        return f"{minus}0.{'0' * -point}{text}"
    whole, rest = text[:point].ljust(point, "0"), text[point:]
    return f"{minus}{whole}.{rest or '0'}"
