"""A made-up stream, for trials and benchmarks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from penstock.model.formats.description import NOT_IN_YAML, SourceFormat
from penstock.model.formats.numbers import whole_number
from penstock.model.types import Schema

_SCHEMA = Schema.of([("timestamp", "TIMESTAMP"), ("value", "BIGINT")])


@dataclass(frozen=True)
class Rate(SourceFormat):
    """A made-up stream: `value` counts up from 0 at so many rows a second."""

    name: ClassVar[str] = "rate"
    input: ClassVar[str] = "penstock.connectors.rate:RateInput"
    stays: ClassVar[bool] = True

    rows_per_second: int = 10
    schema: Schema = field(default=_SCHEMA, metadata=NOT_IN_YAML)

    def __post_init__(self) -> None:
        whole_number("rows a second", self.rows_per_second)

    def text(self) -> str:
        return f"rate {self.rows_per_second}/s"


def rate(rows_per_second: int = 10) -> Rate:
    """A made-up stream (timestamp, value)."""
    return Rate(rows_per_second)
