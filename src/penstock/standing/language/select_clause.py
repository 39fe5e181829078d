"""Reads the first part of a query: which names mean which column of which stream, and what follows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal

from sqlglot import exp

from penstock.model.errors import ExpressionError, did_you_mean
from penstock.model.expressions.binding import Dialect, bind
from penstock.model.types import INTEGRAL, NUMERIC, Schema
from penstock.standing.errors import QueryError
from penstock.standing.language.condition_limits import check_cost
from penstock.standing.language.factors import (
    MIRRORED,
    MOST_FLOAT,
    MOST_POINTS,
    branches,
    comparison,
    constant,
    listed,
    span_of,
)
from penstock.standing.language.query import (
    AGGREGATES,
    Branch,
    Conjunction,
    JoinFactor,
    Part,
    SelectItem,
    Span,
    StreamInfo,
)
from penstock.standing.limits import Limits

Streams = Mapping[str, StreamInfo]
_NAMES = {
    "group": "GROUP BY",
    "order": "ORDER BY",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "windows": "WINDOW",
    "laterals": "LATERAL VIEW",
    "pivots": "PIVOT",
    "locks": "FOR UPDATE",
    "sample": "TABLESAMPLE",
    "version": "AS OF",
    "when": "AS OF",
    "except_": "EXCEPT",
    "db": "database name",
    "catalog": "catalog name",
    "columns": "list of columns behind a stream's name",
}


def only(node: exp.Expression, known: set[str]) -> None:
    """Refuse anything else that the parser has found in a part of the query."""
    for part, value in node.args.items():
        if value and part not in known:
            name = _NAMES.get(part, part.strip("_").replace("_", " ").upper())
            raise QueryError(
                f"a standing query has no {name}",
                found=node.sql(dialect=Dialect),
                hint="select, project, join and aggregate; sort and group the answer on the client's side",
            )


class SelectReader:
    """FROM, WHERE and SELECT of one query."""

    def __init__(self, tree: exp.Select, streams: Streams, limits: Limits) -> None:
        self.tree, self.streams, self.limits = tree, streams, limits
        self._check_lists()
        self.on: list[exp.Expression] = []
        self._texts: dict[tuple[int, bool, int], str] = {}
        self.parts = tuple(self._parts())
        self.schemas = [streams[part.stream].schema for part in self.parts]

    def _check_lists(self) -> None:
        longest = max((len(each.expressions) for each in self.tree.find_all(exp.In)), default=0)
        if longest > self.limits.values:
            raise QueryError(
                "a list of IN is too long",
                found=f"{longest:,} values",
                expected=f"at most {self.limits.values:,}",
                hint="register several queries",
            )

    # -- FROM

    def _parts(self) -> Iterable[Part]:
        source = self.tree.args.get("from_") or self.tree.args.get("from")
        if source is None:
            raise QueryError(
                "the query names no stream", expected=f"FROM {' or '.join(self.streams) or 'a stream'}"
            )
        tables = [source.this]
        for join in self.tree.args.get("joins") or ():
            odd = any(value for part, value in join.args.items() if part not in ("this", "on", "kind"))
            if odd or join.kind not in ("", "INNER", "CROSS"):
                raise QueryError(
                    "only inner joins are answered",
                    found=join.sql(dialect=Dialect),
                    hint="FROM a, b WHERE a.x = b.x",
                )
            tables.append(join.this)
            if join.args.get("on") is not None:
                self.on.append(join.args["on"])
        if len(tables) > self.limits.streams:
            raise QueryError(
                "FROM names too many streams",
                found=str(len(tables)),
                expected=f"at most {self.limits.streams}",
            )
        seen: set[str] = set()
        for table in tables:
            part = self._part(table)
            if part.alias in seen:
                raise QueryError(
                    f"'{part.alias}' stands twice in FROM", hint=f"FROM {part.stream} a, {part.stream} b"
                )
            seen.add(part.alias)
            yield part

    def _part(self, table: exp.Expression) -> Part:
        if not isinstance(table, exp.Table):
            raise QueryError("FROM takes streams by name", found=table.sql(dialect=Dialect))
        only(table, {"this", "alias"})
        if table.args.get("alias"):
            only(table.args["alias"], {"this"})
        name = table.name
        if name not in self.streams:
            raise QueryError(
                f"no stream '{name}'",
                expected="a connection point or a source",
                hint=did_you_mean(name, self.streams),
            )
        return Part(table.alias or name, name)

    # -- columns

    def resolve(self, column: exp.Column) -> tuple[int, str]:
        """The stream (its place in FROM) and name of a column."""
        only(column, {"this", "table"})
        name, table = column.name, column.table
        aliases = [part.alias for part in self.parts]
        if table and table not in aliases:
            raise QueryError(
                f"no stream '{table}' in FROM", found=f"{table}.{name}", hint=did_you_mean(table, aliases)
            )
        homes = [
            i
            for i, schema in enumerate(self.schemas)
            if (not table or aliases[i] == table) and name in schema
        ]
        if len(homes) == 1:
            return homes[0], name
        if homes:
            where = ", ".join(f"{aliases[i]}.{name}" for i in homes)
            raise QueryError(f"column '{name}' is in several streams", expected=f"one of: {where}")
        known = [
            c
            for i, schema in enumerate(self.schemas)
            if not table or aliases[i] == table
            for c in schema.names
        ]
        raise QueryError(
            f"unknown column '{name}'",
            expected=f"one of: {', '.join(dict.fromkeys(known))}",
            hint=did_you_mean(name, known),
        )

    def _type(self, stream: int, column: str) -> str:
        return self.schemas[stream].type_of(column)

    # -- WHERE

    def branches(self) -> tuple[Branch, ...]:
        where = self.tree.args.get("where")
        condition: exp.Expression | None = where.this if where is not None else None
        for on in self.on:
            condition = on if condition is None else exp.And(this=on, expression=condition)
        all_branches = [self._branch(atoms) for atoms in branches(condition)]
        return tuple(dict.fromkeys(branch for branch in all_branches if branch is not None))

    def _branch(self, atoms: Iterable[exp.Expression]) -> Branch | None:
        """One conjunction; None if nothing can fulfil it."""
        spans: list[dict[str, Span]] = [{} for _ in self.parts]
        texts: list[list[str]] = [[] for _ in self.parts]
        joins: list[JoinFactor] = []
        residuals: list[str] = []
        for atom in atoms:
            columns = [self.resolve(column) for column in atom.find_all(exp.Column)]
            streams = sorted({stream for stream, _ in columns})
            if len(streams) > 1:
                factor = self._join(atom)
                if factor is None:
                    residuals.append(self._text(atom, qualified=True))
                else:
                    joins.append(factor)
                continue
            stream = streams[0] if streams else 0
            span = self._span(atom)
            if span is None:
                texts[stream].append(self._text(atom, qualified=False, stream=stream))
                continue
            before = spans[stream].get(span.column)
            span = span if before is None else before.meet(span)
            if math.prod(len(s.points) or 1 for s in [*spans[stream].values(), span]) > MOST_POINTS:
                # The lists give too many combinations for the index, so this one is checked tuple by tuple.
                texts[stream].append(self._text(atom, qualified=False, stream=stream))
                continue
            spans[stream][span.column] = span
            if span.empty:
                self._check_rest(atoms)
                return None
        parts = tuple(
            Conjunction(tuple(s[c] for c in sorted(s)), tuple(dict.fromkeys(t)))
            for s, t in zip(spans, texts, strict=True)
        )
        return Branch(parts, tuple(dict.fromkeys(joins)), tuple(dict.fromkeys(residuals)))

    def _check_rest(self, atoms: Iterable[exp.Expression]) -> None:
        for atom in atoms:
            for column in atom.find_all(exp.Column):
                self.resolve(column)

    def _span(self, atom: exp.Expression) -> Span | None:
        if isinstance(atom, exp.Not) and isinstance(_inside(atom), exp.Is):
            inner = _inside(atom)
            if isinstance(inner.this, exp.Column) and isinstance(inner.expression, exp.Null):
                return Span(self.resolve(inner.this)[1])
        if isinstance(atom, exp.In):
            return self._points(atom)
        sides = comparison(atom)
        if sides is None:
            return None
        left, sign, right = sides
        if isinstance(right, exp.Column) and not isinstance(left, exp.Column):
            left, sign, right = right, MIRRORED[sign], left
        given = constant(right)
        if not isinstance(left, exp.Column) or given is None:
            return None
        stream, column = self.resolve(left)
        return span_of(column, self._type(stream, column), sign, given)

    def _points(self, atom: exp.In) -> Span | None:
        """`column IN (constants)`; null among them equals nothing."""
        given = listed(atom)
        if given is None or len(given) > MOST_POINTS:
            return None
        stream, column = self.resolve(atom.this)
        spans = [span_of(column, self._type(stream, column), "=", each) for each in given]
        if any(span is None for span in spans):
            return None
        values = {span.low for span in spans if span is not None and not span.empty}
        return Span.of_points(column, values)  # type: ignore[arg-type]  # points, never None

    def _join(self, atom: exp.Expression) -> JoinFactor | None:
        sides = comparison(atom)
        if sides is None or not isinstance(sides[0], exp.Column) or not isinstance(sides[2], exp.Column):
            return None
        (left, left_column), (right, right_column) = self.resolve(sides[0]), self.resolve(sides[2])
        one, other = self._type(left, left_column), self._type(right, right_column)
        if one != other and not (one in NUMERIC and other in NUMERIC):
            raise QueryError(
                f"{atom.sql(dialect=Dialect)} compares {one} with {other}",
                expected="columns of the same kind",
            )
        mixed = one != other and not (one in INTEGRAL and other in INTEGRAL)
        if "BINARY" in (one, other) or (mixed and "BIGINT" in (one, other)):
            return None  # left to the evaluator: 64 bits do not fit into a double
        if {one, other} == {"INT", "FLOAT"}:
            return None  # compared as FLOAT, which numpy would not do
        return JoinFactor(left, left_column, sides[1], right, right_column)

    def _text(self, atom: exp.Expression, *, qualified: bool, stream: int = 0) -> str:
        """A residual as text over the columns of its stream, or of several (alias__column).

        It must be a condition.
        """
        key = (id(atom), qualified, stream)  # one that stands in many branches is examined once
        if key not in self._texts:
            self._texts[key] = self._checked_text(atom, qualified=qualified, stream=stream)
        return self._texts[key]

    def _checked_text(self, atom: exp.Expression, *, qualified: bool, stream: int) -> str:
        def renamed(node: exp.Expression) -> exp.Expression:
            if not isinstance(node, exp.Column):
                return node
            stream, name = self.resolve(node)
            return exp.column(mangled(self.parts[stream].alias, name) if qualified else name, quoted=True)

        text = atom.copy().transform(self._float_literal).transform(renamed).sql(dialect=Dialect)
        schema = self.joined() if qualified else self.schemas[stream]
        try:
            bound = bind(text, schema)
        except ExpressionError as error:
            raise QueryError(
                f"{atom.sql(dialect=Dialect)}: {error.problem}",
                found=error.found,
                expected=error.expected,
                hint=error.hint,
            ) from None
        if bound.type != "BOOLEAN":
            raise QueryError(
                f"{atom.sql(dialect=Dialect)} is no condition", found=bound.type, expected="BOOLEAN"
            )
        check_cost(bound)
        return text

    def _float_literal(self, node: exp.Expression) -> exp.Expression:
        """In a residual, compare a FLOAT column with a decimal as the index does: as 32 bits."""
        given = constant(node) if isinstance(node, exp.Literal | exp.Neg) else None
        if (
            given is None
            or not isinstance(given.value, Decimal)
            or given.double
            or given.value.copy_abs() > MOST_FLOAT
        ):
            return node
        if not isinstance(node.parent, exp.Predicate | exp.Between | exp.In):
            return node
        other = node.parent.expression if node.arg_key == "this" else node.parent.this
        while isinstance(other, exp.Paren):
            other = other.this
        if not isinstance(other, exp.Column) or self._type(*self.resolve(other)) != "FLOAT":
            return node
        return exp.cast(node.copy(), "FLOAT", dialect=Dialect)

    def joined(self) -> Schema:
        """All columns of all streams of FROM, as residuals of joins write them."""
        return joined_schema(self.parts, self.streams)

    # -- SELECT

    def items(self) -> tuple[SelectItem, ...]:
        items: list[SelectItem] = []
        for node in self.tree.expressions:
            items += self._item(node)
        kinds = {item.aggregate is not None for item in items}
        if len(kinds) > 1:
            raise QueryError(
                "columns and aggregates do not stand side by side",
                hint="there is no GROUP BY; register two queries",
            )
        if not items:
            raise QueryError("SELECT names no column")
        return _named(items, self.parts)

    def _item(self, node: exp.Expression) -> list[SelectItem]:
        inner = node.this if isinstance(node, exp.Alias) else node
        name = node.alias if isinstance(node, exp.Alias) else ""
        if isinstance(inner, exp.Star) or (
            isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)
        ):
            return self._star(inner)
        if isinstance(inner, exp.Column):
            stream, column = self.resolve(inner)
            return [SelectItem(name or column, stream, column)]
        if isinstance(inner, exp.Anonymous) and inner.name.upper() in AGGREGATES:
            return [self._aggregate(inner, name)]
        raise QueryError(
            "SELECT takes columns and aggregates",
            found=inner.sql(dialect=Dialect),
            expected=f"a column, *, or one of {', '.join(AGGREGATES)} of a column",
            hint="compute on the client's side, or in a Map box",
        )

    def _star(self, node: exp.Expression) -> list[SelectItem]:
        only(node.this if isinstance(node, exp.Column) else node, set())
        table = node.table if isinstance(node, exp.Column) else ""
        aliases = [part.alias for part in self.parts]
        if table and table not in aliases:
            raise QueryError(f"no stream '{table}' in FROM", hint=did_you_mean(table, aliases))
        chosen = [i for i, alias in enumerate(aliases) if not table or alias == table]
        return [SelectItem(c, i, c) for i in chosen for c in self.schemas[i].names]

    def _aggregate(self, node: exp.Expression, name: str) -> SelectItem:
        function, text = node.name.upper(), node.sql(dialect=Dialect).lower()
        inner = node.expressions[0] if len(node.expressions) == 1 else None
        if function == "COUNT" and isinstance(inner, exp.Star | exp.Literal):
            return SelectItem(name or "count", 0, None, "COUNT")
        if not isinstance(inner, exp.Column):
            raise QueryError(f"{text} is not answered", expected=f"{function} of a column")
        stream, column = self.resolve(inner)
        type_ = self._type(stream, column)
        if function in ("SUM", "AVG") and type_ not in NUMERIC:
            raise QueryError(f"{text}: column '{column}' is {type_}", expected="a number")
        return SelectItem(name or f"{function.lower()}_{column}", stream, column, function)


def _inside(node: exp.Expression) -> exp.Expression:
    inner = node.this
    while isinstance(inner, exp.Paren):
        inner = inner.this
    return inner  # type: ignore[no-any-return]  # sqlglot says Any


def mangled(alias: str, column: str) -> str:
    """How residuals of joins write a column of a stream."""
    return f"{alias}__{column}"


def joined_schema(parts: Iterable[Part], streams: Streams) -> Schema:
    """The columns of several streams in one schema, under their mangled names."""
    return Schema.of([(mangled(p.alias, c.name), c.type) for p in parts for c in streams[p.stream].schema])


def _named(items: list[SelectItem], parts: tuple[Part, ...]) -> tuple[SelectItem, ...]:
    """Prefix columns that several streams share with the stream's name.

    Names that are still ambiguous are refused.
    """
    times = Counter(item.name for item in items)
    named = [
        SelectItem(f"{parts[i.stream].alias}_{i.name}", i.stream, i.column, i.aggregate)
        if times[i.name] > 1 and i.name == i.column and len(parts) > 1
        else i
        for i in items
    ]
    for name, count in Counter(item.name for item in named).items():
        if count > 1:
            raise QueryError(f"column '{name}' stands twice in SELECT", hint=f"{name} AS another_name")
    return tuple(named)
