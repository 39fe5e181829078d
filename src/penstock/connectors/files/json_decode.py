"""JSON lines into columns."""

from __future__ import annotations

from penstock.connectors.contract import Decoded
from penstock.connectors.files.blocks import QUICK_ROWS, decode_blocks, longest_line
from penstock.connectors.lines import decode_lines, json_object_reader
from penstock.model.formats.description import Options
from penstock.model.formats.time_patterns import time_pattern
from penstock.model.types import Schema


def decode_json(schema: Schema, options: Options, data: bytes, first: int) -> Decoded:
    """Decode the rows of whole lines; `first` is the number of the first one."""
    pattern = dict(options).get("timestampFormat")
    read = json_object_reader(schema, None if pattern is None else time_pattern(pattern))

    def slow(lines: list[bytes], number: int) -> Decoded:
        return decode_lines(schema, lines, number, read)

    def quick(block: bytes, number: int) -> Decoded | None:
        # Only the row parser treats missing and ill-typed members as Spark does.
        few = block.count(b"\n") <= QUICK_ROWS
        return slow(block.removesuffix(b"\n").split(b"\n"), number) if few else None

    return decode_blocks(data, first, quick, slow, longest_line(options))
