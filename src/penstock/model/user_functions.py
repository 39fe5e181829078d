"""User functions and their names: 'module:function', which a YAML text and another process can find."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.model.errors import ExpressionError, did_you_mean


@dataclass(frozen=True)
class Function:
    """A user's vectorised function; `name` is 'module:function', which the YAML form writes down."""

    call: Callable[..., Any]  # it takes and returns what Arrow has
    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Function) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


def function_of(given: Callable[..., object] | str | Function) -> Function:
    """A Function from a callable, or from its name.

    >>> function_of("math:sqrt").call(9.0)
    3.0
    """
    if isinstance(given, Function):
        return given
    if isinstance(given, str):
        return Function(_find(given), given)
    if not callable(given):
        raise ExpressionError(
            f"{given!r} is not a function", expected="a function, or the text 'module:function'"
        )
    return Function(given, name_of(given))


def name_of(call: Callable[..., object]) -> str:
    """'module:function' of a callable; an object that can be called goes by its class."""
    name = getattr(call, "__qualname__", None) or type(call).__qualname__
    return f"{getattr(call, '__module__', None) or type(call).__module__}:{name}"


def _find(name: str) -> Callable[..., object]:
    module, colon, path = name.partition(":")
    if not (module and colon and path):
        raise ExpressionError(f"'{name}' is not the name of a function", expected="'module:function'")
    try:
        target: object = importlib.import_module(module)
    except ImportError as error:
        raise ExpressionError(
            f"no module '{module}' for '{name}'",
            found=str(error),
            hint="is its directory on the Python path?",
        ) from None
    for part in path.split("."):
        if not hasattr(target, part):
            public = [known for known in dir(target) if not known.startswith("_")]
            raise ExpressionError(f"no '{part}' in '{module}'", hint=did_you_mean(part, public))
        target = getattr(target, part)
    if not callable(target):
        raise ExpressionError(f"'{name}' is not a function", found=type(target).__name__)
    return target


def needs_importable(name: str) -> None:
    """Refuse names that another process cannot find: lambdas, inner functions, functions of a script."""
    module, _, path = name.partition(":")
    for mark, what in (("<lambda>", "a lambda"), ("<locals>", "a function inside a function")):
        if mark in path:
            raise ExpressionError(
                f"'{name}' is {what}, which a text cannot name", hint="define it at the top of a module"
            )
    if module == "__main__":
        raise ExpressionError(
            f"'{name}' lives in the script itself, which nobody can import",
            hint="put it into a module of its own",
        )
