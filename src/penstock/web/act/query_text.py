"""Ad-hoc queries as text (A30): a SELECT on one connection point, or boxes in YAML that go on from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.model.errors import PenstockError
from penstock.model.json_types import JsonMapping
from penstock.model.text.yaml_read import read_boxes
from penstock.model.writing.stream import Stream
from penstock.web.act.named import must_be_shallow, no_functions
from penstock.web.errors import RefusedChangeError

Build = Callable[[Stream], Stream]
_LONGEST = 20_000  # characters
_ONLY = ("expressions", "from", "from_", "where", "kind")
_SELECT = re.compile(r"\s*select\b", re.IGNORECASE)
_QUOTED = re.compile(r"'([^']+)'")


class QueryTextError(RefusedChangeError):
    """A query text that cannot be used, and where."""

    def __init__(self, problem: str, *, line: int = 0, column: int = 0, **parts: str) -> None:
        super().__init__(problem, **parts)
        self.line, self.column = line, column


def build_of(text: str, point: str) -> Build:
    """What to add behind a point for a query text."""
    if len(text) > _LONGEST or not text.strip():
        raise QueryTextError(
            "the query is empty" if not text.strip() else "the query is too long",
            expected=f"SELECT ... FROM {point} WHERE ..., or boxes in YAML",
        )
    must_be_shallow(text)
    return _of_select(text, point) if _SELECT.match(text) else _of_boxes(text, point)


def placed(error: PenstockError, text: str) -> dict[str, int]:
    r"""Where in a text an error lies: what it tells itself, else the first place of the name it quotes.

    >>> placed(PenstockError("no column 'spede'"), "SELECT vid\nFROM cars WHERE spede < 9")
    {'line': 2, 'column': 17}
    """
    if line := getattr(error, "line", 0):
        return {"line": line, "column": getattr(error, "column", 1) or 1}
    for name in _QUOTED.findall(str(error)):
        match = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)
        if match:
            before = text[: match.start()]
            return {"line": before.count("\n") + 1, "column": len(before) - before.rfind("\n")}
    where = getattr(error, "where", None)
    own = where is not None and where.line and where.file.startswith("<")
    return {"line": where.line, "column": 1} if where is not None and own else {}


def _of_select(text: str, point: str) -> Build:
    tree = _parsed(text)
    extra = [key for key, value in tree.args.items() if value and key not in _ONLY]
    table = next(iter(tree.find_all(exp.Table)), None)
    if extra or len(list(tree.find_all(exp.Table))) != 1 or tree.find(exp.AggFunc, exp.Window):
        raise QueryTextError(
            "this SELECT does more than choose tuples and columns",
            found=", ".join(extra) or "an aggregate, or another table",
            expected=f"SELECT columns FROM {point} WHERE condition",
            hint="write windows, groups and joins as boxes in YAML",
        )
    if table is not None and table.name != point:
        raise QueryTextError(f"the query reads '{table.name}', not '{point}'", expected=f"FROM {point}")
    where = tree.args.get("where")
    condition = "" if where is None else where.this.sql(dialect="spark")
    columns = {each.alias_or_name: each.unalias().sql(dialect="spark") for each in tree.expressions}
    whole = any(isinstance(each, exp.Star) for each in tree.expressions)
    return lambda stream: _chosen(stream, condition, {} if whole else columns)


def _parsed(text: str) -> exp.Select:
    try:
        tree = sqlglot.parse_one(text, dialect="spark")
    except SqlglotError as error:
        details: JsonMapping = next(iter(getattr(error, "errors", ())), {})
        line, column = int(details.get("line") or 1), int(details.get("col") or 1)
        said = str(details.get("description") or str(error).splitlines()[0])
        raise QueryTextError("the query does not parse", found=said, line=line, column=column) from None
    if not isinstance(tree, exp.Select):
        raise QueryTextError("a query is one SELECT from a connection point")
    return tree


def _chosen(stream: Stream, condition: str, columns: Mapping[str, str]) -> Stream:
    if condition:
        stream = stream.filter(condition)
    return stream.select(dict(columns)) if columns else stream


def _of_boxes(text: str, point: str) -> Build:
    no_functions(text)
    nodes = read_boxes(text, "<query>")
    if not nodes or not all(node.is_box for node in nodes):
        raise QueryTextError(
            "a query is made of boxes", expected="filter, map, select, tumble and so on, by name"
        )

    def build(stream: Stream) -> Stream:
        last = point
        for node in nodes:
            inputs = node.inputs or (last,)
            last = stream.network.add(replace(node, inputs=inputs)).name
        return stream.network.stream(last)

    return build
