"""Time slices: an input laid out so that delivering a second is one write.

Idea: a slice is the finished bytes of one second of one group of expressways (csv text, or a whole parquet
file). The slices of a group follow each other in one packed file, and a small index says where each second
starts. So a driver maps the file and passes ranges of it on. Shifted copies are made from slices during
delivery, so the packed files need not hold them.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NotRequired, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.linear_road.errors import InputError
from penstock.linear_road.rows import csv_rows
from penstock.linear_road.rows.arrays import Bytes, Int32s, Int64s
from penstock.linear_road.rows.copies import Copies, CopiesFigures, Span, SpanFigures, shift_column
from penstock.linear_road.rows.csv_rows import MOST_DIGITS
from penstock.linear_road.rows.fields import COLUMNS, PARQUET_SCHEMA
from penstock.linear_road.rows.inputs import MANIFEST, Format
from penstock.linear_road.rows.packed_rows import PackedRows, join_shifted

KIND = "linear-road-slices"
REFUSED = "refused.npy"
"""Where the refused rows of prepared slices lie: for each its second, stored group, index in that group, and
offset in the input.
"""

Unit = tuple[int, int]
"""(copy, stored group): the smallest part of a second that is delivered as a whole."""


class PlanFigures(TypedDict):
    """What determines the bytes of slices."""

    kind: str
    version: int
    source: str
    source_files: list[list[str | int]]
    groups: int
    format: Format
    copies: CopiesFigures
    span: SpanFigures | None
    begin: int | None
    end: int | None
    lenient: bool
    halves: NotRequired[bool]


class SlicesManifest(PlanFigures):
    """The manifest of prepared slices."""

    t0: int
    t1: int
    rows: int
    bytes: int
    refused_rows_passed_on: int
    unparsed_rows_passed_on: int
    slices: list[str]
    indexes: list[str]


@dataclass(frozen=True)
class Slice:
    """The rows of one second and one group, as bytes ready to deliver."""

    data: Bytes
    rows: int


EMPTY = Slice(np.zeros(0, np.uint8), 0)


@dataclass(frozen=True)
class Slices:
    """A prepared input on disk: seconds t0..t1-1 in `groups` packed files of `format`."""

    path: Path
    manifest: SlicesManifest

    @property
    def t0(self) -> int:
        return int(self.manifest["t0"])

    @property
    def t1(self) -> int:
        return int(self.manifest["t1"])

    @property
    def groups(self) -> int:
        return int(self.manifest["groups"])

    @property
    def format(self) -> Format:
        return "parquet" if self.manifest["format"] == "parquet" else "csv"

    @property
    def span(self) -> Span | None:
        """The span of what the slices hold; None if it was not measured."""
        span = self.manifest["span"]
        return None if span is None else Span.from_json(span)

    @property
    def halves(self) -> bool:
        """Whether each stored group is one direction of one expressway.

        If so, any L in halves can be driven.
        """
        return bool(self.manifest.get("halves", False))

    @cached_property
    def refused(self) -> Int64s:
        """Where the refused rows lie, see `REFUSED`; none if these slices were prepared without them."""
        file = self.path / REFUSED
        return np.load(file) if file.is_file() else np.zeros((0, 4), np.int64)

    @cached_property
    def _index(self) -> list[Int64s]:
        return [np.load(self.path / name) for name in self.manifest["indexes"]]

    @cached_property
    def _packs(self) -> list[Bytes]:
        return [_map(self.path / name) for name in self.manifest["slices"]]

    def rows(self, begin: int, end: int, group: int) -> int:
        """How many rows the seconds begin..end-1 of a stored group have."""
        first, last = (min(max(t, self.t0), self.t1) - self.t0 for t in (begin, end))
        return int(self._index[group][last, 1] - self._index[group][first, 1])

    def slice(self, second: int, group: int) -> Slice:
        """One second of one stored group; empty outside t0..t1-1."""
        if not self.t0 <= second < self.t1:
            return EMPTY
        index = self._index[group]
        (begin, first), (end, last) = index[second - self.t0], index[second - self.t0 + 1]
        return Slice(self._packs[group][begin:end], int(last - first))


def _map(file: Path) -> Bytes:
    # An empty file cannot be mapped.
    return np.memmap(file, np.uint8, mode="r") if file.stat().st_size else np.zeros(0, np.uint8)


def is_slices(path: Path) -> bool:
    """Whether `path` is a finished directory of slices."""
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and manifest.get("kind") == KIND


def open_slices(path: Path) -> Slices:
    """Open a prepared directory."""
    if not is_slices(path):
        raise InputError(
            f"{path} holds no prepared slices", expected="the directory of a finished `drive --prepare`"
        )
    slices = Slices(path, json.loads((path / MANIFEST).read_text(encoding="utf-8")))
    for name in [*slices.manifest["slices"], *slices.manifest["indexes"]]:
        if not (path / name).is_file():
            raise InputError(f"the prepared directory {path} lacks its file {name}", hint="prepare it again")
    return slices


def group_plan(stored: int, copies: int, groups: int) -> list[list[Unit]]:
    """The units of each delivered group: neighbours stay together, and sizes are as even as possible.

    >>> group_plan(stored=1, copies=4, groups=2)
    [[(0, 0), (1, 0)], [(2, 0), (3, 0)]]
    """
    units = [(k, b) for k in range(copies) for b in range(stored)]
    if not 1 <= groups <= len(units):
        raise InputError(f"--groups {groups} is out of range", expected=f"1..{len(units)} for this input")
    plan: list[list[Unit]] = [[] for _ in range(groups)]
    for u, unit in enumerate(units):
        # Equal shares in order: two groups never differ by more than one unit.
        plan[u * groups // len(units)].append(unit)
    return plan


def half_plan(stored: int, expressways: float, groups: int) -> list[list[Unit]]:
    """The first `expressways` expressways of copies of stored halves, in delivered groups.

    An expressway is never split.

    >>> half_plan(stored=4, expressways=2.5, groups=2)
    [[(0, 0), (0, 1)], [(0, 2), (0, 3), (1, 0)]]
    """
    # Halves are stored in order of expressway and direction, so two neighbours are one expressway.
    units = [divmod(u, stored) for u in range(round(2 * expressways))]
    roads = [units[u : u + 2] for u in range(0, len(units), 2)]
    if not 1 <= groups <= len(roads):
        raise InputError(
            f"--groups {groups} is out of range", expected=f"1..{len(roads)} for {expressways:g} expressways"
        )
    plan: list[list[Unit]] = [[] for _ in range(groups)]
    for r, road in enumerate(roads):
        # A road goes where its middle lies, so that half a road at the end weighs only half.
        middle = 2 * r + len(road) / 2
        plan[int(middle * groups / len(units))].extend(road)
    return plan


def stored_groups(groups: int, copies: int, xways: int) -> int:
    """How finely to store an input so that all copies divide evenly into `groups` delivered groups.

    >>> stored_groups(8, 200, 1), stored_groups(4, 1, 10), stored_groups(4, 2, 10)
    (1, 4, 2)
    """
    # Copies that divide evenly among the groups stay whole. Otherwise each is split just finely enough.
    return min(groups // math.gcd(groups, copies), xways)


def assemble(stored: Sequence[Slice], units: Sequence[Unit], copies: Copies, form: Format) -> Slice:
    """Assemble the slice of a delivered group from the stored slices of one second."""
    parts = [(k, stored[b]) for k, b in units if stored[b].rows]
    if not parts:
        return EMPTY
    # Copy 0 is not shifted: its bytes go on as they lie in the mapped file.
    if len(parts) == 1 and parts[0][0] == 0:
        return parts[0][1]
    data = _assemble_csv(parts, copies) if form == "csv" else _assemble_parquet(parts, copies)
    return Slice(data, sum(part.rows for _, part in parts))


def assemble_packed(stored: Sequence[PackedRows], units: Sequence[Unit], copies: Copies) -> Slice:
    """The same as packed columns, from the packed rows of the stored slices."""
    chosen = [(k, stored[b]) for k, b in units if stored[b].rows]
    if not chosen:
        return EMPTY
    return Slice(*join_shifted([part for _, part in chosen], [copies.offsets(k) for k, _ in chosen]))


def _assemble_csv(parts: Sequence[tuple[int, Slice]], copies: Copies) -> Bytes:
    out = np.empty(sum(len(part.data) + 3 * MOST_DIGITS * part.rows for _, part in parts), np.uint8)
    at = 0
    for k, part in parts:
        at = csv_rows.shift_into(np.asarray(part.data), out, at, *copies.offsets(k))
    return out[:at]


def _assemble_parquet(parts: Sequence[tuple[int, Slice]], copies: Copies) -> Bytes:
    decoded: dict[int, list[Int32s]] = {}
    for _, part in parts:
        # Copies share their stored slice: decode it once.
        if id(part) not in decoded:
            decoded[id(part)] = decode(part.data)
    return encode([_column(parts, decoded, copies, j) for j in range(len(COLUMNS))])


def _column(
    parts: Sequence[tuple[int, Slice]], decoded: dict[int, list[Int32s]], copies: Copies, j: int
) -> Int32s:
    return np.concatenate([shift_column(decoded[id(part)][j], copies, k, j) for k, part in parts])


def encode(columns: Sequence[Int32s]) -> Bytes:
    """Rows, given as their fifteen columns, as the bytes of a parquet file."""
    out = io.BytesIO()
    arrays = [pa.array(np.ascontiguousarray(column)) for column in columns]
    table = pa.Table.from_arrays(arrays, schema=PARQUET_SCHEMA)
    # These files are read whole and once, so neither statistics nor a dictionary would be of use.
    pq.write_table(table, out, compression="snappy", use_dictionary=False, write_statistics=False)
    return np.frombuffer(out.getbuffer(), np.uint8)


def decode(data: Bytes) -> list[Int32s]:
    """The columns of a parquet slice."""
    table = pq.read_table(pa.BufferReader(pa.py_buffer(data)), use_threads=False)
    return [column.to_numpy() for column in table.columns]
