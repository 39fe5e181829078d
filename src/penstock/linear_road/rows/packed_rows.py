"""Rows of one second as packed columns, written without rendering and read without parsing.

Idea: a row that is spelt in the usual way is sixteen bytes, and a request has six numbers more. Any other row
(not 15 integers, another spelling, another second, a number that does not fit) goes along as its own text
with the number of its line. So nothing is lost: packed rows written out are the bytes of the input.

Layout: a mark; four numbers (packed rows, requests, lines of text, bytes of text); the columns from wide to
narrow, so that each is aligned; the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
from numba import njit

from penstock.linear_road.errors import InputError
from penstock.linear_road.rows import csv_rows
from penstock.linear_road.rows.arrays import Bools, Bytes, Int32s, Int64s
from penstock.linear_road.rows.csv_rows import (
    DIR_FIELD,
    FIELDS,
    LANE_FIELD,
    POS_FIELD,
    QID_FIELD,
    SEG_FIELD,
    SPD_FIELD,
    TIME_FIELD,
    TOO_LARGE,
    TYPE_FIELD,
    VID_FIELD,
    XWAY_FIELD,
)
from penstock.linear_road.rows.fields import POSITION_REPORT

MARK = b"LRcols1\n"
_HEAD = len(MARK) + 4 * 4
_REQUEST_FIELDS = FIELDS - QID_FIELD
_MOST_XWAY = 2**15 - 1
_WIDE, _MIDDLE, _NARROW = 2, 2, 4  # columns of four, two and one byte
Shorts = npt.NDArray[np.int16]
Tinies = npt.NDArray[np.int8]
Columns = tuple[Int32s, Int32s, Int32s, Shorts, Shorts, Tinies, Tinies, Tinies, Tinies]
"""VID, Pos, the fields of requests, XWay, Spd, Type, Lane, Dir, Seg: what compiled code takes."""


@dataclass(frozen=True)
class PackedRows:
    """The rows of one second. `lines`: the numbers of the rows that are `text`; packed ones fill the rest.

    `requests`: the fields from QID on of the packed rows that are no position reports, in their order.
    """

    vid: Int32s
    pos: Int32s
    requests: Int32s
    lines: Int32s
    xway: Shorts
    spd: Shorts
    kind: Tinies
    lane: Tinies
    way: Tinies
    seg: Tinies
    text: Bytes

    @property
    def rows(self) -> int:
        return len(self.vid) + len(self.lines)

    @property
    def columns(self) -> Columns:
        return (
            self.vid,
            self.pos,
            self.requests,
            self.xway,
            self.spd,
            self.kind,
            self.lane,
            self.way,
            self.seg,
        )


def is_packed(data: bytes | memoryview) -> bool:
    """Whether these are packed rows; no row of text begins like that."""
    return bytes(data[: len(MARK)]) == MARK


def empty(packed: int, requests: int, lines: int, text: int) -> tuple[Bytes, PackedRows]:
    """The bytes of packed rows, and their columns to be filled."""
    data = np.empty(_size(packed, requests, lines, text), np.uint8)
    data[: len(MARK)] = np.frombuffer(MARK, np.uint8)
    data[len(MARK) : _HEAD].view(np.int32)[:] = packed, requests, lines, text
    return data, _columns(data, packed, requests, lines)


def unpacked(chunk: bytes | memoryview) -> PackedRows:
    """The columns in the bytes that `empty` has laid out; refuses bytes of another length."""
    # A copy, so that columns are aligned wherever the bytes came from: compiled code wants one type of array.
    data = np.array(np.frombuffer(chunk, np.uint8))
    head = data[len(MARK) : _HEAD]
    packed, requests, lines, text = head.view(np.int32).tolist() if len(head) == 4 * 4 else [-1] * 4
    if min(packed, requests, lines, text) < 0 or len(data) != _size(packed, requests, lines, text):
        raise InputError(f"packed rows of {len(data)} bytes do not have the length that their head says")
    return _columns(data, packed, requests, lines)


def _size(packed: int, requests: int, lines: int, text: int) -> int:
    row = 4 * _WIDE + 2 * _MIDDLE + _NARROW
    return _HEAD + packed * row + 4 * (requests * _REQUEST_FIELDS + lines) + text


def _columns(data: Bytes, packed: int, requests: int, lines: int) -> PackedRows:
    # Mark and head are 24 bytes, and columns go from wide to narrow: each begins at a multiple of its width.
    at = _HEAD

    def column(count: int, kind: type[np.signedinteger]) -> np.ndarray:
        nonlocal at
        begin, at = at, at + count * np.dtype(kind).itemsize
        return data[begin:at].view(kind)

    vid, pos = column(packed, np.int32), column(packed, np.int32)
    asked = column(requests * _REQUEST_FIELDS, np.int32).reshape(requests, _REQUEST_FIELDS)
    numbers = column(lines, np.int32)
    xway, spd = column(packed, np.int16), column(packed, np.int16)
    kind, lane, way, seg = (column(packed, np.int8) for _ in range(_NARROW))
    return PackedRows(
        vid=vid,
        pos=pos,
        requests=asked,
        lines=numbers,
        xway=xway,
        spd=spd,
        kind=kind,
        lane=lane,
        way=way,
        seg=seg,
        text=data[at:],
    )


def pack(text: Bytes, second: int) -> PackedRows:
    r"""Pack the rows of a second from their text.

    >>> lines = b"0,5,7,30,0,1,0,1,5300,-1,-1,-1,-1,-1,-1\nnonsense\n"
    >>> rows = pack(np.frombuffer(lines, np.uint8), 5)
    >>> rows.vid.tolist(), rows.lines.tolist(), rows.text.tobytes()
    ([7], [1], b'nonsense\n')
    """
    values, whole, starts = csv_rows.parse(np.ascontiguousarray(text))
    usual = np.zeros(len(values), np.bool_)
    _find_usual(values, whole, starts, second, usual)
    requests = int(np.count_nonzero(values[usual, TYPE_FIELD] != POSITION_REPORT))
    others = np.flatnonzero(~usual)
    rest, _ = csv_rows.gather(np.ascontiguousarray(text), starts, others)
    _, rows = empty(int(np.count_nonzero(usual)), requests, len(others), len(rest))
    rows.lines[:], rows.text[:] = others, rest
    _fill(values[usual], rows.columns)
    return rows


def text_of(rows: PackedRows, lines: Int64s, second: int) -> list[str]:
    """The chosen rows as they stand in the input."""
    # The last line ends in a newline too, so the split gives one empty piece more than there are lines.
    texts = dict(zip(rows.lines.tolist(), rows.text.tobytes().split(b"\n"), strict=False))
    packed = np.delete(np.arange(rows.rows), rows.lines)
    asked = np.cumsum(rows.kind != POSITION_REPORT)
    written = []
    for line in lines.tolist():
        if line in texts:
            written.append(texts[line].decode("utf-8", "replace").rstrip("\r"))
            continue
        i = int(np.searchsorted(packed, line))
        first = (rows.kind, second, rows.vid, rows.spd, rows.xway, rows.lane, rows.way, rows.seg, rows.pos)
        numbers = [column if isinstance(column, int) else int(column[i]) for column in first]
        report = rows.kind[i] == POSITION_REPORT
        numbers += [-1] * _REQUEST_FIELDS if report else rows.requests[asked[i] - 1].tolist()
        written.append(",".join(map(str, numbers)))
    return written


def join_shifted(parts: Sequence[PackedRows], shifts: Sequence[tuple[int, int, int]]) -> tuple[Bytes, int]:
    """The bytes of several parts one after the other, each shifted by (VID, QID, XWay), and their rows."""
    texts = [_shifted_text(part, shift) for part, shift in zip(parts, shifts, strict=True)]
    sizes = [(len(p.vid), len(p.requests), len(p.lines), len(t)) for p, t in zip(parts, texts, strict=True)]
    data, out = empty(*(sum(column) for column in zip(*sizes, strict=True)))
    # One compiled call for each different part would be too many: a large L is thousands of small parts. So
    # the different ones lie in one place, and compiled code goes through all copies.
    different = list({id(part): part for part in parts}.values())
    index = {id(part): i for i, part in enumerate(different)}
    order = np.array([index[id(part)] for part in parts], np.int64)
    joined = (np.concatenate(columns) for columns in zip(*(p.columns for p in different), strict=True))
    base = cast("Columns", tuple(joined))
    row_ends = np.cumsum([0, *(len(part.vid) for part in different)])
    request_ends = np.cumsum([0, *(len(part.requests) for part in different)])
    offsets = np.array(shifts, np.int64).reshape(len(parts), 3)
    # An expressway has 16 bits here. A shift beyond them would wrap around to another road.
    if len(parts) and int(offsets[:, 2].max()) + int(base[3].max(initial=0)) > _MOST_XWAY:
        raise InputError(f"packed rows hold expressways up to {_MOST_XWAY}", hint="deliver so many as text")
    _copy(order, offsets, (row_ends, request_ends), base, out.columns)
    _join_text(parts, texts, out)
    return data, out.rows


def _shifted_text(part: PackedRows, shift: tuple[int, int, int]) -> Bytes:
    return csv_rows.shift(part.text, len(part.lines), *shift) if len(part.lines) and any(shift) else part.text


def _join_text(parts: Sequence[PackedRows], texts: Sequence[Bytes], out: PackedRows) -> None:
    """Put the lines of text at their places: a line's number counts all rows of the parts before it."""
    row = line = at = 0
    for part, text in zip(parts, texts, strict=True):
        if len(part.lines):
            out.lines[line : line + len(part.lines)] = part.lines + row
            out.text[at : at + len(text)] = text
        row, line, at = row + part.rows, line + len(part.lines), at + len(text)


@njit(cache=True, nogil=True)
def _find_usual(values: Int32s, whole: Bools, starts: Int64s, second: int, usual: Bools) -> None:
    """Which rows can be packed: those whose numbers fit, written out, give the same bytes again."""
    for i in range(len(whole)):
        row = values[i]
        # Packed rows carry no Time: the second of their file stands for it.
        fits = whole[i] and row[TIME_FIELD] == second
        length = 0
        for field in range(FIELDS):
            number = np.int64(row[field])
            # A number beyond 32 bits was read as this one; only its text still tells what it was.
            fits = fits and number != TOO_LARGE
            length += 2 if number >= 0 else 3
            number = abs(number) // 10
            while number > 0:
                length += 1
                number //= 10
        # No other spelling of the same numbers is as short.
        fits = fits and length == starts[i + 1] - starts[i]
        for field in (TYPE_FIELD, LANE_FIELD, DIR_FIELD, SEG_FIELD):
            fits = fits and -128 <= row[field] <= 127
        for field in (XWAY_FIELD, SPD_FIELD):
            fits = fits and -32768 <= row[field] <= 32767
        # A packed report has no fields from QID on, so they must be what unused fields are.
        if fits and row[TYPE_FIELD] == POSITION_REPORT:
            for field in range(QID_FIELD, FIELDS):
                fits = fits and row[field] == -1
        usual[i] = fits


@njit(cache=True, nogil=True)
def _fill(values: Int32s, columns: Columns) -> None:
    vid, pos, requests, xway, spd, kind, lane, way, seg = columns
    asked = 0
    for i in range(len(values)):
        vid[i], pos[i] = values[i, VID_FIELD], values[i, POS_FIELD]
        xway[i], spd[i] = values[i, XWAY_FIELD], values[i, SPD_FIELD]
        kind[i], lane[i] = values[i, TYPE_FIELD], values[i, LANE_FIELD]
        way[i], seg[i] = values[i, DIR_FIELD], values[i, SEG_FIELD]
        if kind[i] != POSITION_REPORT:
            for f in range(_REQUEST_FIELDS):
                requests[asked, f] = values[i, QID_FIELD + f]
            asked += 1


@njit(cache=True, nogil=True)
def _copy(order: Int64s, offsets: Int64s, ends: tuple[Int64s, Int64s], base: Columns, out: Columns) -> None:
    """Append shifted copies of the different parts; negative numbers are unused fields and stay."""
    vid0, pos0, requests0, xway0, spd0, kind0, lane0, way0, seg0 = base
    vid, pos, requests, xway, spd, kind, lane, way, seg = out
    row_ends, request_ends = ends
    at = asked = 0
    for k in range(len(order)):
        part = order[k]
        first, last = row_ends[part], row_ends[part + 1]
        end = at + last - first
        # A copy is the same traffic on other expressways: only numbers of vehicles, roads and queries shift.
        pos[at:end], spd[at:end] = pos0[first:last], spd0[first:last]
        kind[at:end], lane[at:end] = kind0[first:last], lane0[first:last]
        way[at:end], seg[at:end] = way0[first:last], seg0[first:last]
        for i in range(last - first):
            number, road = vid0[first + i], xway0[first + i]
            vid[at + i] = number + offsets[k, 0] if number >= 0 else number
            xway[at + i] = road + offsets[k, 2] if road >= 0 else road
        at = end
        for i in range(request_ends[part], request_ends[part + 1]):
            requests[asked] = requests0[i]
            if requests0[i, 0] >= 0:
                requests[asked, 0] = requests0[i, 0] + offsets[k, 1]
            asked += 1
