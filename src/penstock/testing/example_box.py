"""A box of one's own, whole: the example of docs/contributing.md, which tests run on both engines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.arrow import logic as arrow
from penstock.engine.arrow.state import Parts
from penstock.engine.local import box_logics as local
from penstock.engine.local.rows import Answer, Row
from penstock.model.boxes import Keys, Node, Trait
from penstock.model.checks.signatures import need_columns
from penstock.model.checks.stream_types import RULES, Inputs
from penstock.model.error_location import node_error
from penstock.model.errors import caller
from penstock.model.types import INTEGRAL, StreamType
from penstock.model.writing.box_builder import BoxBuilder
from penstock.model.writing.stream import Stream


@dataclass(frozen=True, kw_only=True)
class Clip(Node):
    """Brings the whole numbers of a column into the range from `low` to `high`; null stays null."""

    kind: ClassVar[str] = "clip"
    traits: ClassVar[Trait] = Trait.STATELESS | Trait.SHEDDABLE

    column: str = ""
    low: int = 0
    high: int = 0

    def carries(self, keys: Keys) -> bool:
        """Its own column leaves with other values."""
        return self.column not in keys


def clip_type(node: Clip, inputs: Inputs) -> StreamType:
    """What leaves is what enters; the column must be there, be whole, and be no key."""
    need_columns(node, "column", [node.column], inputs[0].schema)
    type_ = inputs[0].schema.type_of(node.column)
    if type_ not in INTEGRAL or node.column in inputs[0].keys:
        raise node_error(
            node, f"'{node.column}' cannot be clipped", found=type_, expected="a whole number, no key"
        )
    return inputs[0]


RULES[Clip] = clip_type


class ClipRows:
    """The reference: tuples are dicts, one after the other."""

    def __init__(self, node: Clip, _inputs: list[StreamType], _output: StreamType) -> None:
        self.node = node

    def process(self, inputs: list[list[Row]], horizons: tuple[int, ...], *, final: bool) -> Answer:
        """Take one train."""
        del horizons, final
        return Answer([{**row, self.node.column: self._clipped(row)} for row in inputs[0]])

    def _clipped(self, row: Row) -> int | None:
        value: int | None = row[self.node.column]
        return None if value is None else min(max(value, self.node.low), self.node.high)


local.LOGICS["clip"] = ClipRows


class ClipColumns(Parts):
    """The same on Arrow tables, for the Spark engine; without state there are no parts to carry."""

    def __init__(self, node: Clip, _inputs: list[StreamType], _output: StreamType) -> None:
        super().__init__()
        self.node = node

    def process(self, inputs: list[pa.Table], horizons: tuple[int, ...], *, final: bool) -> arrow.Answer:
        """Take one train."""
        del horizons, final
        index = inputs[0].schema.get_field_index(self.node.column)
        column = inputs[0].column(index)
        low, high = (pa.scalar(bound, column.type) for bound in (self.node.low, self.node.high))
        raised = pc.max_element_wise(column, low, skip_nulls=False)
        clipped = pc.min_element_wise(raised, high, skip_nulls=False)
        out = inputs[0].set_column(index, inputs[0].schema.field(index), clipped)
        return arrow.Answer(out, arrow.DEAD_SCHEMA.empty_table())


arrow.LOGICS["clip"] = "penstock.testing.example_box:ClipColumns"


def clip(stream: Stream, column: str, low: int, high: int, name: str | None = None) -> Stream:
    """Write the box into the stream's network."""
    net = stream.network
    builder = BoxBuilder(net, Clip, name or net.free_name("clip"), caller())
    return builder.add([stream], column=column, low=low, high=high)
