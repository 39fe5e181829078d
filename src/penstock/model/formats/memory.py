"""A list in this process as a sink."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from penstock.model.formats.description import NOT_IN_YAML, SinkFormat


@dataclass(frozen=True, eq=False)
class Memory(SinkFormat):
    """Keeps what it gets in a list in this process: for tests and notebooks."""

    name: ClassVar[str] = "memory"
    sink: ClassVar[str] = "penstock.connectors.memory:MemorySink"
    in_process: ClassVar[bool] = True

    rows: list[dict[str, Any]] = field(default_factory=list, metadata=NOT_IN_YAML)

    def identity(self) -> object:
        return Memory


def memory() -> Memory:
    """A list in this process."""
    return Memory()
