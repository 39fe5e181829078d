"""Blocks of lines that are left out before anything is decoded.

Finding the ends of lines costs little beside decoding them. Only the last line of a block that is left out is
decoded, because its time still moves the horizon.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa

from penstock.connectors.contract import Decoded, Stays, Thinned
from penstock.connectors.lines import count_lines
from penstock.model.types import SEQ

Decode = Callable[[bytes, int], Decoded]
"""Bytes and the `_seq` of the first line -> tuples and refused lines."""
_NEWLINE, _BLANK = 10, 2  # a blank line has at most two bytes


def thin_lines(data: bytes, first: int, stays: Stays, decode: Decode, comment: bytes = b"") -> Thinned:
    """Decode only the blocks that stay. Blank lines and comments are no tuples."""
    count = partial(count_lines, comment=comment)
    bounds = _bounds(data)
    begins = _block_begins(first, len(bounds) - 1, stays.bits)
    stops = np.append(begins[1:], len(bounds) - 1)
    chosen = stays((first + begins) >> stays.bits)
    if chosen.all():
        return Thinned(decode(data, first), count(data), 0, None)
    kept = list(zip(begins[chosen].tolist(), stops[chosen].tolist(), strict=True))
    text = b"".join(data[bounds[begin] : bounds[stop]] for begin, stop in kept)
    places = np.concatenate([np.arange(0), *(np.arange(begin, stop) for begin, stop in kept)])
    decoded = _placed(decode(text, 0), places + first)
    last = decode(_last_lines(data, bounds, begins[~chosen], stops[~chosen], count), first).tuples
    # Where each line is a row, lines need not be looked at again.
    if not comment and np.diff(bounds).min(initial=_BLANK + 1) > _BLANK:
        return Thinned(decoded, len(bounds) - 1, len(bounds) - 1 - len(places), last)
    offered = count(data)
    return Thinned(decoded, offered, offered - count(text), last)


def _bounds(data: bytes) -> np.ndarray:
    """Line i is from bounds[i] up to bounds[i + 1]."""
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE) + 1
    if len(data) and (not len(ends) or ends[-1] != len(data)):
        ends = np.append(ends, len(data))
    return np.concatenate([[0], ends])


def _block_begins(first: int, lines: int, bits: int) -> np.ndarray:
    """The index of the first line of each block; the first block may have begun in an earlier slice."""
    begins = np.arange(-first % (1 << bits), lines, 1 << bits)
    return begins if len(begins) and begins[0] == 0 else np.concatenate([[0], begins])[: max(lines, 0)]


def _placed(decoded: Decoded, places: np.ndarray) -> Decoded:
    """With the places that the lines had in the whole text."""
    tuples, refused = decoded.tuples, decoded.refused
    if tuples.num_rows:
        at = tuples.schema.get_field_index(SEQ)
        seq = pa.array(places[tuples.column(SEQ).to_numpy()])
        tuples = tuples.set_column(at, tuples.schema.field(at), seq)
    if refused.num_rows:
        at = refused.schema.get_field_index("offset")
        offsets = pa.array(places[refused.column("offset").to_numpy()])
        refused = refused.set_column(at, refused.schema.field(at), offsets)
    return Decoded(tuples, refused)


def _last_lines(
    data: bytes, bounds: np.ndarray, begins: np.ndarray, stops: np.ndarray, count: Callable[[bytes], int]
) -> bytes:
    """The last row of each block that is left out."""
    lines = []
    for begin, stop in zip(begins.tolist(), stops.tolist(), strict=True):
        for at in range(stop - 1, begin - 1, -1):
            line = data[bounds[at] : bounds[at + 1]]
            if count(line):
                lines.append(line.removesuffix(b"\n"))
                break
    return b"\n".join(lines)
