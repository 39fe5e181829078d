"""What a text from a client may name: nothing of the file system and no function but what the network names.

Whoever writes a network is its operator; a client of the console is not. So an edit may rearrange boxes, but
it reads no file and calls no function that the operator did not name, and it writes only into folders into
which the network writes already.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from penstock.model.errors import NetworkError, Where
from penstock.model.json_types import JsonObject
from penstock.web.errors import RefusedChangeError

_FUNCTIONS = ("function", "apply", "column_latch", "rows", "callback")
_ENDS = ("source", "output")
_HARMLESS = ("console", "memory", "rate")
_DEEPEST = 100
_HINT = "stop the run, and start it with a network that says so"


def must_name_nothing_new(text: str, plain_now: JsonObject) -> None:
    """Refuse a text with other files or functions than the running network; before any of it is imported."""
    boxes = _boxes(text)
    known = {name: box for name, box in _boxes_of(plain_now).items() if isinstance(box, dict)}
    functions = {function for box in known.values() for function in _functions(box)}
    for name, box in boxes.items():
        if not isinstance(box, dict):
            continue  # the reader says what is wrong with it
        for function in set(_functions(box)) - functions:
            raise RefusedChangeError(
                f"box '{name}' names the function {function}, which the running network does not", hint=_HINT
            )
        _check_end(name, box, known)


def _check_end(name: str, box: JsonObject, known: dict[str, JsonObject]) -> None:
    for end in _ENDS:
        given = box.get(end)
        if not isinstance(given, dict) or not given:
            continue
        if any(other.get(end) == given for other in known.values()):
            continue
        kind, location = next(iter(given.items()))
        if kind in _HARMLESS or (end == "output" and _beside(location, known)):
            continue
        what = "reads" if end == "source" else "writes"
        raise RefusedChangeError(
            f"box '{name}' {what} {kind} {location}, which the running network does not name",
            expected="a place of the network" if end == "source" else "a folder beside its other outputs",
            hint=_HINT,
        )


def _beside(path: object, known: dict[str, JsonObject]) -> bool:
    """Whether a path lies in the same folder as the path of an output of the network."""
    if not isinstance(path, str):
        return False
    outputs = [box["output"] for box in known.values() if isinstance(box.get("output"), dict)]
    paths = [next(iter(output.values()), None) for output in outputs]
    parents = {Path(path).resolve().parent for path in paths if isinstance(path, str)}
    return Path(path).resolve().parent in parents


def _functions(box: JsonObject) -> Iterator[str]:
    for key, value in box.items():
        if key in _FUNCTIONS and isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from _functions(value)


def _boxes(text: str) -> JsonObject:
    must_be_shallow(text)
    try:
        return _boxes_of(_loaded(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else 1
        fault = str(getattr(error, "problem", error))
        raise NetworkError("not YAML", where=Where("<edit>", line), found=fault) from None
    except RecursionError:
        raise NetworkError("the text is nested too deeply", where=Where("<edit>", 1)) from None


def must_be_shallow(text: str) -> None:
    """Refuse deep nesting before any parser sees it: parsers take the square of its depth.

    >>> must_be_shallow("[[1], (2)]")
    """
    depth = 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if depth > _DEEPEST:
            raise RefusedChangeError("the text is nested too deeply", expected=f"at most {_DEEPEST} levels")


def _loaded(text: str) -> object:
    """The plain values of a text. Aliases are refused: a few of them can stand for billions of values."""
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            line = 0 if event.start_mark is None else event.start_mark.line + 1
            raise NetworkError("an alias", where=Where("<edit>", line), expected="values written out")
    return yaml.safe_load(text)


def _boxes_of(plain: object) -> JsonObject:
    boxes = plain.get("boxes") if isinstance(plain, dict) else None
    return boxes if isinstance(boxes, dict) else {}


def no_functions(text: str) -> None:
    """Refuse a query text that names a function: it would be imported and run."""
    try:
        plain = _loaded(text)
    except (yaml.YAMLError, RecursionError):
        return  # the reader says it better
    for name, box in plain.items() if isinstance(plain, dict) else ():
        for function in _functions(box) if isinstance(box, dict) else ():
            raise RefusedChangeError(
                f"box '{name}' names the function {function}; a query from outside may not", hint=_HINT
            )
