"""What a query on a checkpoint asks: which points, which of their files, and whether it can be followed.

When in doubt, this module is careful. A condition selects files only where it stands directly at the stored
table; otherwise all files are read. A query is followed only if all of it, inner queries included, looks at
one tuple at a time; otherwise it is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.model.errors import PenstockError, did_you_mean
from penstock.model.expressions.binding import Dialect
from penstock.model.expressions.functions import names

DEAD = "dead_letters"
_PARTS = ("catalog.db", "points", DEAD)  # a run leaves at least one of them
# These need more than the current tuple, wherever they stand in the query.
_WHOLE: dict[type[exp.Expression], str] = {
    exp.Group: "GROUP BY",
    exp.Having: "HAVING",
    exp.Order: "ORDER BY",
    exp.Sort: "SORT BY",
    exp.Limit: "LIMIT",
    exp.Fetch: "FETCH",
    exp.Offset: "OFFSET",
    exp.Distinct: "DISTINCT",
    exp.Window: "OVER",
    exp.Qualify: "QUALIFY",
    exp.Pivot: "PIVOT",
    exp.TableSample: "TABLESAMPLE",
    exp.Join: "JOIN",
    exp.SetOperation: "UNION",
}
# Functions of one tuple that networks do not have, but that people use in queries.
_MORE_SCALARS = (
    "array",
    "date_add",
    "date_diff",
    "date_format",
    "date_sub",
    "datediff",
    "explode",
    "format_number",
    "from_unixtime",
    "get_json_object",
    "hash",
    "lpad",
    "make_timestamp",
    "map",
    "md5",
    "named_struct",
    "posexplode",
    "rpad",
    "sha2",
    "split",
    "struct",
    "to_date",
    "to_json",
    "to_timestamp",
    "try_to_timestamp",
    "unix_timestamp",
    "xxhash64",
)


@dataclass(frozen=True)
class Asked:
    """A query: its text, the points it reads, and what restricts it.

    The condition covers stored columns, for queries on one point only. Also recorded is the part of the query
    that needs more than one tuple ('' if none does).
    """

    sql: str
    points: tuple[str, ...]
    where: str
    whole: str


def parse(checkpoint: Path, sql: str) -> Asked:
    """Read the SELECT; refuse anything else, and points that do not exist."""
    if not checkpoint.is_dir():
        raise PenstockError(f"{checkpoint} is no checkpoint: there is no such directory")
    if not any((checkpoint / part).exists() for part in _PARTS):
        raise PenstockError(f"{checkpoint} is no checkpoint", hint="give the directory of a run")
    try:
        tree = sqlglot.parse_one(sql, dialect="spark")
    except SqlglotError as error:
        raise PenstockError(f"the query does not parse: {str(error).splitlines()[0]}") from None
    if not isinstance(tree, exp.Query):
        raise PenstockError("a query is one SELECT from connection points")
    known = [*sorted(p.name for p in (checkpoint / "points").glob("*") if p.is_dir()), DEAD]
    points = tuple(dict.fromkeys(_points(tree, known, checkpoint)))
    if not points:
        raise PenstockError("the query reads no connection point", hint=did_you_mean("", known))
    return Asked(sql, points, _stored_condition(tree), "JOIN" if len(points) > 1 else _whole(tree, sql))


def _points(tree: exp.Query, known: list[str], checkpoint: Path) -> Iterator[str]:
    by_lower = {name.lower(): name for name in known}  # like Spark, ignore case
    own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        name = table.name.lower()
        if name in by_lower:
            yield by_lower[name]
        elif name not in own:
            raise PenstockError(
                f"no connection point '{table.name}' in {checkpoint}", hint=did_you_mean(table.name, known)
            )


def _stored_condition(tree: exp.Query) -> str:
    """The WHERE of a SELECT directly from a table: only there are its columns surely the stored ones."""
    at = tree.args.get("from_") or tree.args.get("from")
    table = at.this if at is not None else None
    plain = (
        isinstance(tree, exp.Select)
        and isinstance(table, exp.Table)
        and not any(
            tree.args.get(part) for part in ("joins", "laterals", "with_", "with", "sample", "pivots")
        )
        and not any(table.args.get(part) for part in ("joins", "laterals", "pivots", "sample"))
        and not (table.args.get("alias") and table.args["alias"].args.get("columns"))
        and len(list(tree.find_all(exp.Table))) == 1
    )
    condition = tree.args.get("where")
    return condition.this.sql(dialect="spark") if plain and condition is not None else ""


def _whole(tree: exp.Query, sql: str) -> str:
    """Find what in the query looks, or may look, at more than one tuple."""
    for node in tree.walk():
        for kind, word in _WHOLE.items():
            if isinstance(node, kind):
                return word
    if len(list(tree.find_all(exp.Table))) - len(list(tree.find_all(exp.CTE))) > 1:
        return "a second look at the table"
    return next(iter(_unsure(sql)), "an aggregate" if tree.find(exp.AggFunc) else "")


def _unsure(sql: str) -> Iterable[str]:
    """Functions that may be aggregates: all that are not known to look at one tuple.

    Each keeps its written name here.
    """
    scalars = {name.lower() for name in (*names(), *_MORE_SCALARS)}
    try:
        tree: Any = sqlglot.parse_one(sql, dialect=Dialect)
    except SqlglotError:
        return ["a form that we do not know"]
    return [node.name for node in tree.find_all(exp.Anonymous) if node.name.lower() not in scalars]
