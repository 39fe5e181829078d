"""Checks that several boxes share: about columns, user functions, timestamps and streams that must agree."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence

from penstock.model.boxes import Filter, Latch, Map, Node, Windowed
from penstock.model.error_location import located, node_error
from penstock.model.types import Schema, StreamType
from penstock.model.user_functions import Function


def need_columns(node: Node, part: str, names: Iterable[str], schema: Schema) -> None:
    """Each name is a column, or an error with did-you-mean."""
    with located(node.name, node.where, part=part):
        for name in names:
            schema.type_of(name)


def check_function(node: Map | Windowed | Latch, function: Function, schema: Schema, *arguments: str) -> None:
    """A user function takes these arguments, reads columns that exist, and says what it produces (A22)."""
    takes(node, function, *arguments)
    need_columns(node, "reads", node.reads, schema)
    if not node.produces.columns:
        raise node_error(
            node,
            f"the function '{function.name}' does not say what it produces",
            expected="produces='name TYPE, ...'",
            hint="the columns of the table that it returns",
        )


def check_no_function(node: Filter | Map | Windowed | Latch) -> None:
    """Without a function, what belongs to one would be ignored."""
    produces = "" if isinstance(node, Filter) else node.produces.ddl()
    for part, value in (("reads", ", ".join(node.reads)), ("produces", produces)):
        if value:
            raise node_error(
                node,
                f"'{part}' without a function",
                found=value,
                expected=f"a function, or no '{part}'",
                hint=f"a column called '{part}' goes into a dict: {{\"{part}\": ...}}",
            )


def check_rowwise(node: Filter | Map) -> None:
    """A promise about the rows of a function needs the function, and the columns that it looks at."""
    if node.rowwise and (node.function is None or not node.reads):
        raise node_error(
            node,
            "'rowwise' says nothing here",
            found="no function" if node.function is None else "a function that does not say what it reads",
            expected="a function, and the columns that it reads",
            hint="reads=[...] beside rowwise=True",
        )


def takes(node: Node, function: Function, *arguments: str) -> None:
    """The function can be called with these arguments; where Python cannot tell, it is trusted."""
    try:
        signature = inspect.signature(function.call)
    except (TypeError, ValueError):
        # Some functions written in C have no signature.
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        raise node_error(
            node,
            f"the function '{function.name}' cannot be called by a {node.kind.replace('_', ' ')}",
            found=f"({', '.join(signature.parameters)})",
            expected=f"({', '.join(arguments)})",
        ) from None


def no_twins(node: Node, schema: Schema) -> None:
    """Spark takes 'Speed' and 'speed' for one column, so no stream may have both."""
    seen: dict[str, str] = {}
    for name in schema.names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise node_error(
                node, f"columns '{other}' and '{name}' differ only in case", hint="rename one of them"
            )


def stamped(node: Node, stream: StreamType, *, unbounded: bool = False) -> None:
    """The stream has a timestamp; unless `unbounded`, its lag has a bound."""
    name = node.kind.replace("_", " ")
    if stream.timestamp is None:
        raise node_error(
            node,
            f"a {name} needs a timestamp, and its input has none",
            expected="a source with a timestamp",
            hint='net.source(..., timestamp="time")',
        )
    # A box that waits for the horizon would wait for the oldest open window, which may never fill.
    if stream.lag is None and not unbounded:
        raise node_error(
            node,
            f"a {name} after a count window that keeps the earliest timestamp would wait forever",
            found="a window of tuples with stamp='earliest'",
            expected="timestamps that stay within a bound of the newest tuple",
            hint="write stamp='latest' on the count window",
        )


def same_schema(node: Node, inputs: Sequence[StreamType]) -> None:
    """All inputs carry the same columns; the error shows the first that differs."""
    first = inputs[0].schema
    for at, stream in enumerate(inputs[1:], start=1):
        if stream.schema != first:
            raise node_error(
                node,
                f"its inputs have different columns: '{node.inputs[0]}' and '{node.inputs[at]}'",
                found=stream.schema.ddl(),
                expected=first.ddl(),
                hint=_difference(first, stream.schema),
            )


def _difference(first: Schema, other: Schema) -> str:
    # The most helpful hint first: other names, then another order, then other types.
    missing = [name for name in first.names if name not in other]
    more = [name for name in other.names if name not in first]
    if missing or more:
        parts = [f"missing: {', '.join(missing)}"] * bool(missing) + [f"too many: {', '.join(more)}"] * bool(
            more
        )
        return "; ".join(parts) + "; bring them together with .select(...)"
    if set(first.columns) == set(other.columns):
        return "the same columns in another order; .select(...) sets the order"
    return "bring the types together with .map(x='cast(x as ...)')"


def same_timestamp(node: Node, inputs: Sequence[StreamType]) -> None:
    """All inputs are stamped by a column of one name, or none is."""
    for at, stream in enumerate(inputs[1:], start=1):
        if stream.timestamp != inputs[0].timestamp:
            raise node_error(
                node,
                "its inputs are stamped differently",
                found=f"'{node.inputs[at]}': {stream.timestamp or 'no timestamp'}",
                expected=f"as in '{node.inputs[0]}': {inputs[0].timestamp or 'no timestamp'}",
                hint="give the timestamp the same name in both sources",
            )


def same_grouping(node: Node, inputs: Sequence[StreamType]) -> None:
    """All inputs are grouped by the same keys, or none is."""
    for at, stream in enumerate(inputs[1:], start=1):
        if stream.keys != inputs[0].keys:
            raise node_error(
                node,
                "its inputs are grouped differently",
                found=f"'{node.inputs[at]}': {', '.join(stream.keys) or 'not grouped'}",
                expected=f"as in '{node.inputs[0]}': {', '.join(inputs[0].keys) or 'not grouped'}",
                hint="use the same group_by on each of them, or one after them",
            )
