"""The arguments of a box: each field holds the kind of value that its annotation declares.

So a new field needs no check of its own. A value of another kind is refused on the user's line, before it can
fail somewhere inside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import UnionType
from typing import TYPE_CHECKING

from penstock.model.boxes import Node
from penstock.model.durations import Extent
from penstock.model.error_location import located
from penstock.model.errors import ExpressionError, shown
from penstock.model.formats.description import SinkFormat, SourceFormat
from penstock.model.join_distribution import Diffusion
from penstock.model.qos import QoS
from penstock.model.types import Schema
from penstock.model.user_functions import Function

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Fits = Callable[[object], bool]


@dataclass(frozen=True)
class _Kind:
    """What an annotation accepts, and what an error says about it."""

    fits: Fits
    expected: str
    hint: str = ""


def check_arguments(node: Node) -> None:
    """Refuse a value of a wrong kind, with the name of the argument."""
    with located(node.name, node.where):
        _check(node)
        if isinstance(diffusion := getattr(node, "diffusion", None), Diffusion):
            _check(diffusion)


def _check(given: DataclassInstance) -> None:
    for field in fields(given):
        value = getattr(given, field.name)
        # Annotations are postponed, so they are texts; one that no table lists is not checked here.
        if field.type == _EXPRESSIONS:
            _expressions(field.name, value)
        elif (kind := _KINDS.get(str(field.type))) and not kind.fits(value):
            raise _refused(field.name, value, kind.expected, kind.hint)


def _expressions(part: str, pairs: object) -> None:
    if part == "on":
        if not _pairs(pairs):
            odd = [each for each in pairs if not _pairs((each,))] if isinstance(pairs, tuple) else [pairs]
            raise _refused(part, odd[0], "column names, or pairs (left, right) of them", 'on=["vid"]')
        return
    assert isinstance(pairs, tuple)
    for name, text in pairs:
        if not isinstance(name, str) or not isinstance(text, str):
            raise _refused(str(name), text, "a Spark SQL expression as text", f'{name}="{text}"')


def _refused(part: str, value: object, expected: str, hint: str = "") -> ExpressionError:
    # Of a list with one wrong item, show the item.
    if isinstance(value, tuple) and (odd := [each for each in value if not isinstance(each, str)]):
        value = odd[0]
    return ExpressionError(f"{part}: wrong kind of value", found=shown(value), expected=expected, hint=hint)


def _is(*types: type | UnionType) -> Fits:
    # For Python True is an int. For a user it is a mistake where a number is asked for.
    return lambda value: isinstance(value, types) and (bool in types or not isinstance(value, bool))


def _or_none(fits: Fits) -> Fits:
    return lambda value: value is None or fits(value)


def _tuple_of(fits: Fits) -> Fits:
    return lambda value: isinstance(value, tuple) and all(fits(each) for each in value)


_TEXT, _WHOLE, _NUMBER = _is(str), _is(int), _is(int, float)
_pairs = _tuple_of(lambda pair: isinstance(pair, tuple) and len(pair) == 2 and all(map(_TEXT, pair)))
_EXPRESSIONS = "tuple[tuple[str, str], ...]"
_SINKS = "one of: ps.csv, ps.json, ps.parquet, ps.console, ps.memory, ps.callback"
_SOURCES = "one of: ps.csv, ps.json, ps.parquet, ps.rows, ps.rate, ps.feed"
_KINDS: Mapping[str, _Kind] = {  # by annotation
    "str": _Kind(_TEXT, "a text"),
    "str | None": _Kind(_or_none(_TEXT), "a text, or None"),
    "bool": _Kind(_is(bool), "True or False"),
    "int": _Kind(_WHOLE, "a whole number"),
    "int | None": _Kind(_or_none(_WHOLE), "a whole number, or None"),
    "float": _Kind(_NUMBER, "a number"),
    "float | None": _Kind(_or_none(_NUMBER), "a number, or None"),
    "tuple[str, ...]": _Kind(_tuple_of(_TEXT), "column names as texts", '"vid", "seg"'),
    "tuple[int, int]": _Kind(
        lambda value: isinstance(value, tuple) and len(value) == 2 and all(map(_WHOLE, value)),
        "a length of time, or a pair of them",
        "'1 minute'",
    ),
    "Schema": _Kind(_is(Schema), "columns as text or as a Schema", "'time TIMESTAMP, vid INT'"),
    "Extent": _Kind(_is(Extent), "a length", "'1 minute' or '100 tuples'"),
    "Extent | None": _Kind(_or_none(_is(Extent)), "a length", "'1 minute' or '100 tuples'"),
    "Function": _Kind(_is(Function), "a function, or the text 'module:function'"),
    "Function | None": _Kind(_or_none(_is(Function)), "a function, or the text 'module:function'"),
    "QoS | None": _Kind(_or_none(_is(QoS)), "a QoS", "ps.QoS(delay=[(0, 1.0), (5, 1.0), (30, 0.0)])"),
    "Diffusion": _Kind(_is(Diffusion), "a Diffusion"),
    "SourceFormat": _Kind(_is(SourceFormat), _SOURCES, 'ps.csv("in/", schema="time TIMESTAMP, vid INT")'),
    "SinkFormat": _Kind(_is(SinkFormat), _SINKS, 'to=ps.parquet("out/jams")'),
}
