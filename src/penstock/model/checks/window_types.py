"""What windows, Latch and Resample emit (Aurora, Sect. 2.1): keys, timestamp, then what they compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.model.boxes import ColumnLatch, Latch, Resample, Slide, Tumble, Windowed
from penstock.model.checks.signatures import (
    check_function,
    check_no_function,
    need_columns,
    same_grouping,
    same_timestamp,
    stamped,
)
from penstock.model.durations import Count, Extent, Time
from penstock.model.error_location import located, node_error
from penstock.model.errors import one_line
from penstock.model.expressions import expression as expressions
from penstock.model.types import NUMERIC, Column, Schema, StreamType

Inputs = Sequence[StreamType]
INPUT_COLUMN = Column("input", "INT")
SYNTHETIC_COLUMN = Column("synthetic", "BOOLEAN")


def tumble_type(node: Tumble, inputs: Inputs) -> StreamType:
    """Keys, timestamp, aggregates (or what the function produces)."""
    return _window(node, inputs[0], inputs[0].schema)


def slide_type(node: Slide, inputs: Inputs) -> StreamType:
    """As Tumble; size and step must both be in time or both in tuples."""
    if isinstance(node.size, Time) != isinstance(node.every, Time):
        raise node_error(
            node,
            "the window and its step are measured differently",
            found=f"size {node.size}, every {node.every}",
            expected="both in time or both in tuples",
        )
    _positive(node, node.every)
    return _window(node, inputs[0], inputs[0].schema)


def _window(node: Windowed | Latch, stream: StreamType, schema: Schema) -> StreamType:
    assert node.size is not None
    stamped(node, stream)
    _positive(node, node.size)
    if node.stamp not in ("earliest", "latest"):
        raise node_error(
            node,
            "unknown stamp",
            found=f"'{node.stamp}'",
            expected="'earliest' or 'latest'",
            hint="a column called 'stamp' goes into a dict: {\"stamp\": ...}",
        )
    # Both or none of them.
    if (node.function is None) == (not node.aggregates):
        raise node_error(
            node,
            f"a {node.kind} box needs aggregates or a function",
            expected="exactly one of them",
            hint='.tumble("1 minute", speed="avg(spd)")',
        )
    if node.function is not None:
        check_function(node, node.function, schema, "table")
        columns = list(node.produces)
    else:
        check_no_function(node)
        columns = [
            Column(name, _aggregate(node, name, text, stream, schema)) for name, text in node.aggregates
        ]
    # Rows come as windows close, not in order of arrival. The grouping is used up: they are one stream again.
    all_columns = _with_keys(node, stream, schema, columns)
    return StreamType(all_columns, stream.timestamp, (), arrival_order=False, lag=_window_lag(node, stream))


def _positive(node: Windowed | Latch, extent: Extent) -> None:
    length = extent.us if isinstance(extent, Time) else extent.tuples
    if length <= 0:
        raise node_error(
            node,
            "an empty window",
            found=str(extent),
            expected="a length above 0",
            hint="'1 minute' or '100 tuples'",
        )


def _aggregate(node: Windowed | Latch, name: str, text: str, stream: StreamType, schema: Schema) -> str:
    with located(node.name, node.where, part=f"{name} = '{one_line(text, 100)}'"):
        aggregation = expressions.split_aggregates(text, schema, keys=stream.keys)
    if isinstance(node.size, Count) and any(
        call.function in ("window_start", "window_end") for call in aggregation.calls
    ):
        raise node_error(
            node,
            f"{name} = '{text}' asks for the time of a window of tuples",
            found=f"size {node.size}",
            expected="a window of time",
            hint="min(...) and max(...) of the timestamp column give its ends",
        )
    return aggregation.type


def _with_keys(node: Windowed | Latch, stream: StreamType, schema: Schema, columns: list[Column]) -> Schema:
    assert stream.timestamp is not None
    added = [Column(key, schema.type_of(key)) for key in stream.keys] + [
        Column(stream.timestamp, "TIMESTAMP")
    ]
    for column in columns:
        if column.name in {c.name for c in added}:
            raise node_error(
                node,
                f"column '{column.name}' appears twice",
                found=f"{', '.join(c.name for c in added)} are added by the box",
                hint="leave it out, or give it another name",
            )
    return Schema.of([*added, *columns])


def _window_lag(node: Windowed | Latch, stream: StreamType) -> int | None:
    assert stream.lag is not None
    if isinstance(node.size, Time):
        # The stamp of a row may be that of the window's oldest tuple.
        return stream.lag + node.size.us
    # A key that comes once an hour keeps its window of tuples open for days: its earliest stamp has no bound.
    return stream.lag if node.stamp == "latest" else None


def latch_type(node: Latch, inputs: Inputs) -> StreamType:
    """With aggregates as Tumble; with a function the columns that it says it produces."""
    for stream in inputs:
        stamped(node, stream)
    same_timestamp(node, inputs)
    same_grouping(node, inputs)
    schema = latch_schema(node, inputs)
    stream = _latest_of(inputs)
    if node.function is None:
        if node.size is None:
            raise node_error(
                node,
                "a latch with aggregates needs a window",
                expected="a size",
                hint='.latch("1 minute", best="max(price)")',
            )
        if node.state.columns:
            raise node_error(
                node,
                "a state without a function that keeps it",
                found=node.state.ddl(),
                expected="function=..., or aggregates without state",
            )
        return _window(node, stream, schema)
    return _latch_function(node, stream, schema)


def latch_schema(node: Latch, inputs: Inputs) -> Schema:
    """The batch that a latch sees: the columns of all inputs by name, null where an input lacks one.

    With several inputs there is one more column, `input`: the index of the input that a tuple came by.
    """
    columns: dict[str, Column] = {}
    for at, stream in enumerate(inputs):
        for column in stream.schema:
            # The first input that has a column says its type.
            known = columns.setdefault(column.name, column)
            if known != column:
                raise node_error(
                    node,
                    f"column '{column.name}' has another type in '{node.inputs[at]}'",
                    found=column.type,
                    expected=known.type,
                    hint=f".map({column.name}='cast({column.name} as {known.type})') makes them alike",
                )
    if len(inputs) > 1:
        if INPUT_COLUMN.name in columns:
            raise node_error(
                node,
                "a column 'input' hides the number of the input",
                hint="rename that column with .select(...)",
            )
        columns[INPUT_COLUMN.name] = INPUT_COLUMN
    return Schema.of(columns.values())


def _latest_of(inputs: Inputs) -> StreamType:
    lag = max(stream.lag or 0 for stream in inputs)
    # `_seq` counts within one source: between two streams it says nothing about who came first.
    ordered = len(inputs) == 1 and inputs[0].arrival_order
    numbered = all(stream.numbered for stream in inputs)
    return replace(inputs[0], lag=lag, arrival_order=ordered, numbered=numbered)


def _latch_function(node: Latch, stream: StreamType, schema: Schema) -> StreamType:
    if node.aggregates:
        raise node_error(
            node, "a latch has aggregates or a function, not both", expected="exactly one of them"
        )
    if node.size is not None:
        raise node_error(
            node,
            "a latch with a function has no window",
            found=f"size {node.size}",
            expected="a function alone: it sees every tuple",
            hint="leave the size out",
        )
    if node.stamp != "earliest":
        raise node_error(
            node,
            "a latch with a function has no stamp",
            found=f"'{node.stamp}'",
            expected="nothing: the function produces the timestamp column if it shall differ",
        )
    assert node.function is not None
    check_function(node, node.function, schema, "batch", "state")
    # The engine puts the keys in front of each row of state, so the function must not declare them again.
    clash = [column.name for column in node.state if column.name in stream.keys]
    if clash:
        raise node_error(
            node,
            f"the state repeats the key '{clash[0]}'",
            hint="the keys stand in front of the state by themselves",
        )
    own_stamp = stream.timestamp in node.produces
    if own_stamp and node.produces.type_of(str(stream.timestamp)) != "TIMESTAMP":
        raise node_error(
            node,
            f"it produces the timestamp column '{stream.timestamp}' as something else",
            found=node.produces.type_of(str(stream.timestamp)),
            expected="TIMESTAMP",
        )
    # Row for row with unchanged stamps, the answers come in the order of the tuples.
    return replace(
        stream,
        schema=node.produces,
        keys=(),
        arrival_order=stream.arrival_order and not own_stamp,
        shows_stamp=True,  # if it has the column at all
    )


def column_latch_type(node: ColumnLatch, inputs: Inputs) -> StreamType:
    """The columns that it says it produces; the timestamp column must be one of them."""
    for stream in inputs:
        stamped(node, stream)
    same_timestamp(node, inputs)
    same_grouping(node, inputs)
    stamp = str(inputs[0].timestamp)
    if stamp not in node.produces or node.produces.type_of(stamp) != "TIMESTAMP":
        raise node_error(
            node,
            f"it does not produce the timestamp column '{stamp}'",
            found=node.produces.ddl() or "nothing",
            expected=f"{stamp} TIMESTAMP, ...",
            hint=f"add '{stamp} TIMESTAMP' to produces",
        )
    # The logic stamps its rows itself, so their order need not be that of arrival.
    lag = max(stream.lag or 0 for stream in inputs)
    return StreamType(node.produces, stamp, (), arrival_order=False, lag=lag, numbered=False)


def resample_type(node: Resample, inputs: Inputs) -> StreamType:
    """All columns stay; the interpolated ones become DOUBLE; `synthetic` tells which tuples are made up."""
    stream = inputs[0]
    stamped(node, stream)
    for name, length in (("every", node.every), ("limit", node.limit)):
        if length <= 0:
            raise node_error(
                node, f"'{name}' is empty", found=f"{length} microseconds", expected="a length above 0"
            )
    numbers = [c.name for c in stream.schema if c.type in NUMERIC and c.name not in stream.keys]
    if not node.columns:
        raise node_error(
            node,
            "a resample without columns",
            expected="columns=[...] to interpolate",
            hint=f"numeric here: {', '.join(numbers) or 'none'}",
        )
    need_columns(node, "columns", node.columns, stream.schema)
    for name in node.columns:
        if name not in numbers:
            raise node_error(
                node,
                f"column '{name}' cannot be interpolated",
                found="a key" if name in stream.keys else stream.schema.type_of(name),
                expected="a number that is no key",
                hint=f"numeric here: {', '.join(numbers) or 'none'}",
            )
    if SYNTHETIC_COLUMN.name in stream.schema:
        raise node_error(node, "there is a column 'synthetic' already", hint="rename it with .select(...)")
    schema = stream.schema.with_columns([*(Column(n, "DOUBLE") for n in node.columns), SYNTHETIC_COLUMN])
    assert stream.lag is not None
    # A synthetic tuple is made when the next actual one comes, and is up to `limit` older than that.
    return replace(stream, schema=schema, keys=(), arrival_order=False, lag=stream.lag + node.limit)
