"""Tables that connectors return: tuples with their place in arrival order, and refused rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from penstock.connectors.contract import Decoded, Location
from penstock.connectors.paths import shown_path
from penstock.model.types import SEQ

Refusal = tuple[str, str, int]
"""The text of a row, why it was refused, and its place in arrival order."""

REFUSED = pa.schema(
    [("raw", pa.string()), ("reason", pa.string()), ("offset", pa.int64()), ("tuples", pa.int64())]
)
NOTHING_REFUSED = REFUSED.empty_table()
SEQ_BITS = 40
"""A file, or a partition of a topic, may hold 2**40 rows: `_seq` is its number and the row's place in it."""


RAW_LIMIT = 4096
"""A dead letter shows at most so many characters of its line."""


def raw_start(line: bytes | str) -> str:
    """The text of a line for its dead letter: the beginning, and how much was left out.

    >>> raw_start(b"a" * 5000)[4090:]
    'aaaaaa... (904 more)'
    """
    text = line if isinstance(line, str) else line[: 4 * RAW_LIMIT].decode("utf-8", "replace")
    if len(line) <= RAW_LIMIT:
        return text
    return f"{text[:RAW_LIMIT]}... ({len(line) - RAW_LIMIT} more)"


def first_seq(number: int, row: int = 0) -> int:
    """The `_seq` of a row of a numbered file."""
    return (number << SEQ_BITS) + row


def location_in(path: str, number: int, seq: int) -> Location | None:
    """The line of a numbered file to which a `_seq` belongs.

    >>> location_in("cars.csv", 2, first_seq(2, 6))
    Location(file='cars.csv', line=7)
    """
    return Location(shown_path(path), seq - first_seq(number) + 1) if seq >> SEQ_BITS == number else None


def with_seq(table: pa.Table, places: np.ndarray) -> pa.Table:
    """The table with `_seq` after its columns."""
    return table.append_column(SEQ, pa.array(places, pa.int64()))


def counted_from(table: pa.Table, first: int) -> Decoded:
    """Tuples that are all valid, numbered from `first`."""
    return Decoded(with_seq(table, np.arange(first, first + table.num_rows)), NOTHING_REFUSED)


def joined(pieces: Sequence[Decoded]) -> Decoded:
    """Several pieces as one."""
    return Decoded(
        pa.concat_tables([piece.tuples for piece in pieces]),
        pa.concat_tables([piece.refused for piece in pieces]),
    )


def refused_rows(refusals: Iterable[Refusal], tuples: int = 1) -> pa.Table:
    """Refused rows as a table; `tuples`: how many each stands for."""
    columns = list(zip(*((*refusal, tuples) for refusal in refusals), strict=True)) or [()] * len(REFUSED)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, REFUSED, strict=True)]
    return pa.Table.from_arrays(arrays, schema=REFUSED)
