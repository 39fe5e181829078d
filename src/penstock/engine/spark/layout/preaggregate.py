"""Native time windows: Spark makes partial aggregates by pane and key, the stage merges them into its state.

Only one row for each pane and key crosses the shuffle and into Python. The columns are those of
`engine/arrow/columns/aggregates.py`. Boxes whose arguments may fail or need order or distinct values take the
tuples themselves instead; in a train that may bring late tuples, any box does (`Ticket.late_at`).
"""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.engine.arrow.boxes.window_rows import WINDOW, Shaper
from penstock.engine.arrow.columns.aggregates import Slot
from penstock.engine.arrow.order import INPUT
from penstock.engine.arrow.window_spans import Spans
from penstock.engine.spark.layout.expressions import fits_spark, to_spark
from penstock.engine.spark.layout.plan import FED, Layout, StageInput
from penstock.model.boxes import Windowed
from penstock.model.durations import Time
from penstock.model.expressions.expression import columns_of
from penstock.model.types import SEQ, STAMP, Schema
from penstock.model.writing.network import Network

_NATIVE = {"count", "sum", "avg", "min", "max"}
_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")


def may_preaggregate(net: Network, layout: Layout, entry: StageInput) -> bool:
    """Whether a native frame feeds a time window whose partial aggregates Spark can compute."""
    node = net.nodes[entry.head]
    if (
        not isinstance(node, Windowed)
        or not isinstance(node.size, Time)
        or node.function is not None
        or len(node.inputs) > 1
    ):
        return False
    if entry.tail in layout.home:
        return False
    return all(_slot_is_native(slot, net, entry) for slot in _shaper(net, entry).slots)


def _slot_is_native(slot: Slot, net: Network, entry: StageInput) -> bool:
    if slot.call.function in ("window_start", "window_end"):
        return True
    if slot.call.function not in _NATIVE:
        return False
    # Sums of doubles in Spark's order would differ from run to run.
    if slot.call.function in ("sum", "avg") and slot.argument not in _WHOLE:
        return False
    if slot.call.function in ("min", "max") and slot.argument in ("FLOAT", "DOUBLE"):
        return False
    text, schema = slot.call.argument, net.types[entry.tail].schema
    return text is None or (fits_spark(text, schema) and to_spark(text, schema).failure is None)


class _ByIdentity:
    """A network as a key: networks are not hashable."""

    def __init__(self, value: Network) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and other.value is self.value


@lru_cache(maxsize=256)
def _shaper_of(net: _ByIdentity, head: str) -> Shaper:
    node = net.value.nodes[head]
    assert isinstance(node, Windowed)
    return Shaper(node, net.value.input_types(head), net.value.types[head])


def _shaper(net: Network, entry: StageInput) -> Shaper:
    return _shaper_of(_ByIdentity(net), entry.head)


def partial_schema(net: Network, entry: StageInput) -> pa.Schema:
    """The Arrow schema of the partials that reach the stage, with the number of tuples in each."""
    return _shaper(net, entry).partial_schema.append(pa.field(FED, pa.int64()))


def columns_read(net: Network, entry: StageInput) -> set[str]:
    """The columns from which the partial aggregates are made."""
    shaper, schema = _shaper(net, entry), net.types[entry.tail].schema
    texts = [slot.call.argument for slot in shaper.slots if slot.call.argument is not None]
    used = {name for text in texts for name in columns_of(text)}
    return {name for name in (*shaper.keys, *used) if name in schema}


def preaggregated(frame: DataFrame, net: Network, entry: StageInput) -> DataFrame:
    """One row for each pane and key of the train. Spark may give several; the stage merges them."""
    node, shaper = net.nodes[entry.head], _shaper(net, entry)
    assert isinstance(node, Windowed)
    width = Spans.of(node).width
    schema = net.types[entry.tail].schema
    keys = [f"`{k}`" for k in shaper.keys]
    window = f"({STAMP} - pmod({STAMP}, {width})) DIV {width} AS {WINDOW}"  # floor, also before 1970
    # Plain numbers only: for an aggregate of a struct Spark would sort all tuples instead of hashing them.
    columns = [
        f"{'min' if node.stamp == 'earliest' else 'max'}({STAMP}) AS {STAMP}",
        f"CAST(0 AS INT) AS {INPUT}",
        f"min({SEQ}) AS {SEQ}",
        *(text for slot in shaper.slots for text in _partials(slot, schema)),
        f"count(1) AS {FED}",
    ]
    return frame.groupBy(F.expr(window), *keys).agg(*map(F.expr, columns))


def _partials(slot: Slot, schema: Schema) -> list[str]:
    name = slot.name
    if slot.call.function in ("window_start", "window_end"):
        return []
    value = to_spark(slot.call.argument, schema).value if slot.call.argument is not None else "1"
    if slot.call.function == "count":
        return [f"count({value}) AS {name}"]
    if slot.call.function in ("sum", "avg"):
        wide = f"CAST({value} AS BIGINT)"
        if slot.argument != "BIGINT":
            whole = f"coalesce(sum({wide}), 0L)"  # no train is large enough to overflow this
            return [
                f"shiftright({whole}, 32) AS {name}",
                f"{whole} & {0xFFFFFFFF}L AS {name}_low",
                f"count({value}) AS {name}_n",
            ]
        # In two halves: a sum of 64-bit numbers may overflow where the mean does not.
        return [
            f"coalesce(sum(shiftright({wide}, 32)), 0L) AS {name}",
            f"coalesce(sum({wide} & {0xFFFFFFFF}L), 0L) AS {name}_low",
            f"count({value}) AS {name}_n",
        ]
    return [f"{slot.call.function}({value}) AS {name}"]
