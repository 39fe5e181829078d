"""Expressions of boxes: Spark SQL, typed when the network is built (Aurora, Sect. 2.1; A14, A16).

`infer` gives the type of a per-tuple expression and `columns_of` the columns it reads. `split_aggregates`
splits the expression of a window into aggregate calls and an expression over their results.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from penstock.model.errors import ExpressionError
from penstock.model.expressions.binding import Dialect, bind, bind_tree, parse
from penstock.model.expressions.functions import AGGREGATE_ALIASES, AGGREGATES, WINDOW_EDGES
from penstock.model.types import Column, Schema

__all__ = ["AggregateCall", "Aggregation", "column_text", "columns_of", "infer", "split_aggregates"]


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate: its function, its argument (None for count(*) and window edges) and its type."""

    function: str
    argument: str | None
    type: str


@dataclass(frozen=True)
class Aggregation:
    """Calls, and the expression over their results (columns a0, a1, ... and the keys)."""

    calls: tuple[AggregateCall, ...]
    result: str
    type: str

    def schema(self, keys: Iterable[Column] = ()) -> Schema:
        """The columns that `result` is over."""
        return Schema.of([*keys, *((f"a{i}", call.type) for i, call in enumerate(self.calls))])


def infer(text: str, schema: Schema) -> str:
    """The Spark SQL type of an expression over these columns.

    >>> infer("speed / 2 + 1", Schema.parse("speed INT"))
    'DOUBLE'
    """
    return bind(text, schema).type


def is_expression(text: str, schema: Schema) -> bool:
    """Whether the text can be computed from these columns, with or without aggregates.

    >>> is_expression("a", Schema.parse("a INT")), is_expression("slow cars", Schema.parse("a INT"))
    (True, False)
    """
    try:
        split_aggregates(text, schema, keys=schema.names)
    except ExpressionError:
        return False
    return True


def columns_of(text: str) -> tuple[str, ...]:
    """The columns an expression reads, in the order they are first named.

    >>> columns_of("a + b * a")
    ('a', 'b')
    """
    return tuple(dict.fromkeys(node.name for node in parse(text).find_all(exp.Column, bfs=False)))


def column_text(name: str) -> str:
    """The expression that is this column alone: in backticks if the bare name would say something else.

    >>> column_text("speed"), column_text("my col"), column_text("on")
    ('speed', '`my col`', '`on`')
    """
    try:
        tree = parse(name)
    except ExpressionError:
        return f"`{name}`"
    plain = isinstance(tree, exp.Column) and tree.name == name and not tree.table
    return name if plain else f"`{name}`"


def split_aggregates(text: str, schema: Schema, keys: Iterable[str] = ()) -> Aggregation:
    """Split a window's expression into its aggregate calls and the expression over their results.

    >>> split_aggregates("sum(x) / count(*) + 1", Schema.parse("x INT")).result
    'a0 / a1 + 1'
    """
    tree, calls = parse(text).copy(), list[AggregateCall]()
    # The root stays when the expression is a single call, which is replaced as a whole.
    root = exp.Paren(this=tree)
    _check_bare(root, text, schema, {*keys})
    # A list first: replacing nodes while sqlglot walks the tree would lose some of them.
    for node in list(root.find_all(exp.Anonymous, exp.Filter, exp.Window, bfs=False)):
        if _name(node) is not None:
            _refuse_nested(node)
            node.replace(exp.column(_column_of(_call(node, schema), calls)))
    key_columns = [Column(key, schema.type_of(key)) for key in keys]
    clash = {f"a{i}" for i in range(len(calls))} & {*keys}
    if clash:
        raise ExpressionError(
            f"the key '{min(clash)}' has a name that Penstock uses inside", hint="rename the key column"
        )
    over = Aggregation(tuple(calls), "", "").schema(key_columns)
    return Aggregation(tuple(calls), _sql(root.this), bind_tree(root.this, over).type)


def _name(node: exp.Expression) -> str | None:
    """The aggregate's name, or None if this is another function."""
    if isinstance(node, exp.Filter | exp.Window):
        raise ExpressionError(
            f"'{_sql(node)}' is not supported",
            hint="count(CASE WHEN condition THEN 1 END) counts only some tuples",
        )
    name = node.name.lower()
    name = AGGREGATE_ALIASES.get(name, name)
    return name if name in AGGREGATES or name in WINDOW_EDGES else None


def _aggregate_above(node: exp.Expression) -> exp.Expression | None:
    outer = node.find_ancestor(exp.Anonymous)
    while outer is not None and not _name(outer):
        outer = outer.find_ancestor(exp.Anonymous)
    return outer


def _refuse_nested(node: exp.Expression) -> None:
    outer = _aggregate_above(node)
    if outer is not None:
        raise ExpressionError(
            f"'{_sql(outer)}' has an aggregate inside an aggregate",
            hint="use two windows, one after the other",
        )


def _column_of(call: AggregateCall, calls: list[AggregateCall]) -> str:
    """The column that holds the result of a call; a repeated call is computed once."""
    if call not in calls:
        calls.append(call)
    return f"a{calls.index(call)}"


def _call(node: exp.Expression, schema: Schema) -> AggregateCall:
    name, args = str(_name(node)), list(node.expressions)
    if name in WINDOW_EDGES:
        if args:
            raise ExpressionError(f"{name}() takes no argument", found=_sql(node))
        return AggregateCall(name, None, "TIMESTAMP")
    if len(args) == 1 and isinstance(args[0], exp.Distinct):
        if name != "count":
            raise ExpressionError(
                f"{name}(DISTINCT ...) is not supported", found=_sql(node), expected="count(DISTINCT ...)"
            )
        name, args = "count_distinct", list(args[0].expressions)
    if name == "count" and len(args) == 1 and isinstance(args[0], exp.Star):
        return AggregateCall("count", None, "BIGINT")
    if len(args) != 1:
        raise ExpressionError(
            f"{name} takes one argument",
            found=_sql(node),
            hint="concat(...) makes one value of several" if args else "count(*) counts tuples",
        )
    return AggregateCall(name, _sql(args[0]), _result_type(name, args[0], schema))


def _result_type(name: str, argument: exp.Expression, schema: Schema) -> str:
    for inner in argument.find_all(exp.Anonymous):
        if _name(inner):
            _refuse_nested(inner)
    type_ = bind_tree(argument, schema).type
    signature = AGGREGATES[name]((type_,))
    if signature is None:
        wanted = "a number" if name in ("sum", "avg", "stddev", "variance") else "a value that has an order"
        raise ExpressionError(f"{name} takes {wanted}", found=f"'{_sql(argument)}' of type {type_}")
    return signature.result


def _check_bare(tree: exp.Expression, text: str, schema: Schema, keys: set[str]) -> None:
    """Refuse bare columns: outside the aggregates, only keys have one value for the whole window."""
    for node in tree.find_all(exp.Column):
        if node.name in keys or _aggregate_above(node):
            continue
        schema.type_of(node.name)  # an unknown column is the better complaint
        raise ExpressionError(
            f"column '{node.name}' is outside an aggregate in '{text}'",
            expected=f"a key ({', '.join(sorted(keys))}) or an aggregate" if keys else "an aggregate",
            hint=f"last({node.name}) takes the value of the last tuple",
        )


def _sql(node: exp.Expression) -> str:
    return node.sql(dialect=Dialect, comments=False)
