"""From what a program hands over to what a column holds: converted at the source, or refused."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import TypeAlias, TypeVar

T = TypeVar("T", bool, str, bytes)
Value: TypeAlias = bool | int | float | str | bytes | date | datetime | None
"""What a column may hold; its type says which."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_US = timedelta(microseconds=1)
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


def micros(moment: datetime) -> int:
    """Microseconds since 1970 UTC.

    >>> micros(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    1000000
    """
    return (moment - _EPOCH) // _US


def moment(us: int) -> datetime:
    """The UTC datetime of so many microseconds since 1970; OverflowError outside of the years 1 to 9999."""
    return _EPOCH + us * _US


def in_range(value: int, type_: str) -> bool:
    """Whether an integer fits its column type."""
    bound = 1 << (_BITS[type_] - 1)
    return -bound <= value < bound


def convert(value: object, type_: str) -> Value:
    """A Python value as a value of the column type; ValueError with a reason where that cannot be.

    Timestamps may be datetimes (without zone: UTC), ISO text, or seconds since 1970.

    >>> convert(1.5, "TIMESTAMP")
    datetime.datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=datetime.timezone.utc)
    """
    if value is None:
        return None
    if type_ in _BITS:
        return _integer(value, type_)
    return _CONVERTERS[type_](value)


def _integer(value: object, type_: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _refusal(value, type_)
    if not in_range(value, type_):
        raise ValueError(f"{value} is out of the range of {type_}")
    return value


def _float(value: object) -> float:
    number = _double(value)
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        raise ValueError(f"{value!r} is out of the range of FLOAT") from None


def _double(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _refusal(value, "DOUBLE")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{value!r} is out of the range of DOUBLE") from None


def _exactly(kind: type[T], type_: str) -> Callable[[object], T]:
    def check(value: object) -> T:
        if not isinstance(value, kind):
            raise _refusal(value, type_)
        return value

    return check


def _date(value: object) -> date:
    if isinstance(value, str):
        return date.fromisoformat(value)
    if isinstance(value, datetime) or not isinstance(value, date):
        raise _refusal(value, "DATE")
    return value


def _timestamp(value: object) -> datetime:
    given = datetime.fromisoformat(value) if isinstance(value, str) else value
    try:
        if isinstance(given, datetime):
            return given.replace(tzinfo=UTC) if given.tzinfo is None else given.astimezone(UTC)
        if isinstance(given, int) and not isinstance(given, bool):
            return moment(given * 1_000_000)
        if isinstance(given, float) and not math.isnan(given):
            return moment(round(given * 1_000_000))
    except OverflowError:
        raise ValueError(f"{value!r} is out of the range of TIMESTAMP") from None
    raise _refusal(value, "TIMESTAMP")


def _refusal(value: object, type_: str) -> ValueError:
    return ValueError(f"{value!r} ({type(value).__name__}) is no {type_}")


_CONVERTERS: dict[str, Callable[[object], Value]] = {
    "BOOLEAN": _exactly(bool, "BOOLEAN"), "STRING": _exactly(str, "STRING"),
    "BINARY": _exactly(bytes, "BINARY"),
    "FLOAT": _float, "DOUBLE": _double, "DATE": _date, "TIMESTAMP": _timestamp,
}  # fmt: skip
