"""Reading results whose fields may be missing: another system may write only some of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeGuard

JsonObject = Mapping[str, object]


def part(values: JsonObject, name: str) -> JsonObject:
    """The object under a name; empty if there is none.

    >>> part({"cost": {"cores": 2}}, "cost"), part({"cost": None}, "cost")
    ({'cores': 2}, {})
    """
    value = values.get(name)
    return value if isinstance(value, Mapping) else {}


def parts(values: JsonObject, name: str) -> Sequence[JsonObject]:
    """The list of objects under a name; empty if there is none."""
    value = values.get(name)
    return value if isinstance(value, list | tuple) else ()


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)
