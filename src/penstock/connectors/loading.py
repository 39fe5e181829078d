"""From a description to the class that does the work: the description names it, this module loads it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from penstock.connectors.contract import Input, Sink, Target, load_class
from penstock.connectors.files.discovery.source_files import must_exist
from penstock.model.boxes import Source
from penstock.model.errors import PenstockError
from penstock.model.formats.description import SinkFormat


def input_for(source: Source, directory: Path) -> Input[Any]:
    """The input of a source; it keeps what it must remember in `directory`."""
    opened: Input[Any] = _class(source.format.input, source.format.name)(source, directory)
    return opened


def check_sources(sources: Iterable[Source]) -> None:
    """Refuse sources that cannot be read, before anything is started for them."""
    for source in sources:
        must_exist(source)


def sink_for(to: SinkFormat, target: Target) -> Sink:
    """The sink of an output."""
    sink: Sink = _class(to.sink, to.name)(to, target)
    return sink


def _class(name: str, format_: str) -> type[Any]:
    try:
        return load_class(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise PenstockError(
            f"the connector of '{format_}' cannot be loaded",
            found=f"'{name}': {error}",
            expected="module:Class",
            hint="is everything that it needs installed?",
        ) from error
