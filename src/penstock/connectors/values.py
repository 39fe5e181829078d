"""From JSON and Python values to column values, with a reason where that is impossible.

The reference engine has its own converter. They share nothing, so that comparing the engines proves
something.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta

from penstock.model.formats.time_patterns import TimePattern
from penstock.model.types import INTEGRAL

Value = None | bool | int | float | str | bytes | date | datetime
_EPOCH = datetime.fromtimestamp(0, UTC)
NOT_FINITE: Mapping[str, float] = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""How JSON and CSV write the numbers that are none, as Spark does."""
_EXACT = 2**53
"""Below it a double holds every whole number."""
_BITS: Mapping[str, int] = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


def from_json(value: object, type_: str, column: str, pattern: TimePattern | None = None) -> Value:
    """A JSON value as a column value; ValueError with the column's name where that is impossible."""
    if type_ == "BINARY" and isinstance(value, dict) and set(value) == {"base64"}:
        value = value["base64"]
    if type_ in INTEGRAL and isinstance(value, float) and value.is_integer():
        if abs(value) >= _EXACT:
            raise ValueError(
                f"column '{column}': {value!r} is too large for a number with a point to be exact"
            )
        value = int(value)
    if isinstance(value, str):
        value.encode()  # refuses invalid UTF-8 and lone surrogates
    try:
        if pattern is not None and type_ == "TIMESTAMP" and isinstance(value, str):
            return pattern.read(value)
        return converted(_from_text(value, type_) if isinstance(value, str) else value, type_)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"column '{column}': {error}") from None


def _from_text(value: str, type_: str) -> Value:
    """What JSON has no form for: bytes in base64, and the three numbers that are none."""
    if type_ == "BINARY":
        return bytes_of(value)
    return NOT_FINITE.get(value, value) if type_ in ("FLOAT", "DOUBLE") else value


def bytes_of(text: str) -> bytes:
    r"""The bytes of a base64 text.

    >>> bytes_of("AP8=")
    b'\x00\xff'
    """
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ValueError(f"{text!r} is no base64") from None


def as_json(value: object) -> object:
    """Convert what JSON lacks: bytes to base64, times to ISO text, all else to text that is refused later."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    return value.isoformat() if isinstance(value, date | time) else repr(value)


def converted(value: object, type_: str) -> Value:
    """A Python value as a value of the column type.

    Times may be datetimes (in UTC if they have no zone), ISO text, or seconds since 1970.

    >>> converted(1.5, "TIMESTAMP").isoformat()
    '1970-01-01T00:00:01.500000+00:00'
    """
    if value is None:
        return None
    if type_ in _BITS:
        return _integer(value, type_)
    return _CONVERTERS[type_](value)


def _integer(value: object, type_: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _no(value, type_)
    bound = 1 << (_BITS[type_] - 1)
    if not -bound <= value < bound:
        raise ValueError(f"{value} is out of the range of {type_}")
    return value


def _double(value: object, type_: str = "DOUBLE") -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _no(value, "DOUBLE")
    try:
        # Round to what a FLOAT's four bytes can hold.
        return float(value) if type_ == "DOUBLE" else float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        raise ValueError(f"{value!r} is out of the range of {type_}") from None


def _float(value: object) -> float:
    return _double(value, "FLOAT")


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise _no(value, "BOOLEAN")


def _string(value: object) -> str:
    if isinstance(value, str):
        return value
    raise _no(value, "STRING")


def _binary(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    raise _no(value, "BINARY")


def _date(value: object) -> date:
    if isinstance(value, str):
        return date.fromisoformat(value)
    if isinstance(value, datetime) or not isinstance(value, date):
        raise _no(value, "DATE")
    return value


def _timestamp(value: object) -> datetime:
    given = datetime.fromisoformat(value) if isinstance(value, str) else value
    try:
        if isinstance(given, datetime):
            return given.replace(tzinfo=UTC) if given.tzinfo is None else given.astimezone(UTC)
        if isinstance(given, int) and not isinstance(given, bool):
            return _EPOCH + timedelta(seconds=given)
        if isinstance(given, float) and not math.isnan(given):
            return _EPOCH + timedelta(microseconds=round(given * 1_000_000))
    except OverflowError:
        raise ValueError(f"{value!r} is out of the range of TIMESTAMP") from None
    raise _no(value, "TIMESTAMP")


def _no(value: object, type_: str) -> ValueError:
    return ValueError(f"{value!r} ({type(value).__name__}) is no {type_}")


_CONVERTERS: Mapping[str, Callable[[object], Value]] = {
    "BOOLEAN": _boolean,
    "STRING": _string,
    "BINARY": _binary,
    "FLOAT": _float,
    "DOUBLE": _double,
    "DATE": _date,
    "TIMESTAMP": _timestamp,
}
