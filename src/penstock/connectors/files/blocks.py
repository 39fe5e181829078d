"""Text in blocks: the fast path parses a whole block, the slow path parses line by line.

A block with any error takes the slow path. So good rows next to a bad one are kept, and the bad one is
refused with its text and the reason. Whatever a line holds, the others come through: lines that are too long
are not parsed at all, and a block on which a parser fails is halved until the failing line is alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.connectors.contract import Decoded
from penstock.connectors.tables import joined, raw_start, refused_rows
from penstock.model.formats.description import Options

QUICK_ROWS = 4096
MAX_LINE = 1 << 20
"""A longer line is refused unread, unless the source says otherwise (`max_line`)."""
BlockDecoder = Callable[[bytes, int], Decoded | None]
"""Bytes and the place of the first line; None if any row is doubtful."""
LinesDecoder = Callable[[list[bytes], int], Decoded]


def longest_line(options: Options) -> int:
    """The number of bytes that a line of the source may have."""
    return int(dict(options).get("max_line", MAX_LINE))


def decode_blocks(
    data: bytes, first: int, quick: BlockDecoder, slow: LinesDecoder, max_line: int = MAX_LINE
) -> Decoded:
    """Parse everything at once if every row is sound, else block by block, else line by line."""
    fits = not has_long_line(data, max_line)
    whole = _attempt(quick, data, first) if fits else None
    if whole is not None:
        return whole
    lines = data.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    if fits:
        return _joined(slow([], first), _in_blocks(lines, first, quick, slow))
    return _joined(slow([], first), _without_long(lines, first, quick, slow, max_line))


def has_long_line(data: bytes, limit: int) -> bool:
    r"""Whether a line has more than `limit` bytes.

    >>> has_long_line(b"12345\n1234\n", 4), has_long_line(b"1234\n\n1234", 4)
    (True, False)
    """
    if len(data) <= limit:
        return False
    # A long line covers one of these pieces completely. In most texts each piece has a line end soon.
    half = max(1, limit // 2)
    pieces = range(0, len(data) - half + 1, half)
    if all(data.find(b"\n", at, at + half) >= 0 for at in pieces):
        return False
    return max(map(len, data.split(b"\n"))) > limit


def _attempt(quick: BlockDecoder, data: bytes, first: int) -> Decoded | None:
    try:
        return quick(data, first)
    except Exception:
        return None  # the slow path finds the line


def _in_blocks(lines: list[bytes], first: int, quick: BlockDecoder, slow: LinesDecoder) -> Iterator[Decoded]:
    for at in range(0, len(lines), QUICK_ROWS):
        block = lines[at : at + QUICK_ROWS]
        decoded = _attempt(quick, b"\n".join(block) + b"\n", first + at)
        yield from [decoded] if decoded is not None else _halved(block, first + at, slow)


def _halved(lines: list[bytes], first: int, slow: LinesDecoder) -> Iterator[Decoded]:
    """Parse line by line; where the parser itself fails, find the line that it fails on."""
    try:
        yield slow(lines, first)
    except Exception as error:
        if len(lines) > 1:
            middle = len(lines) // 2
            yield from _halved(lines[:middle], first, slow)
            yield from _halved(lines[middle:], first + middle, slow)
        else:
            reason = f"malformed: {type(error).__name__}: {str(error)[:300]}"
            yield Decoded(slow([], first).tuples, refused_rows([(raw_start(lines[0]), reason, first)]))


def _without_long(
    lines: list[bytes], first: int, quick: BlockDecoder, slow: LinesDecoder, limit: int
) -> Iterator[Decoded]:
    begin = 0
    for at in [i for i, line in enumerate(lines) if len(line) > limit]:
        yield from _in_blocks(lines[begin:at], first + begin, quick, slow)
        reason = f"malformed: a line of {len(lines[at]):,} bytes, more than max_line={limit}"
        letter = (raw_start(lines[at]), reason, first + at)
        yield Decoded(slow([], first).tuples, refused_rows([letter]))
        begin = at + 1
    yield from _in_blocks(lines[begin:], first + begin, quick, slow)


def _joined(empty: Decoded, parts: Iterator[Decoded]) -> Decoded:
    return joined([empty, *parts])
