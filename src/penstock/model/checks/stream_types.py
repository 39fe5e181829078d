"""What leaves a box, given what enters it: the declared signatures of Aurora's operators (Sect. 3.1, A22).

Every check that needs one box and its inputs stands here, so that the fluent API refuses a wrong box on the
user's own line; checks that need the whole network stand in `rewrite.check`.

Rules that hold everywhere: a tuple keeps its timestamp (A21), so no box may overwrite the timestamp column; a
grouping holds through stateless boxes up to the box that uses it (a window, Latch or Resample) and ends
there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Never, cast

from penstock.model.boxes import (
    ColumnLatch,
    ConnectionPoint,
    Drop,
    Filter,
    GroupBy,
    Join,
    Kept,
    Latch,
    Map,
    Node,
    Output,
    Resample,
    Slide,
    Source,
    Tumble,
    Union,
    View,
)
from penstock.model.checks.arguments import check_arguments
from penstock.model.checks.joins import check_distribution
from penstock.model.checks.shedding import check_shedding
from penstock.model.checks.signatures import (
    check_function,
    check_no_function,
    check_rowwise,
    need_columns,
    no_twins,
    same_grouping,
    same_schema,
    same_timestamp,
    stamped,
    takes,
)
from penstock.model.checks.window_types import (
    column_latch_type,
    latch_type,
    resample_type,
    slide_type,
    tumble_type,
)
from penstock.model.error_location import located, node_error
from penstock.model.errors import ExpressionError, one_line
from penstock.model.expressions import expression as expressions
from penstock.model.formats.description import Format, Role
from penstock.model.qos import QoS
from penstock.model.types import NUMERIC, Column, Schema, StreamType

Inputs = Sequence[StreamType]


def output_type(node: Node, inputs: list[StreamType]) -> StreamType:
    """The type of the arrow that leaves `node`, or a NetworkError.

    >>> from penstock.model.boxes import Filter
    >>> stream = StreamType(Schema.parse("time TIMESTAMP, spd INT"), timestamp="time")
    >>> output_type(Filter(name="slow", inputs=("s",), predicate="spd < 40"), [stream]) == stream
    True
    """
    low, high = _INPUTS.get(type(node), (1, 1))
    if not low <= len(inputs) <= high:
        wanted = {(0, 0): "none", (1, 1): "one", (2, 2): "two"}.get((low, high), f"{low} or more")
        raise node_error(
            node, f"a wrong number of inputs for {node.kind}", found=str(len(inputs)), expected=wanted
        )
    with located(node.name, node.where):
        check_arguments(node)
        check_shedding(node)
        rule = cast("Callable[[Node, Inputs], StreamType]", RULES[type(node)])
        result = rule(node, inputs)
    # Here, and not in each rule: whatever a box does, its columns must have different names on Spark.
    no_twins(node, result.schema)
    return result


def _source(node: Source, _inputs: Inputs) -> StreamType:
    _check_format(node, node.format, "source")
    for name, length in (("lateness", node.lateness), ("idle", node.idle)):
        if length is not None and length < 0:
            raise node_error(
                node, f"{name} is negative", found=f"{length} microseconds", expected="0 or more"
            )
    if node.timestamp is None:
        return StreamType(node.schema)
    with located(node.name, node.where, part="timestamp"):
        type_ = node.schema.type_of(node.timestamp)
    if type_ != "TIMESTAMP":
        raise node_error(
            node,
            f"the timestamp column '{node.timestamp}' is not a time",
            found=type_,
            expected="TIMESTAMP",
            hint=f"write '{node.timestamp} TIMESTAMP' in the schema",
        )
    return StreamType(node.schema, node.timestamp)


def _check_format(node: Node, format_: Format, role: Role) -> None:
    with located(node.name, node.where, part=format_.name):
        format_.check(role)


def _filter(node: Filter, inputs: Inputs) -> StreamType:
    schema = inputs[0].schema
    need_columns(node, "reads", node.reads, schema)
    check_rowwise(node)
    if (node.function is None) == (not node.predicate):
        raise node_error(
            node,
            "a filter needs a predicate or a function",
            expected="exactly one of them",
            hint='.filter("spd < 40")',
        )
    if node.function is not None:
        takes(node, node.function, "batch")
    else:
        check_no_function(node)
        _predicate(node, node.predicate, schema)
    return inputs[0]


def _predicate(node: Node, text: str, schema: Schema) -> None:
    with located(node.name, node.where, part=f"predicate '{one_line(text, 100)}'"):
        type_ = expressions.infer(text, schema)
    if type_ != "BOOLEAN":
        raise node_error(
            node,
            f"predicate '{text}' is not true or false",
            found=type_,
            expected="BOOLEAN",
            hint="compare it with something, for example '... > 0'",
        )


def _map(node: Map, inputs: Inputs) -> StreamType:
    stream = inputs[0]
    check_rowwise(node)
    if node.function is not None:
        if node.columns:
            raise node_error(
                node, "a map has expressions or a function, not both", expected="exactly one of them"
            )
        check_function(node, node.function, stream.schema, "batch")
        columns = list(node.produces)
    else:
        columns = [Column(name, _expression(node, name, text, stream.schema)) for name, text in node.columns]
        if not columns:
            raise node_error(
                node, "a map without expressions", expected="name=expression", hint='.map(kmh="mph * 1.609")'
            )
    _check_map_keeps(node, stream, [column.name for column in columns])
    schema = stream.schema.with_columns(columns) if node.keep else Schema.of(columns)
    return replace(stream, schema=schema, timestamp=_map_timestamp(node, stream))


def _expression(node: Node, name: str, text: str, schema: Schema) -> str:
    with located(node.name, node.where, part=f"{name} = '{one_line(text, 100)}'"):
        return expressions.infer(text, schema)


def _check_map_keeps(node: Map, stream: StreamType, names: list[str]) -> None:
    # `x="x"` in a select keeps a column; any other text, or a function, may change it.
    texts = dict(node.columns)
    changed = [name for name in names if texts.get(name) not in _ways(name)]
    if stream.timestamp in changed:
        raise node_error(
            node,
            f"it would overwrite the timestamp column '{stream.timestamp}'",
            expected="a tuple keeps its timestamp",
            hint="give the new column another name",
        )
    # Tuples already lie in the partition of their keys. With another value they would lie in the wrong one.
    for key in stream.keys:
        if key in changed or (not node.keep and key not in names):
            raise node_error(
                node,
                f"it changes or loses '{key}', by which the stream is grouped",
                found=f"group_by {', '.join(stream.keys)}",
                hint="put group_by after it",
            )


def _ways(column: str | None) -> tuple[str, ...]:
    """How an expression may name a column alone."""
    return () if column is None else (column, f"`{column}`")


def _map_timestamp(node: Map, stream: StreamType) -> str | None:
    """A select may rename the timestamp column; the stamp itself is hidden and cannot be lost."""
    names = {name for name, _ in node.columns}
    if not node.keep and stream.timestamp not in names:
        return next(
            (name for name, text in node.columns if text in _ways(stream.timestamp)), stream.timestamp
        )
    return stream.timestamp


def _drop(node: Drop, inputs: Inputs) -> StreamType:
    if not 0 <= node.rate <= 1:
        raise node_error(
            node,
            "the drop rate is not a share",
            found=f"{node.rate:g}",
            expected="a number from 0 (none) to 1 (all)",
            hint="0.25 drops a quarter",
        )
    return inputs[0]


def _union(node: Union, inputs: Inputs) -> StreamType:
    same_schema(node, inputs)
    same_timestamp(node, inputs)
    same_grouping(node, inputs)
    return _merged(inputs)


def _merged(inputs: Inputs) -> StreamType:
    # One input without a bound leaves the union without one. Order of arrival holds within one source only.
    lags = [stream.lag for stream in inputs]
    lag = None if None in lags else max(lag for lag in lags if lag is not None)
    return replace(
        inputs[0],
        lag=lag,
        arrival_order=len(inputs) == 1 and inputs[0].arrival_order,
        shows_stamp=all(stream.shows_stamp for stream in inputs),
        numbered=all(stream.numbered for stream in inputs),
    )


def _group_by(node: GroupBy, inputs: Inputs) -> StreamType:
    same_schema(node, inputs)
    same_timestamp(node, inputs)
    if not node.keys:
        raise node_error(
            node,
            "group_by without a column",
            expected="one column or more",
            hint="leave group_by out to treat the stream as one group",
        )
    need_columns(node, "group_by", node.keys, inputs[0].schema)
    twice = next((key for key in node.keys if node.keys.count(key) > 1), None)
    if twice is not None:
        raise node_error(
            node, f"groups by '{twice}' twice", found=", ".join(node.keys), expected="each column once"
        )
    # Each time would be a group of its own, whose state is never used again.
    if inputs[0].timestamp in node.keys:
        raise node_error(
            node,
            f"groups by the timestamp column '{inputs[0].timestamp}'",
            hint="a window groups by time: .tumble('1 minute', ...)",
        )
    return replace(_merged(inputs), keys=node.keys)


def _join(node: Join, inputs: Inputs) -> StreamType:
    left, right = inputs
    for stream in inputs:
        stamped(node, stream)
    if min(node.within) < 0:
        raise node_error(
            node,
            "the distance in time is negative",
            found=f"{node.within} microseconds",
            expected="0 or more",
        )
    check_distribution(node)
    for a, b in node.on:
        _check_key(node, a, b, left.schema, right.schema)
    schema = join_schema(node, left.schema, right.schema)
    if node.predicate:
        _predicate(node, node.predicate, schema)
    # A pair has the earlier stamp of the two, and is made when the later tuple comes.
    lag = max(left.lag or 0, right.lag or 0) + max(node.within)
    shown = left.shows_stamp and left.timestamp in left.schema and node.within[1] == 0
    return StreamType(schema, left.timestamp, (), arrival_order=False, lag=lag, shows_stamp=shown)


def _check_key(node: Join, a: str, b: str, left: Schema, right: Schema) -> None:
    with located(node.name, node.where, part=f"on '{a}' of the left stream"):
        one = left.type_of(a)
    with located(node.name, node.where, part=f"on '{b}' of the right stream"):
        two = right.type_of(b)
    # Numbers are compared as numbers, as Spark does; a text and a number are not.
    if one != two and not (one in NUMERIC and two in NUMERIC):
        raise node_error(
            node,
            f"the join keys '{a}' and '{b}' cannot be compared",
            found=f"{one} and {two}",
            expected="equal types, or both numbers",
            hint=f"map one of them first, for example {b}='cast({b} as {one})'",
        )


def join_names(node: Join, left: Schema, right: Schema) -> tuple[tuple[str, str], ...]:
    """(column of the right stream, its name in the output) for those that a pair shows."""
    # Equal keys of one name are one column: the left one stands for both.
    shared = {b for a, b in node.on if a == b}
    return tuple((n, n + node.suffix if n in left else n) for n in right.names if n not in shared)


def join_schema(node: Join, left: Schema, right: Schema) -> Schema:
    """Columns of a pair: all of the left, then those of `join_names`."""
    return Schema.of(
        [*left, *(Column(new, right.type_of(old)) for old, new in join_names(node, left, right))]
    )


def _point(node: ConnectionPoint, inputs: Inputs) -> StreamType:
    _check_kept(node, inputs[0])
    if node.key is not None:
        with located(node.name, node.where, part="storage key"):
            inputs[0].schema.type_of(node.key)
    return retained(inputs[0])


def _view(node: View, inputs: Inputs) -> StreamType:
    _check_kept(node, inputs[0])
    check_qos(node, node.qos, inputs[0].schema)
    return retained(inputs[0])


def _check_kept(node: Kept, stream: StreamType) -> None:
    # It waits for no horizon, it only keeps: so a lag without bound is no harm.
    stamped(node, stream, unbounded=True)
    if node.keep <= 0:
        raise node_error(
            node,
            "keeps nothing",
            found=f"{node.keep} microseconds",
            expected="a persistence above 0",
            hint='keep="2 hours"',
        )


def retained(stream: StreamType) -> StreamType:
    """What a reader of a connection point sees: history may come in any order, and it is one stream again."""
    return replace(stream, keys=(), arrival_order=False)


def _output(node: Output, inputs: Inputs) -> StreamType:
    _check_format(node, node.to, "sink")
    check_qos(node, node.qos, inputs[0].schema)
    return inputs[0]


def check_qos(node: Node, qos: QoS | None, schema: Schema) -> None:
    """Refuse a value graph over a column that is not there, or is no number."""
    if qos is None or not qos.column:
        return
    with located(node.name, node.where, part="QoS value graph"):
        type_ = schema.type_of(qos.column)
        if type_ not in NUMERIC:
            raise ExpressionError(
                f"'{qos.column}' is not a number", found=type_, expected=f"one of: {', '.join(NUMERIC)}"
            )


# The least and the most inputs of a kind; one, if it is not listed.
_INPUTS: dict[type[Node], tuple[int, int]] = {
    Source: (0, 0),
    Join: (2, 2),
    Union: (2, 1000),
    GroupBy: (1, 1000),
    Latch: (1, 1000),
    ColumnLatch: (1, 1000),
}
# A line for each kind of box: what leaves it, given what enters. Each function takes the class of its line.
RULES: dict[type[Node], Callable[[Never, Inputs], StreamType]] = {
    Source: _source,
    Filter: _filter,
    Map: _map,
    Drop: _drop,
    Union: _union,
    GroupBy: _group_by,
    Tumble: tumble_type,
    Slide: slide_type,
    Latch: latch_type,
    ColumnLatch: column_latch_type,
    Resample: resample_type,
    Join: _join,
    ConnectionPoint: _point,
    View: _view,
    Output: _output,
}
