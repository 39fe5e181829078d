"""The terminal as a sink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from penstock.model.formats.description import SinkFormat
from penstock.model.formats.numbers import whole_number


@dataclass(frozen=True)
class Console(SinkFormat):
    """Prints tuples as they come, at most `limit` of a train."""

    name: ClassVar[str] = "console"
    sink: ClassVar[str] = "penstock.connectors.console:ConsoleSink"

    limit: int = 20

    def __post_init__(self) -> None:
        whole_number("the limit", self.limit, least=0)

    def text(self) -> str:
        return "console"


def console(limit: int = 20) -> Console:
    """The terminal."""
    return Console(limit)
