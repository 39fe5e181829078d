"""Are these the same rows? Order never counts; floats may differ in their last digits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from penstock.engine.local.engine import LocalResult

PlainRow = tuple[tuple[str, object], ...]
Rows = Iterable[Mapping[str, object]]


def same_rows(found: Rows, expected: Rows) -> bool:
    """Whether two lists hold the same rows, each as often.

    >>> same_rows([{"x": 1}, {"x": 0.1 + 0.2}], [{"x": 0.3}, {"x": 1}])
    True
    """
    return _differences(found, expected) == ([], [])


def assert_same_rows(found: Rows, expected: Rows, what: str = "rows") -> None:
    """Fail with the rows that are too many and those that are missing."""
    more, missing = _differences(found, expected)
    if more or missing:
        lines = [f"{what} differ: {len(more)} too many, {len(missing)} missing"]
        lines += [f"  + {row}" for row in more[:10]] + [f"  - {row}" for row in missing[:10]]
        raise AssertionError("\n".join(lines))


def assert_same_result(found: LocalResult, expected: LocalResult) -> None:
    """Outputs, points and dead letters (by box and offset: trains and words may differ) are the same."""
    for kind in ("outputs", "points"):
        ours, theirs = getattr(found, kind), getattr(expected, kind)
        assert ours.keys() == theirs.keys(), f"{kind} differ: {sorted(ours)} and {sorted(theirs)}"
        for name in theirs:
            assert_same_rows(ours[name], theirs[name], f"{kind[:-1]} '{name}'")
    assert_same_rows(_letters(found), _letters(expected), "dead letters")
    for name in found.accounts.keys() & expected.accounts.keys():
        ours, theirs = found.accounts[name], expected.accounts[name]
        assert ours == theirs, f"accounts of source '{name}' differ: {dict(ours)} and {dict(theirs)}"


def _letters(result: LocalResult) -> list[dict[str, object]]:
    return [{"box": letter.box, "offset": letter.offset} for letter in result.dead_letters]


def _differences(found: Rows, expected: Rows) -> tuple[list[PlainRow], list[PlainRow]]:
    ours, theirs = [_plain(row) for row in found], [_plain(row) for row in expected]
    more = list((Counter(ours) - Counter(theirs)).elements())
    missing = list((Counter(theirs) - Counter(ours)).elements())
    for row in list(more):
        near = next((other for other in missing if _close(row, other)), None)
        if near is not None:
            more.remove(row)
            missing.remove(near)
    return more, missing


def _plain(row: Mapping[str, object]) -> PlainRow:
    return tuple((name, _value(value)) for name, value in row.items())


def _value(value: object) -> object:
    if isinstance(value, bool):  # True == 1, but a BOOLEAN is no number
        return ("boolean", value)
    if isinstance(value, float):
        return ("float", "NaN" if math.isnan(value) else value + 0.0)
    return value


def _close(one: PlainRow, other: PlainRow) -> bool:
    if len(one) != len(other):
        return False
    return all(a == c and _close_values(b, d) for (a, b), (c, d) in zip(one, other, strict=True))


def _close_values(one: object, other: object) -> bool:
    match one, other:
        case ("float", float(ours)), ("float", float(theirs)):
            return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)
    return one == other
