"""Time windows natively: Spark makes partial aggregates by pane and key, the stage merges them into its state.

Only a row for each pane and key crosses the shuffle and into Python. The columns are those of `engine/arrow/aggregates.py`.
Boxes whose arguments may fail, need order or distinct values take the tuples themselves instead.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.engine.arrow.aggregates import Slot
from penstock.engine.arrow.order import INPUT
from penstock.engine.arrow.shape import WINDOW, Shaper
from penstock.engine.arrow.spans import Spans
from penstock.engine.spark.expressions import to_spark
from penstock.engine.spark.plan import Entry, Layout
from penstock.engine.spark.watch import Watch
from penstock.model.boxes import Slide, Tumble
from penstock.model.durations import Time
from penstock.model.network import Network
from penstock.model.types import SEQ, STAMP

_NATIVE = {"count", "sum", "avg", "min", "max"}
_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")


def may_preaggregate(net: Network, layout: Layout, entry: Entry) -> bool:
    """True if a native frame feeds a time window whose aggregates Spark can make partials of."""
    node = net.nodes[entry.head]
    if (
        not isinstance(node, Tumble | Slide)
        or not isinstance(node.size, Time)
        or node.function is not None
        or len(node.inputs) > 1
    ):
        return False
    if entry.tail in layout.home:
        return False
    return all(_slot_is_native(slot, net, entry) for slot in _shaper(net, entry).slots)


def _slot_is_native(slot: Slot, net: Network, entry: Entry) -> bool:
    if slot.call.function in ("window_start", "window_end"):
        return True
    if slot.call.function not in _NATIVE:
        return False
    # sums of doubles in Spark's order would differ from run to run
    if slot.call.function in ("sum", "avg") and slot.argument not in _WHOLE:
        return False
    if slot.call.function in ("min", "max") and slot.argument in ("FLOAT", "DOUBLE"):
        return False
    return (
        slot.call.argument is None
        or to_spark(slot.call.argument, net.types[entry.tail].schema).failure is None
    )


@lru_cache(maxsize=256)
def _shaper_of(net_id: int, head: str, net: Any) -> Shaper:  # noqa: ARG001 - the id makes the key, networks are not hashable
    return Shaper(net.value.nodes[head], net.value.input_types(head), net.value.types[head])


class _ByIdentity:
    def __init__(self, value: Network) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and other.value is self.value


def _shaper(net: Network, entry: Entry) -> Shaper:
    return _shaper_of(id(net), entry.head, _ByIdentity(net))


def partial_schema(net: Network, entry: Entry) -> Any:
    """The Arrow schema in which partials reach the stage."""
    return _shaper(net, entry).partial_schema


def preaggregated(frame: DataFrame, net: Network, entry: Entry, watch: Watch) -> DataFrame:
    """One row for each pane and key of the train (a few, as Spark pleases: the stage merges them)."""
    node, shaper = net.nodes[entry.head], _shaper(net, entry)
    assert isinstance(node, Tumble | Slide)
    width = Spans.of(node).width
    window = F.expr(f"({STAMP} - pmod({STAMP}, {width})) DIV {width}")  # floor, also before 1970
    schema = net.types[entry.tail].schema
    # latest: the largest _ts, but the smallest _seq among its equals
    time = F.col(STAMP) if node.stamp == "earliest" else -F.col(STAMP)
    columns = [
        F.min(F.struct(time.alias(STAMP), F.col(SEQ))).alias("_stamp"),
        F.count(F.lit(1)).alias("_fed"),
    ]
    for slot in shaper.slots:
        columns += _partials(slot, schema)
    grouped = frame.groupBy(window.alias(WINDOW), *[F.col(f"`{k}`") for k in shaper.keys]).agg(*columns)
    # counted behind the aggregation, where there are few rows: selectivity needs the tuples, not the partials
    grouped = watch.on(grouped, f"{entry.head}#fed", rows="sum(_fed)")
    ts = F.col(f"_stamp.{STAMP}") if node.stamp == "earliest" else -F.col(f"_stamp.{STAMP}")
    hidden = [ts.alias(STAMP), F.lit(0).alias(INPUT), F.col(f"_stamp.{SEQ}").alias(SEQ)]
    names = [n for n in shaper.partial_schema.names if n not in (WINDOW, *shaper.keys, STAMP, INPUT, SEQ)]
    return grouped.select(WINDOW, *[F.col(f"`{k}`") for k in shaper.keys], *hidden, *names)


def _partials(slot: Slot, schema: Any) -> list[Any]:
    name = slot.name
    if slot.call.function in ("window_start", "window_end"):
        return []
    value = F.expr(to_spark(slot.call.argument, schema).value) if slot.call.argument is not None else F.lit(1)
    if slot.call.function == "count":
        return [F.count(value).alias(name)]
    if slot.call.function in ("sum", "avg"):
        wide = value.cast("bigint")
        zero = F.lit(0).cast("bigint")
        high, low = F.shiftright(wide, 32), wide.bitwiseAND(F.lit(0xFFFFFFFF).cast("bigint"))
        return [
            F.coalesce(F.sum(high), zero).alias(name),
            F.coalesce(F.sum(low), zero).alias(f"{name}_low"),
            F.count(value).alias(f"{name}_n"),
        ]
    return [(F.min if slot.call.function == "min" else F.max)(value).alias(name)]
