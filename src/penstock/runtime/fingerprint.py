"""A user's code as a short hash.

Changing a comment keeps the hash. Changing a line, a constant or a captured value changes it. State depends
on the function that made it, so a checkpoint must notice a different one. Functions that it calls by name are
not followed: the user must know when a helper has changed.
"""

from __future__ import annotations

import functools
import hashlib
from types import CellType, CodeType, FunctionType

_PLAIN = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis))


def fingerprint(function: object) -> str:
    """Twelve digits that identify the code of a function, class, partial or callable object.

    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 1)
    True
    >>> fingerprint(lambda batch: batch["bid"]) == fingerprint(lambda batch: batch["ask"])
    False
    """
    return hashlib.sha256(_text(function).encode()).hexdigest()[:12]


def _text(value: object) -> str:
    """Describe the value identically in every process: no addresses, no set order."""
    value = getattr(value, "py_func", value)  # what numba compiled
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(_text, value)))}}}"
    if isinstance(value, dict):
        return f"{{{', '.join(sorted(f'{_text(k)}: {_text(v)}' for k, v in value.items()))}}}"
    if isinstance(value, CodeType):
        return _code(value)
    if isinstance(value, FunctionType):
        return _function(value)
    if isinstance(value, functools.partial):
        return f"partial({_text(value.func)}, {_text(value.args)}, {_text(value.keywords)})"
    if isinstance(value, type):
        return _class(value)
    return _object(value)


def _code(code: CodeType, doc: str | None = None) -> str:
    constants = [c for i, c in enumerate(code.co_consts) if i or doc is None or c != doc]
    return f"{code.co_code.hex()} {code.co_names} {_text(constants)}"


def _function(function: FunctionType) -> str:
    captured = [_cell(cell) for cell in function.__closure__ or ()]
    # A method may refer to its own class (super). Use only the class's name, or the walk would never end.
    inner = [c.__qualname__ if isinstance(c, type) else _text(c) for c in captured]
    defaults = _text([function.__defaults__, function.__kwdefaults__])
    return f"{_code(function.__code__, function.__doc__)} {inner} {defaults}"


def _cell(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _class(kind: type) -> str:
    if kind.__module__ == "builtins":
        return kind.__qualname__
    bases = [_class(base) for base in kind.__bases__]
    parts = {name: _member(part) for name, part in vars(kind).items() if not _hidden(name)}
    return f"class {bases} {sorted(parts.items())}"


def _member(part: object) -> str:
    part = getattr(part, "__func__", getattr(part, "fget", part))  # static and class methods, properties
    return _text(part) if isinstance(part, (FunctionType, *_PLAIN, tuple, frozenset)) else type(part).__name__


def _hidden(name: str) -> bool:
    return name.startswith("__") and name not in ("__init__", "__call__")


def _object(value: object) -> str:
    if hasattr(value, "__func__") and hasattr(value, "__self__"):  # a bound method: its code, and its object
        return f"{_text(value.__func__)} of {_object(value.__self__)}"
    if type(value).__module__ == "builtins":
        return getattr(value, "__qualname__", type(value).__qualname__)
    kept = {name: part for name, part in getattr(value, "__dict__", {}).items() if isinstance(part, _PLAIN)}
    return f"{_class(type(value))} {_text(kept)}"
