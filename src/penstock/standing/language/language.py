"""The query language: SELECT-FROM-WHERE, then BEGIN-END (PSoup, Sect. 2; P02-P05), and some extensions.

    SELECT vid, spd FROM reports WHERE spd < 20 AND seg BETWEEN 40 AND 60 BEGIN now - 10 minutes END now
    SELECT COUNT(*), AVG(spd) FROM reports WHERE seg = 7 OR seg IN (1, 2) BEGIN last 1000 tuples
    SELECT r.vid, t.toll FROM reports r, tolls t WHERE r.seg = t.seg
        BEGIN now - 1 minute END now FOR r, BEGIN now - 1 hour END now FOR t

A window without FOR holds for all streams of FROM. sqlglot parses the first part, this module the second. A
query that cannot be answered exactly is refused here, when it is registered.
"""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.model.expressions.binding import Dialect
from penstock.standing.errors import QueryError
from penstock.standing.language.condition_limits import check_depth, too_deep
from penstock.standing.language.query import StandingQuery
from penstock.standing.language.scan import ScannedText, scan, shortened
from penstock.standing.language.select_clause import SelectReader, Streams, only
from penstock.standing.language.window_clause import check_window, window_start, windows_of
from penstock.standing.limits import Limits

# Accept only these. An unknown clause must not be ignored silently.
_OURS = {"expressions", "from", "from_", "joins", "where", "distinct"}


def parse(text: str, streams: Streams, limits: Limits | None = None) -> StandingQuery:
    """Parse the query into normal form, or refuse it.

    >>> from penstock.model.types import Schema
    >>> from penstock.standing.language.query import StreamInfo
    >>> reports = StreamInfo("reports", Schema.parse("time TIMESTAMP, vid INT, spd INT, seg INT"))
    >>> text = "SELECT vid FROM reports WHERE spd < 20 AND spd > 5 BEGIN now - 10 minutes"
    >>> query = parse(text, {"reports": reports})
    >>> query.branches[0].parts[0].spans
    (Span(column='spd', low=6, high=19, low_open=False, high_open=False, points=()),)
    """
    limits = limits or Limits()
    _check_text(text, limits)
    try:
        return _parsed(text, streams, limits)
    except RecursionError:
        raise too_deep() from None


def _check_text(text: str, limits: Limits) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise QueryError("the query is not text", found="half of a surrogate pair") from None
    if size > limits.text:
        raise QueryError(
            "the query is too long", found=f"{size:,} bytes", expected=f"at most {limits.text:,} bytes"
        )


def _parsed(text: str, streams: Streams, limits: Limits) -> StandingQuery:
    query = scan(text)
    start = window_start(query)
    tree = _tree(query.text[:start])
    reading = SelectReader(tree, streams, limits)
    windows = windows_of(_without_semicolon(query[start:]), reading.parts)
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


def _without_semicolon(ends: ScannedText) -> ScannedText:
    return ends[: len(ends.masked.rstrip().rstrip(";"))]


def _tree(clause: str) -> exp.Select:
    try:
        trees = sqlglot.parse(clause, dialect=Dialect)
    except SqlglotError as error:
        raise QueryError(
            "the query does not parse",
            found=shortened(str(error).splitlines()[0]),
            expected="SELECT columns FROM streams WHERE condition BEGIN end END end",
        ) from None
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Select):
        raise QueryError(
            "a standing query is one SELECT",
            found=type(tree).__name__.upper() if tree else "nothing or several",
        )
    check_depth(tree)
    if any(tree.find_all(exp.Subquery, exp.Exists)) or len(list(tree.find_all(exp.Select))) > 1:
        raise QueryError("a standing query has no nested queries", hint="write a join")
    only(tree, _OURS)
    if tree.args.get("distinct") is not None:
        only(tree.args["distinct"], set())
    return tree
