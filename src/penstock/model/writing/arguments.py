"""How boxes take names and expressions: one or several, as dict or as keywords."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from penstock.model.errors import ExpressionError, shown


def texts(given: Mapping[str, str] | None, more: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Names and expressions, given as a dict, as keywords or as both."""
    if given is not None and not isinstance(given, Mapping):
        raise ExpressionError(
            "no names for the columns",
            found=shown(given),
            expected="name=expression, or a dict of them",
            hint='kmh="mph * 1.609"',
        )
    pairs = [*(given or {}).items(), *more.items()]
    refuse_twice([name for name, _ in pairs])
    return tuple(pairs)


def refuse_twice(columns: list[str]) -> None:
    """One of two columns of the same name would be lost."""
    twice = [name for name, times in Counter(columns).items() if times > 1]
    if twice:
        raise ExpressionError(f"column '{twice[0]}' is given twice", hint="give one of them another name")


def names(given: str | Iterable[str]) -> tuple[str, ...]:
    """One name or several; what is neither stays as it is, for `check_arguments` to refuse.

    >>> names("a"), names(["a", "b"])
    (('a',), ('a', 'b'))
    """
    return (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
