"""Ranges of the storage key: a B-tree look-up (Aurora, Sect. 4.2 and 3.2) on files with key bounds.

Key values have a plain form that JSON can carry and that Python orders as Spark does. It uses whole numbers
for integers, booleans, dates (days) and timestamps (microseconds); floats; text; and hexadecimal text for
bytes.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

Bound = int | float | str | None


@dataclass(frozen=True)
class Interval:
    """Values from `low` to `high`; None means no bound on that side.

    >>> Interval(3, 5, high_open=True).touches(5, 9)
    False
    >>> Interval(3, None).touches(1, 3)
    True
    """

    low: Bound = None
    high: Bound = None
    low_open: bool = False
    high_open: bool = False

    def touches(self, least: Bound, greatest: Bound) -> bool:
        """Whether any value from `least` to `greatest` (None: unknown) can lie in this interval."""
        return not _beyond(self.low, greatest, self.low_open) and not _beyond(
            least, self.high, self.high_open
        )

    @property
    def empty(self) -> bool:
        return _beyond(self.low, self.high, self.low_open or self.high_open)

    def meet(self, other: Interval) -> Interval:
        """The values in both."""
        low, low_open = _tighter(self.low, self.low_open, other.low, other.low_open, upper=False)
        high, high_open = _tighter(self.high, self.high_open, other.high, other.high_open, upper=True)
        return Interval(low, high, low_open, high_open)


# A union of intervals. An empty one means that nothing can match. None in place of Ranges: no restriction.
Ranges = tuple[Interval, ...]


def meet(left: Ranges | None, right: Ranges | None) -> Ranges | None:
    """What both allow (AND)."""
    if left is None or right is None:
        return right if left is None else left
    both = (a.meet(b) for a in left for b in right)
    return tuple(interval for interval in both if not interval.empty)


def join(left: Ranges | None, right: Ranges | None) -> Ranges | None:
    """What either of the two allows (OR)."""
    return None if left is None or right is None else left + right


def touches(ranges: Ranges | None, least: Bound, greatest: Bound, values: int) -> bool:
    """Whether a file with these key bounds and `values` keys that are not null may hold a match."""
    if ranges is None:
        return True
    # A comparison with null is never true, so rows without a key match no range.
    return values > 0 and any(interval.touches(least, greatest) for interval in ranges)


def plain(value: object) -> Bound:
    r"""The plain form of a column's value.

    >>> plain(dt.date(1970, 1, 3)), plain(b"\x01"), plain(True)
    (2, '01', 1)
    """
    if isinstance(value, bool):
        return int(value)
    if value is None or isinstance(value, int | float | str):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dt.datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
        return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    if isinstance(value, dt.date):
        return value.toordinal() - dt.date(1970, 1, 1).toordinal()
    raise TypeError(f"a storage key cannot be a {type(value).__name__}")


def _beyond(low: Bound, high: Bound, is_open: bool) -> bool:
    """Whether `low` lies above `high`, so that the range is empty."""
    if low is None or high is None:
        return False
    return bool(low > high or (is_open and low == high))  # type: ignore[operator]  # of one column


def _tighter(a: Bound, a_open: bool, b: Bound, b_open: bool, *, upper: bool) -> tuple[Bound, bool]:
    if a is None or b is None:
        return (b, b_open) if a is None else (a, a_open)
    if a == b:
        return a, a_open or b_open
    first = (a < b) == upper  # type: ignore[operator]  # of one column
    return (a, a_open) if first else (b, b_open)
