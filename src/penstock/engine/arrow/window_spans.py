"""Which windows of time a moment lies in, for many moments at once.

Window k is [k * every, k * every + size), aligned to 1970 UTC. A pane is the longest stretch that never lies
across the edge of a window: the greatest common divisor of step and size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from penstock.model.boxes import Latch, Windowed
from penstock.model.durations import Time

Bound = int | np.ndarray  # one number, or one for each row


@dataclass(frozen=True)
class Spans:
    """Windows of `size` microseconds, one each `every` microseconds (or tuples: count windows are alike).

    >>> spans = Spans(size=20, every=10)
    >>> which, windows = spans.of_panes(np.array([2]), since=0, until=None)
    >>> windows.tolist()
    [1, 2]
    """

    size: int
    every: int

    @staticmethod
    def of(node: Windowed | Latch) -> Spans:
        """Those of a box over time."""
        assert isinstance(node.size, Time)
        every = node.step
        assert isinstance(every, Time)
        return Spans(node.size.us, every.us)

    @property
    def width(self) -> int:
        """The length of a pane."""
        return math.gcd(self.size, self.every)

    @property
    def edges(self) -> tuple[int, int]:
        """Step and size, as `Shaper.emit` wants them."""
        return self.every, self.size

    def pane(self, ts: np.ndarray) -> np.ndarray:
        """The pane of each time."""
        panes: np.ndarray = np.floor_divide(ts, self.width)
        return panes

    def inside(self, ts: np.ndarray) -> np.ndarray:
        """False where a time falls between two windows."""
        inside: np.ndarray = np.mod(ts, self.every) < self.size
        return inside

    def _range(self, starts: np.ndarray, since: Bound, until: Bound | None) -> tuple[np.ndarray, np.ndarray]:
        """The first and last window of each row whose end lies in (since, until]."""
        # Window k has t if k * every <= t < k * every + size: solve for the least and the largest k.
        first = np.floor_divide(starts - self.size, self.every) + 1
        last = np.floor_divide(starts, self.every)
        # Windows that had ended by `since` have been given already.
        first = np.maximum(first, self._ended(since) + 1)
        return first, last if until is None else np.minimum(last, self._ended(until))

    def _ended(self, at: Bound) -> Bound:
        """The last window that has ended; far back in time where nothing is known."""
        # An unknown horizon is the least int64: subtracting a size from it would wrap around.
        ended: Bound = np.floor_divide(np.maximum(at, -(2**62)) - self.size, self.every)
        return ended

    def of_panes(self, panes: np.ndarray, since: Bound, until: Bound | None) -> tuple[np.ndarray, np.ndarray]:
        """Pairs (index of a pane, its window) for the windows with since < end <= until (None: all)."""
        # No window edge cuts a pane, so its first moment stands for all of it.
        return self._pairs(panes * self.width, since, until)

    def of_times(self, ts: np.ndarray, since: Bound, until: Bound | None) -> tuple[np.ndarray, np.ndarray]:
        """Pairs (index of a time, window that has it), as `of_panes`."""
        return self._pairs(ts, since, until)

    def _pairs(self, starts: np.ndarray, since: Bound, until: Bound | None) -> tuple[np.ndarray, np.ndarray]:
        first, last = self._range(starts, since, until)
        counts = np.maximum(last - first + 1, 0)
        which = np.repeat(np.arange(len(starts)), counts)
        # 0, 1, 2, ... for the windows of each row: the position, less where the row begins.
        steps = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        return which, first[which] + steps

    def done(self, panes: np.ndarray, until: Bound | None) -> np.ndarray:
        """True for panes all of whose windows have closed."""
        return self.done_times(panes * self.width, until)

    def done_times(self, ts: np.ndarray, until: Bound | None) -> np.ndarray:
        """True for times all of whose windows have closed."""
        if until is None:
            return np.ones(len(ts), bool)
        # The last window that has a time starts at the multiple of `every` at or below it.
        done: np.ndarray = np.floor_divide(ts, self.every) * self.every + self.size <= until
        return done
