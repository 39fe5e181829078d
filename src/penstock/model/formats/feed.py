"""A feed: a directory whose writer lists its deliveries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from penstock.model.formats.description import ShedBy, SourceFormat, checked_path
from penstock.model.types import Schema, parse_schema
from penstock.model.user_functions import Function, function_of

LISTING = "_delivered.jsonl"
TIME_BITS, GROUP_BITS = 40, 28
"""The `_seq` of a feed's tuple holds the time of its delivery, its group and its line."""


@dataclass(frozen=True)
class Feed(SourceFormat):
    """A directory whose writer keeps a list, `_delivered.jsonl`.

    Each line tells of one delivery, which is never split. A line is `{"at": 75, "files": [["t75-g0.csv", 0,
    bytes, rows], ...]}`: the time in whole seconds, above that of the line before, and the files with their
    groups. All tuples of a key (`keys`) are always in files of one group, so a group has a partition of its
    own and nothing is shuffled. `decode(chunk, at)` makes columns of a file's bytes in the task that needs
    them. It returns `(columns, lines, reasons)`: row `lines[i]` (from 0) was refused for `reasons[i]`. If a
    file is no text, a fourth part is the text of each refused row; None: it stands in the file.
    """

    name: ClassVar[str] = "feed"
    input: ClassVar[str] = "penstock.connectors.feed:FeedInput"
    in_order: ClassVar[bool] = True
    stays: ClassVar[bool] = True
    # A slice is the file of one group in one delivery.
    shed_by: ClassVar[ShedBy] = "slices"
    slice_bits: ClassVar[int] = GROUP_BITS

    path: str
    schema: Schema
    decode: Function
    keys: tuple[str, ...] = ()

    @property
    def partitioned_by(self) -> tuple[str, ...] | None:
        return self.keys

    def text(self) -> str:
        return f"feed {self.path}, decoded by {self.decode.name}"


def feed(
    path: str, schema: str | Schema, *, decode: Callable[..., object] | str, keys: str | Iterable[str] = ()
) -> Feed:
    """A directory with a list of deliveries, partitioned by its writer, decoded by a function: see `Feed`."""
    parsed = parse_schema(schema)
    chosen = (keys,) if isinstance(keys, str) else tuple(keys)
    for key in chosen:
        parsed.type_of(key)
    return Feed(checked_path(str(path)), parsed, function_of(decode), chosen)


def place_of(offset: int) -> tuple[int, int, int]:
    """(time of the delivery, group, line from 0) of a dead letter's offset.

    >>> place_of((7 << 40) + (2 << 28) + 5)
    (7, 2, 5)
    """
    group, line = divmod(offset & ((1 << TIME_BITS) - 1), 1 << GROUP_BITS)
    return offset >> TIME_BITS, group, line
