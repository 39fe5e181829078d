"""The query language: SELECT-FROM-WHERE, then BEGIN-END (PSoup, Sect. 2; P02-P05), and some extensions.

    SELECT vid, spd FROM reports WHERE spd < 20 AND seg BETWEEN 40 AND 60 BEGIN now - 10 minutes END now
    SELECT COUNT(*), AVG(spd) FROM reports WHERE seg = 7 OR seg IN (1, 2) BEGIN last 1000 tuples
    SELECT r.vid, t.toll FROM reports r, tolls t WHERE r.seg = t.seg
        BEGIN now - 1 minute END now FOR r, BEGIN now - 1 hour END now FOR t

A window without FOR holds for all streams of FROM. sqlglot parses the first part, this module the second. A
query that cannot be answered exactly is refused here, when it is registered.
"""

from __future__ import annotations

import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.model.expressions.binding import Dialect
from penstock.standing.errors import QueryError
from penstock.standing.language.query import StandingQuery
from penstock.standing.language.select_clause import SelectReader, Streams, only
from penstock.standing.language.window_clause import QUOTED, check_window, windows_of, without_quoted

_COMMENT = re.compile(rf"(?P<quoted>{QUOTED.pattern})|--[^\n]*|/\*(?!\+).*?\*/", re.DOTALL)
# Accept only these. An unknown clause must not be ignored silently.
_OURS = {"expressions", "from", "from_", "joins", "where", "distinct"}


def parse(text: str, streams: Streams) -> StandingQuery:
    """Parse the query into normal form, or refuse it.

    >>> from penstock.model.types import Schema
    >>> from penstock.standing.language.query import StreamInfo
    >>> reports = StreamInfo("reports", Schema.parse("time TIMESTAMP, vid INT, spd INT, seg INT"))
    >>> text = "SELECT vid FROM reports WHERE spd < 20 AND spd > 5 BEGIN now - 10 minutes"
    >>> query = parse(text, {"reports": reports})
    >>> query.branches[0].parts[0].spans
    (Span(column='spd', low=6, high=19, low_open=False, high_open=False, points=()),)
    """
    try:
        return _parsed(text, streams)
    except RecursionError:
        raise QueryError(
            "the condition is nested too deeply", hint="fewer brackets; a list of values is written IN (...)"
        ) from None


def _parsed(text: str, streams: Streams) -> StandingQuery:
    clause, ends = _cut(_COMMENT.sub(lambda match: match["quoted"] or " ", text))
    tree = _tree(clause)
    reading = SelectReader(tree, streams)
    windows = windows_of(ends, reading.parts)
    for part, each in zip(reading.parts, windows, strict=True):
        check_window(streams[part.stream], each)
    return StandingQuery(
        text=text.strip(),
        parts=reading.parts,
        branches=reading.branches(),
        items=reading.items(),
        windows=windows,
        distinct=tree.args.get("distinct") is not None,
    )


def _cut(text: str) -> tuple[str, str]:
    """The text up to the first BEGIN, and the rest."""
    first = re.search(r"\bBEGIN\b", without_quoted(text), re.IGNORECASE)
    at = first.start() if first else len(text)
    return text[:at], text[at:].strip().rstrip(";")


def _tree(clause: str) -> exp.Select:
    try:
        trees = sqlglot.parse(clause, dialect=Dialect)
    except SqlglotError as error:
        raise QueryError(
            "the query does not parse",
            found=str(error).splitlines()[0],
            expected="SELECT columns FROM streams WHERE condition BEGIN end END end",
        ) from None
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Select):
        raise QueryError(
            "a standing query is one SELECT",
            found=type(tree).__name__.upper() if tree else "nothing or several",
        )
    if any(tree.find_all(exp.Subquery, exp.Exists)) or len(list(tree.find_all(exp.Select))) > 1:
        raise QueryError("a standing query has no nested queries", hint="write a join")
    only(tree, _OURS)
    if tree.args.get("distinct") is not None:
        only(tree.args["distinct"], set())
    return tree
