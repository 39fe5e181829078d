"""The arrow that leaves a node: where the fluent API goes on from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.model.boxes import Node
from penstock.model.errors import NetworkError, caller, shown
from penstock.model.types import Schema, StreamType

if TYPE_CHECKING:
    from typing import Self

    from penstock.model.writing.network import Network
    from penstock.model.writing.stream import Stream


class OutgoingArrow:
    """The arrow that leaves a node. Several boxes may read from it: there is no Split box (A20)."""

    def __init__(self, network: Network, name: str) -> None:
        self.network, self.name = network, name

    @property
    def type(self) -> StreamType:
        """What flows here: columns, timestamp, grouping."""
        return self.network.types[self.name]

    @property
    def schema(self) -> Schema:
        """The visible columns."""
        return self.type.schema

    @property
    def node(self) -> Node:
        """The node that this arrow leaves."""
        return self.network.nodes[self.name]

    def named(self, name: str) -> Self:
        """Give the node just written a name of its own."""
        self.network.rename(self.name, name)
        self.name = name
        return self

    def about(self, *, tag: str = "", description: str = "", manual: str = "") -> Self:
        """Tell people about this node (A34): a tag, one line, a manual page."""
        self.network.describe(self.name, tag=tag, description=description, manual=manual)
        return self

    def shed(self, by: str) -> Self:
        """By which grain tuples may be shed in front of this box: tuples, windows, keys or never (A84)."""
        self.network.shed(self.name, by)
        return self

    def __repr__(self) -> str:
        grouped = f" by {', '.join(self.type.keys)}" if self.type.keys else ""
        return f"Stream({self.name}: {self.schema.ddl()}{grouped})"


def first_of(streams: Sequence[Stream], kind: str, hint: str) -> Stream:
    """The stream in whose network a box of several streams is written; there must be one."""
    if not streams:
        raise NetworkError(f"{kind} of no stream", where=caller(), expected="one stream or more", hint=hint)
    if not isinstance(streams[0], OutgoingArrow):
        raise NetworkError(
            f"{kind} of something that is not a stream",
            where=caller(),
            found=shown(streams[0]),
            expected="what a source or a box returned",
            hint=hint,
        )
    return streams[0]
