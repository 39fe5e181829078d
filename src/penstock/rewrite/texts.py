"""Expressions as texts: their conjuncts, and what they become if columns stand for other expressions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from sqlglot import exp

from penstock.model.expressions.binding import Dialect, parse
from penstock.model.expressions.expression import column_text


@lru_cache(maxsize=4096)
def conjuncts(predicate: str) -> tuple[str, ...]:
    """The parts of a predicate that must all be true.

    >>> conjuncts("a > 1 AND (b = 2 OR c) AND d")
    ('a > 1', '(b = 2 OR c)', 'd')
    """
    parts = _conjuncts(parse(predicate))
    # A single part keeps its own text: sqlglot might spell it differently.
    return (predicate,) if len(parts) == 1 else tuple(_sql(part) for part in parts)


def _conjuncts(tree: exp.Expression) -> list[exp.Expression]:
    bare = tree.unnest()
    if isinstance(bare, exp.And):
        return _conjuncts(bare.this) + _conjuncts(bare.expression)
    return [tree]


def all_of(predicates: Iterable[str]) -> str:
    """One predicate that is true where all of them are; each once.

    >>> all_of(["a > 1", "b = 2 OR c", "a > 1"])
    'a > 1 AND (b = 2 OR c)'
    """
    known: dict[str, str] = {}
    for part in (part for predicate in predicates for part in conjuncts(predicate)):
        known.setdefault(bare(part), part)
    parts = list(known.values())
    if len(parts) == 1:
        return parts[0]
    # An OR binds weaker than the AND that is put around it.
    return " AND ".join(f"({part})" if isinstance(parse(part), exp.Or) else part for part in parts)


@lru_cache(maxsize=4096)
def bare(text: str) -> str:
    """The expression in one spelling, without parentheses around it: equal texts mean the same.

    >>> bare("(k = 1 or k = 2)") == bare("k = 1 OR k=2")
    True
    """
    return _sql(parse(text).unnest())


def substituted(text: str, columns: Mapping[str, str]) -> str:
    """The expression with other expressions in place of columns.

    >>> substituted("kmh > 30 AND seg = 1", {"kmh": "spd * 1.6"})
    '(spd * 1.6) > 30 AND seg = 1'
    >>> substituted("kmh", {"kmh": "spd * 1.6"}), substituted("a + b", {"a": "c"})
    ('spd * 1.6', 'c + b')
    """
    tree = parse(text)
    if not any(node.name in columns for node in tree.find_all(exp.Column)):
        return text
    if isinstance(tree, exp.Column):
        return columns[tree.name]
    # A list, because replacing a node changes the tree that is walked.
    for node in list(tree.find_all(exp.Column)):
        if node.name in columns:
            node.replace(_inner(columns[node.name], alone=isinstance(node.parent, exp.Anonymous | exp.Paren)))
    return _sql(tree)


def _inner(text: str, *, alone: bool) -> exp.Expression:
    """In parentheses, unless it stands alone between some, or is one word."""
    tree = parse(text)
    return tree if alone or isinstance(tree, exp.Column | exp.Paren) else exp.Paren(this=tree)


def renamed(names: Mapping[str, str]) -> dict[str, str]:
    """Columns under other names, as expressions to put in their place."""
    return {old: column_text(new) for old, new in names.items()}


@lru_cache(maxsize=4096)
def uses(text: str) -> tuple[str, ...]:
    """The columns that an expression names, as often as it names them."""
    return tuple(node.name for node in parse(text).find_all(exp.Column))


@lru_cache(maxsize=4096)
def operations(text: str) -> int:
    """How many operations an expression takes for a tuple; a column or a constant takes none.

    >>> operations("a"), operations("a * 2 + b"), operations("upper(s) = 'A'")
    (0, 2, 2)
    """
    still = (exp.Column, exp.Literal, exp.Identifier, exp.Paren, exp.Null, exp.Boolean, exp.DataType)
    return sum(1 for node in parse(text).walk() if not isinstance(node, still))


def _sql(tree: exp.Expr) -> str:
    return tree.sql(dialect=Dialect, comments=False, normalize_functions=False)
