"""Finds vehicles that report from several expressways at nearly the same time.

Idea: such expressways must stay together. "Its four latest reports" of a vehicle are looked for where its
reports are, in one group of expressways. A vehicle that changes between expressways in less than 30 s is
judged correctly only if both are in one group. Sorted by vehicle and time, such a change shows in two
adjacent rows. Groups are ranges of expressways, so the result is ranges too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from penstock.linear_road.rows.arrays import Int64s
from penstock.linear_road.rows.csv_rows import TIME_FIELD, VID_FIELD, XWAY_FIELD

NEAR_S = 30
Range = tuple[int, int]


@dataclass
class Wanderers:
    """Collects the position reports of an input, block by block in order of time."""

    ranges: list[Range] = field(default_factory=list)
    _recent: Int64s = field(default_factory=lambda: np.zeros((0, 3), np.int64))

    def add(self, reports: Int64s) -> None:
        """Add a block of reports, each with all its fields."""
        if not len(reports):
            return
        fields = reports[:, [VID_FIELD, TIME_FIELD, XWAY_FIELD]].astype(np.int64)
        seen = np.concatenate([self._recent, fields])
        # Only the last 30 s can still be near a report of the next block.
        self._recent = seen[seen[:, 1] > seen[-1, 1] - NEAR_S]
        # Most inputs have one expressway, so there is nothing to sort.
        if seen[:, 2].min() != seen[:, 2].max():
            self.ranges = joined([*self.ranges, *_changes(seen)])


def _changes(seen: Int64s) -> list[Range]:
    """The expressways between which vehicles changed quickly; `seen`: vehicle, time, expressway."""
    ordered = seen[np.lexsort((seen[:, 1], seen[:, 0]))]
    (vid, time, xway), (vid2, time2, xway2) = ordered[:-1].T, ordered[1:].T
    quick = (vid == vid2) & (xway != xway2) & (time2 - time < NEAR_S)
    pairs = np.unique(np.sort(np.stack([xway[quick], xway2[quick]], axis=1), axis=1), axis=0)
    return [(int(low), int(high)) for low, high in pairs]


def joined(ranges: list[Range]) -> list[Range]:
    """Join overlapping ranges.

    >>> joined([(5, 6), (0, 2), (1, 3), (3, 4)])
    [(0, 4), (5, 6)]
    """
    merged: list[Range] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], high)
        else:
            merged.append((low, high))
    return merged
