"""Descriptions by name: our own, and those that other packages register.

A package registers a description class under the entry point group `penstock.sources` or `penstock.sinks`.
The name of the entry point is the word in YAML. Its module is imported only when a network names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points

from penstock.model.errors import ExpressionError, did_you_mean
from penstock.model.formats.callback import Callback
from penstock.model.formats.console import Console
from penstock.model.formats.description import Format, Role, SinkFormat, SourceFormat
from penstock.model.formats.feed import Feed
from penstock.model.formats.files import Csv, Json, Parquet
from penstock.model.formats.memory import Memory
from penstock.model.formats.rate import Rate
from penstock.model.formats.rows import Rows

SOURCES, SINKS = "penstock.sources", "penstock.sinks"
_GROUPS: Mapping[Role, tuple[str, type[Format]]] = {
    "source": (SOURCES, SourceFormat),
    "sink": (SINKS, SinkFormat),
}
_OWN: Mapping[Role, Mapping[str, type[Format]]] = {
    "source": {kind.name: kind for kind in (Csv, Json, Parquet, Feed, Rate, Rows)},
    "sink": {kind.name: kind for kind in (Csv, Json, Parquet, Console, Memory, Callback)},
}


def names(role: Role) -> tuple[str, ...]:
    """The words that a source or an output may name."""
    return (*_OWN[role], *sorted(point.name for point in _registered(role)))


def description(role: Role, name: str) -> type[Format]:
    """The description class of a name.

    >>> description("source", "csv").__name__
    'Csv'
    """
    if name in _OWN[role]:
        return _OWN[role][name]
    for point in _registered(role):
        if point.name == name:
            return _loaded(point, _GROUPS[role][1])
    known = names(role)
    raise ExpressionError(
        f"unknown format '{name}'", expected=f"one of: {', '.join(known)}", hint=did_you_mean(name, known)
    )


def _registered(role: Role) -> Iterable[EntryPoint]:
    return entry_points(group=_GROUPS[role][0])


def _loaded(point: EntryPoint, expected: type[Format]) -> type[Format]:
    try:
        kind = point.load()
    except Exception as error:
        raise ExpressionError(
            f"the connector '{point.name}' cannot be loaded from '{point.value}'",
            found=f"{type(error).__name__}: {error}",
            hint="is its package installed completely?",
        ) from error
    if not (isinstance(kind, type) and issubclass(kind, expected)):
        raise ExpressionError(
            f"the entry point '{point.name}' is not a description",
            found=f"'{point.value}'",
            expected=f"a subclass of {expected.__module__}.{expected.__name__}",
        )
    return kind
