"""Larger inputs from fewer generated expressways: copies shifted in VID, QID and XWay.

Idea: copy k of an input is the input with k times a fixed span added to every VID, QID and XWay. So copies
share no vehicle, request or expressway, and every answer about a copy is the shifted answer about the
original. Unused (-1) fields stay. Only whole copies are made: a vehicle may drive on several expressways of
the input, and half of its rows must not be left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NotRequired, TypedDict

import numpy as np

from penstock.linear_road.errors import InputError
from penstock.linear_road.rows import csv_rows
from penstock.linear_road.rows.arrays import Int32s
from penstock.linear_road.rows.csv_rows import DIR_FIELD, QID_FIELD, TYPE_FIELD, VID_FIELD, XWAY_FIELD
from penstock.linear_road.rows.fields import POSITION_REPORT
from penstock.linear_road.rows.inputs import Input
from penstock.linear_road.rows.read_blocks import seconds_of
from penstock.linear_road.rows.wanderers import Range, Wanderers

_INT32 = 2**31 - 1


class SpanFigures(TypedDict):
    """A span in JSON."""

    vids: int
    qids: int
    xways: int
    expressways: float
    together: NotRequired[list[list[int]]]


class CopiesFigures(TypedDict):
    """Copies in JSON."""

    count: int
    vid: int
    qid: int
    xway: int


@dataclass(frozen=True)
class Span:
    """How many VIDs, QIDs and XWays an input takes up (largest + 1), and its size L in expressways.

    Halves count 0.5. `together`: ranges of expressways that must stay in one group, see `wanderers`;
    generated inputs have none.
    """

    vids: int
    qids: int
    xways: int
    expressways: float
    together: tuple[Range, ...] = ()

    def times(self, count: int) -> Span:
        """The span of `count` shifted copies."""
        ranges = [
            (k * self.xways + low, k * self.xways + high) for k in range(count) for low, high in self.together
        ]
        return Span(
            self.vids * count, self.qids * count, self.xways * count, self.expressways * count, tuple(ranges)
        )

    def as_json(self) -> SpanFigures:
        """The span as manifests keep it."""
        figures: SpanFigures = {
            "vids": self.vids,
            "qids": self.qids,
            "xways": self.xways,
            "expressways": self.expressways,
        }
        if self.together:
            figures["together"] = [[low, high] for low, high in self.together]
        return figures

    @classmethod
    def from_json(cls, figures: SpanFigures) -> Span:
        together = tuple((low, high) for low, high in figures.get("together", ()))
        return cls(figures["vids"], figures["qids"], figures["xways"], figures["expressways"], together)


@dataclass(frozen=True)
class Copies:
    """`count` copies of an input, each `vid`, `qid` and `xway` above the one before.

    >>> Copies(4, vid=1000, qid=50, xway=2).offsets(3)
    (3000, 150, 6)
    """

    count: int = 1
    vid: int = 0
    qid: int = 0
    xway: int = 0

    def offsets(self, k: int) -> tuple[int, int, int]:
        """What copy `k` adds to VID, QID and XWay."""
        return k * self.vid, k * self.qid, k * self.xway

    def as_json(self) -> CopiesFigures:
        return CopiesFigures(count=self.count, vid=self.vid, qid=self.qid, xway=self.xway)


def copies_of(span: Span, *, count: int | None = None, expressways: float | None = None) -> Copies:
    """Plan copies by their number, or by the size L that they have together.

    >>> copies_of(Span(1000, 50, 2, 2.0), expressways=6)
    Copies(count=3, vid=1000, qid=50, xway=2)
    """
    if not span.expressways and (expressways is not None or count not in (None, 1)):
        raise InputError("an input without position reports has no expressways that could be copied")
    if expressways is not None:
        count = _count_for(span, expressways)
    count = 1 if count is None else count
    if count < 1:
        raise InputError(f"--copies {count} is too few", expected="1 or more")
    if count == 1:
        return Copies()
    if max(span.vids, span.qids, span.xways) * count > _INT32:
        raise InputError(
            f"{count} copies need VIDs, QIDs or XWays above {_INT32}, which a row cannot hold",
            hint="take fewer copies",
        )
    return Copies(count, span.vids, span.qids, span.xways)


def _count_for(span: Span, expressways: float) -> int:
    # Sizes are multiples of 0.5, which floats hold exactly, so the comparison is exact.
    count = round(expressways / span.expressways)
    if count < 1 or count * span.expressways != expressways:
        raise InputError(
            f"--xways {expressways:g} is no multiple of the {span.expressways:g} expressways of the input",
            hint=f"take --xways {max(1, count) * span.expressways:g}, or generate another input",
        )
    return count


def stated_span(source: Input) -> Span | None:
    """The span stated in the manifest of a generated input; None if there is none."""
    stated = source.manifest
    if stated is None or not {"vid_limit", "qid_limit", "xways"} <= set(stated):
        return None
    expressways = float(stated["xways"])
    return Span(int(stated["vid_limit"]), int(stated["qid_limit"]), math.ceil(expressways), expressways)


def span_of(source: Input, between: Callable[[], None] = lambda: None) -> Span:
    """The span of an input: from its manifest, or measured in one pass over its accepted rows.

    `between` is called after each block of that pass; if it raises, the pass ends.
    """
    return stated_span(source) or _measured(source, between)


def _measured(source: Input, between: Callable[[], None]) -> Span:
    largest = np.full(csv_rows.FIELDS, -1, np.int64)
    roads: set[int] = set()
    wanderers = Wanderers()
    for rows in seconds_of(source):
        values = rows.accepted()
        if len(values):
            largest = np.maximum(largest, values.max(axis=0))
            reports = values[values[:, TYPE_FIELD] == POSITION_REPORT].astype(np.int64)
            roads.update(np.unique(reports[:, XWAY_FIELD] * 2 + reports[:, DIR_FIELD]).tolist())
            wanderers.add(reports)
        between()
    if largest[0] < 0:
        raise InputError(f"input {source.path} has no row that keeps to the format")
    # Requests alone are an input too: one group without a size.
    xways = max(roads, default=0) // 2 + 1
    vids, qids = int(largest[VID_FIELD]) + 1, int(largest[QID_FIELD]) + 1
    return Span(vids, qids, xways, len(roads) / 2, tuple(wanderers.ranges))


def shift_column(values: Int32s, copies: Copies, k: int, column: int) -> Int32s:
    """A column of the rows of copy `k`; only VID, QID and XWay differ from the original.

    >>> shift_column(np.array([5, -1], np.int32), Copies(2, vid=1000, qid=50, xway=1), 1, QID_FIELD).tolist()
    [55, -1]
    """
    shifted = dict(zip((VID_FIELD, QID_FIELD, XWAY_FIELD), copies.offsets(k), strict=True))
    if not shifted.get(column):
        return values
    return np.where(values >= 0, values + np.int32(shifted[column]), values)
