"""BEGIN and END (PSoup, Sect. 2: P03-P05): which part of each stream an invocation looks at.

An end is a constant or relative to `now`, the latest event time of the visible prefix; both ends belong to
the window. Two constants make a snapshot, a constant BEGIN a landmark, two relative ends a sliding window.
`last N tuples` counts tuples instead, in the order of the stream's timestamps. The clause is kept apart from
the rest of the query (P12): it is applied at invocation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from penstock.model.durations import format_duration, parse_duration
from penstock.model.errors import ExpressionError
from penstock.standing.errors import QueryError
from penstock.standing.language.scan import shortened

_FORMS = "now, now - 10 minutes, '2026-01-01 10:00:00' (UTC) or seconds since 1970"
_LAST = re.compile(r"last\s+([\d_]+)\s+(?:tuples?|rows?)", re.IGNORECASE)
_NOW = re.compile(r"now(?:\s*\(\s*\))?(?:\s*-\s*(.+))?", re.IGNORECASE | re.DOTALL)
_CONSTANT = re.compile(r"(?:TIMESTAMP\s*)?'([^']*)'", re.IGNORECASE)
_SECONDS = re.compile(r"-?\d+(?:\.\d+)?")
_MOST_TEXT = 100  # characters of one end
_EARLIEST, _LATEST = -(1 << 62), (1 << 62)


@dataclass(frozen=True)
class Now:
    """An end that moves with the stream: `back` microseconds before its latest event time."""

    back: int = 0

    def __str__(self) -> str:
        return f"now - {format_duration(self.back)}" if self.back else "now"

    def at(self, now: int) -> int:
        return now - self.back


@dataclass(frozen=True)
class At:
    """A fixed end, in microseconds since 1970 UTC."""

    us: int

    def __str__(self) -> str:
        if not -62_135_596_800_000_000 < self.us < 253_402_300_800_000_000:
            return f"{self.us / 1e6:.6f}"
        return f"'{datetime.fromtimestamp(0, UTC) + timedelta(microseconds=self.us):%Y-%m-%d %H:%M:%S.%f}'"

    def at(self, now: int) -> int:
        del now
        return self.us


@dataclass(frozen=True)
class Last:
    """A BEGIN by count: the newest tuples of the stream up to END, as many as given."""

    tuples: int

    def __str__(self) -> str:
        return f"last {self.tuples} tuples"


@dataclass(frozen=True)
class Window:
    """The part of a stream between two ends. `begin` None: everything that is retained.

    >>> window("now - 10 minutes", "now").reach
    600000000
    >>> print(window("last 1000 tuples"))
    BEGIN last 1000 tuples END now
    """

    begin: Now | At | Last | None = None
    end: Now | At = Now()

    def __str__(self) -> str:
        return f"BEGIN {'start' if self.begin is None else self.begin} END {self.end}"

    @property
    def reach(self) -> int | None:
        """How far behind `now` it looks at least, in microseconds; None if unknown."""
        if isinstance(self.begin, At) and isinstance(self.end, At):
            return self.end.us - self.begin.us
        return self.begin.back if isinstance(self.begin, Now) else None

    @property
    def kind(self) -> str:
        """The kind of window, in the paper's words."""
        if isinstance(self.begin, Last):
            return "count"
        moving = isinstance(self.begin, Now), isinstance(self.end, Now)
        return {(True, True): "sliding", (False, True): "landmark", (False, False): "snapshot"}.get(
            moving, "backward"
        )

    def span(self, now: int) -> tuple[int, int]:
        """The ends at a moment. A count window begins with the stream here; others cut it later."""
        begin = self.begin.at(now) if isinstance(self.begin, Now | At) else _EARLIEST
        return begin, self.end.at(now) if now > _EARLIEST else _LATEST


def window(begin: str = "", end: str = "") -> Window:
    """Parse the texts after BEGIN and END into a window."""
    first = None if begin.strip().lower() in ("", "start") else _end(begin, "BEGIN")
    last = _end(end, "END") if end.strip() else Now()
    if isinstance(last, Last):
        raise QueryError("END cannot count tuples", found=end.strip(), expected=_FORMS)
    if first is not None and not isinstance(first, Last):
        _refuse_backward(first, last)
    return Window(first, last)


def _refuse_backward(first: Now | At, last: Now | At) -> None:
    same = type(first) is type(last)
    if same and first.at(0) > last.at(0):
        raise QueryError(
            "the window ends before it begins", found=f"BEGIN {first} END {last}", hint="swap the two ends"
        )


def _end(text: str, which: str) -> Now | At | Last:
    # One blank for many: the patterns below would try every way to share out a long run of blanks.
    text = " ".join(text.split())
    forms = f"{_FORMS}, or last 1000 tuples" if which == "BEGIN" else _FORMS
    if len(text) > _MOST_TEXT:
        raise QueryError(f"{which} does not say when", found=shortened(text), expected=forms)
    if match := _LAST.fullmatch(text):
        count = int(match[1].replace("_", ""))
        if count < 1:
            raise QueryError(f"a window of {count} tuples is empty", expected="one tuple at least")
        return Last(count)
    try:
        if match := _NOW.fullmatch(text):
            return Now(parse_duration(match[1].strip()) if match[1] else 0)
        if match := _CONSTANT.fullmatch(text):
            return At(moment(match[1]))
        if _SECONDS.fullmatch(text):
            seconds = parse_duration(float(text) if "." in text else int(text))
            if not _EARLIEST < seconds < _LATEST:
                raise QueryError(f"{which} is no time", found=text, expected=_FORMS)
            return At(seconds)
    except ExpressionError as error:
        raise QueryError(f"{which}: {error.problem}", expected=error.expected, hint=error.hint) from None
    raise QueryError(f"{which} does not say when", found=text or "nothing", expected=forms)


def moment(text: str) -> int:
    """Microseconds since 1970 of an ISO text; UTC unless it says otherwise.

    >>> moment("1970-01-01 00:01:00")
    60000000
    """
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        raise QueryError(
            f"'{text}' is not a time", expected="ISO form", hint="for example '2026-01-01 10:00:00'"
        ) from None
    time = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    gap = time - datetime.fromtimestamp(0, UTC)
    return (gap.days * 86_400 + gap.seconds) * 1_000_000 + gap.microseconds
