"""Spark's patterns for times ('dd/MM/yyyy HH:mm:ss'), as far as a text can be read with them.

A pattern becomes one regular expression with a group for each field, and each field says how its text is
read. As in Spark, a field that the pattern lacks is that of 1970-01-01 00:00:00, a text without a zone is in
UTC, and SSS takes one to three digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

from penstock.model.errors import ExpressionError

_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
    "november", "december",
)  # fmt: skip
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|(\[)|(\])|([^A-Za-z'\[\]])", re.DOTALL)


@dataclass(frozen=True)
class TimePattern:
    """A pattern made ready to read texts."""

    text: str
    regex: re.Pattern[str]

    def read(self, given: str) -> datetime:
        """The time that a text says, in UTC; ValueError where it says none.

        >>> time_pattern("dd/MM/yyyy HH:mm").read("31/01/2024 10:30").isoformat()
        '2024-01-31T10:30:00+00:00'
        """
        match = self.regex.fullmatch(given)
        if match is None:
            raise ValueError(f"{given!r} does not fit '{self.text}'")
        part = {name: text for name, text in match.groupdict().items() if text is not None}
        try:
            naive = datetime(  # noqa: DTZ001 - the zone comes next
                _year(part),
                _month(part),
                int(part.get("day", 1)),
                _hour(part),
                int(part.get("minute", 0)),
                int(part.get("second", 0)),
                int(part.get("fraction", "0")[:6].ljust(6, "0")),
            )
            return naive.replace(tzinfo=_zone(part.get("zone", "Z"))).astimezone(UTC)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{given!r} is no time: {error}") from None


@lru_cache(maxsize=64)
def time_pattern(text: str) -> TimePattern:
    """The pattern of a text, or an error that says which letters there are."""
    parts, depth, seen = [], 0, set[str]()
    for quoted, letters, bracket, plain in _tokens(text):
        if letters:
            name, form = _field(text, letters)
            if name in seen:
                raise _wrong(text, f"the {name} twice")
            seen.add(name)
            parts.append(f"(?P<{name}>{form})")
        elif bracket:
            depth += 1 if bracket == "[" else -1
            if depth < 0:
                break
            parts.append("(?:" if bracket == "[" else ")?")
        else:
            parts.append(re.escape(quoted or plain))
    if depth or not seen:
        raise _wrong(text, "brackets that do not close" if depth else "no field of a time")
    return TimePattern(text, re.compile("".join(parts), re.IGNORECASE | re.ASCII))


def _tokens(text: str) -> Iterator[tuple[str, str, str, str]]:
    """(quoted text, run of one letter, bracket, any other character), one of them for each piece."""
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise _wrong(text, "a quote that is not closed")
        quoted = None if token[1] is None else token[1].replace("''", "'") or "'"
        yield quoted or "", token[0] if token[2] else "", token[3] or token[4] or "", token[5] or ""
        at = token.end()


def _field(text: str, letters: str) -> tuple[str, str]:
    forms = _FIELDS.get(letters[0])
    form = forms[1](len(letters)) if forms else None
    if forms is None or form is None:
        raise _wrong(text, f"'{letters}'")
    # two digits are a year of this century
    return ("short_year" if forms[0] == "year" and len(letters) == 2 else forms[0]), form


def _wrong(text: str, found: str) -> ExpressionError:
    return ExpressionError(
        f"'{text}' is not a pattern of a time",
        found=found,
        expected="the letters y M d H h m s S a X x Z, other text in quotes",
        hint='for example "dd/MM/yyyy HH:mm:ss" or "yyyy-MM-dd\'T\'HH:mm:ss.SSSXXX"',
    )


def _year_form(count: int) -> str | None:
    return {1: "[0-9]{1,4}", 2: "[0-9]{2}", 4: "[0-9]{4}"}.get(count)


def _month_form(count: int) -> str | None:
    names = {3: [month[:3] for month in _MONTHS], 4: _MONTHS}.get(count)
    return "|".join(names) if names else _two_digits(count)


def _two_digits(count: int) -> str | None:
    return {1: "[0-9]{1,2}", 2: "[0-9]{2}"}.get(count)


def _fraction_form(count: int) -> str | None:
    return f"[0-9]{{1,{count}}}" if count <= 9 else None


def _zone_form(z: str) -> Callable[[int], str | None]:
    forms = {
        1: f"{z}[+-][0-9]{{2}}(?:[0-9]{{2}})?",
        2: f"{z}[+-][0-9]{{4}}",
        3: f"{z}[+-][0-9]{{2}}:[0-9]{{2}}",
    }
    return forms.get


def _offset_form(count: int) -> str | None:
    return _zone_form("Z|")(3) if count == 5 else "[+-][0-9]{4}" if count <= 3 else None


_FIELDS: Mapping[str, tuple[str, Callable[[int], str | None]]] = {
    "y": ("year", _year_form),
    "u": ("year", _year_form),
    "M": ("month", _month_form),
    "L": ("month", _month_form),
    "d": ("day", _two_digits),
    "H": ("hour", _two_digits),
    "h": ("half", _two_digits),
    "a": ("ampm", lambda count: "AM|PM" if count == 1 else None),
    "m": ("minute", _two_digits),
    "s": ("second", _two_digits),
    "S": ("fraction", _fraction_form),
    "X": ("zone", _zone_form("Z|")),
    "x": ("zone", _zone_form("")),
    "Z": ("zone", _offset_form),
}


def _year(part: Mapping[str, str]) -> int:
    return 2000 + int(part["short_year"]) if "short_year" in part else int(part.get("year", 1970))


def _month(part: Mapping[str, str]) -> int:
    text = part.get("month", "1").lower()
    return int(text) if text.isdigit() else [month[:3] for month in _MONTHS].index(text[:3]) + 1


def _hour(part: Mapping[str, str]) -> int:
    if "half" not in part:
        return int(part.get("hour", 0))
    hour = int(part["half"])
    if not 1 <= hour <= 12:
        raise ValueError("hour must be in 1..12")
    return hour % 12 + (12 if part.get("ampm", "AM").upper() == "PM" else 0)


def _zone(text: str) -> timezone:
    if text in "Zz":
        return UTC
    digits = text[1:].replace(":", "").ljust(4, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    if offset > timedelta(hours=18) or int(digits[2:]) > 59:
        raise ValueError(f"an offset of {text}")
    return timezone(-offset if text[0] == "-" else offset)
