"""Text in blocks: the fast path parses a whole block, the slow path parses line by line.

A block with any error takes the slow path. So good rows next to a bad one are kept, and the bad one is
refused with its text and the reason.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from penstock.connectors.contract import Decoded

QUICK_ROWS = 4096
BlockDecoder = Callable[[bytes, int], Decoded | None]
"""Bytes and the place of the first line; None if any row is doubtful."""
LinesDecoder = Callable[[list[bytes], int], Decoded]


def decode_blocks(data: bytes, first: int, quick: BlockDecoder, slow: LinesDecoder) -> Decoded:
    """Parse everything at once if every row is sound, else block by block, else line by line."""
    whole = quick(data, first)
    if whole is not None:
        return whole
    lines = data.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    parts = [slow([], first)]
    for at in range(0, len(lines), QUICK_ROWS):
        block = lines[at : at + QUICK_ROWS]
        decoded = quick(b"\n".join(block) + b"\n", first + at)
        parts.append(decoded if decoded is not None else slow(block, first + at))
    return Decoded(
        pa.concat_tables([part.tuples for part in parts]), pa.concat_tables([part.refused for part in parts])
    )
