"""Expressions over a result file: `jobs[job=tumble].ratio_s`, `max(samples.heap) / 1e3`.

A path starts at the figures, or at another part of the file such as `config` or `load`. `[name=value]` picks
the rows of a list in which `name` has this value, `[0]` one by its number, `["a b"]` a key with spaces, `.*`
all values. A name after several rows gives the list of their values, for `min`, `max`, `mean`, `median`,
`sum` and `len`.
"""

from __future__ import annotations

import ast
import re
import statistics
from collections.abc import Callable, Mapping
from typing import Any

_NAME = r"[A-Za-z_]\w*"
_STEP = r"\.\*|\.[\w-]+|\[[^\]]*\]"
_PATH = re.compile(rf"(?:{_NAME}|(?=\[))(?:{_STEP})*")
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "sum": sum,
    "len": len,
    "abs": abs,
    "mean": statistics.fmean,
    "median": statistics.median,
}
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
}


class ExpressionError(ValueError):
    """An expression that cannot be evaluated; the message says why."""


def evaluate(text: str, result: Mapping[str, Any]) -> float:
    """The number that an expression gives for a result file.

    >>> result = {"figures": {"jobs": [{"job": "a b", "s": 3}, {"job": "c", "s": 2}]}, "load": {"after": 1.5}}
    >>> evaluate("jobs[job=a b].s / jobs[1].s", result), evaluate("max(jobs.s) + load.after", result)
    (1.5, 4.5)
    """
    values: dict[str, Any] = {}

    def named(match: re.Match[str]) -> str:
        path = match[0]
        if path in _FUNCTIONS:
            return path
        name = f"value_{len(values)}"
        values[name] = look_up(path, result)
        return name

    # Numbers such as 1e6 are no names.
    parts = re.split(r"(\b\d[\d_.]*(?:[eE][+-]?\d+)?\b(?![^\[]*\]))", text)
    code = "".join(part if i % 2 else _PATH.sub(named, part) for i, part in enumerate(parts))
    try:
        value = _value(ast.parse(code.strip(), mode="eval").body, values)
    except (SyntaxError, TypeError, ValueError, ZeroDivisionError) as error:
        raise ExpressionError(f"'{text}' cannot be evaluated: {error}") from error
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ExpressionError(f"'{text}' gives {_short(value)}, not a number")
    return value


def _value(node: ast.expr, values: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name) if name in values:
            return values[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, values)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            return _ARITHMETIC[type(op)](_value(left, values), _value(right, values))
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_value(argument, values) for argument in arguments))
    raise ValueError("only paths, numbers, + - * / and a few functions are allowed")


def look_up(path: str, result: Mapping[str, Any]) -> Any:
    """Follow a path from the figures, or from the root of the file."""
    steps = re.findall(rf"^{_NAME}|{_STEP}", path)
    figures = result.get("figures")
    first = steps[0].lstrip(".")
    in_figures = first in figures if isinstance(figures, dict) else first not in result
    value: Any = figures if in_figures or first.startswith("[") else result
    for step in steps:
        value = _follow(value, step, path)
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _follow(value: Any, step: str, path: str) -> Any:
    key = step.strip(".[]").strip('"')
    if step == ".*" and isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list) and step.startswith("[") and "=" in key:
        name, _, wanted = key.partition("=")
        rows = [row for row in value if str(row.get(name)) == wanted]
        if not rows:
            raise ExpressionError(f"'{path}': no row has {name} = {wanted}")
        return rows
    if isinstance(value, list):
        if re.fullmatch(r"-?\d+", key) and -len(value) <= int(key) < len(value):
            return value[int(key)]
        values = [_follow(part, step, path) for part in value if isinstance(part, dict | list)]
        if values:
            return values[0] if len(value) == 1 else values
    if isinstance(value, dict) and key in value:
        return value[key]
    there = ", ".join(map(str, value)) if isinstance(value, dict) else _short(value)
    raise ExpressionError(f"'{path}': there is no {key}; there is: {there[:200]}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
