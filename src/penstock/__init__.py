"""Penstock: networks of boxes on streams, run on Apache Spark.

`import penstock as ps` gives what one needs to write a network; nothing of Spark is imported before a Runtime is.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock.model.boxes import Function
from penstock.model.combining import group_by, union
from penstock.model.durations import Count, Time
from penstock.model.errors import ExpressionError, NetworkError, PenstockError
from penstock.model.formats import callback, console, memory, rate
from penstock.model.formats import csv as _csv
from penstock.model.formats import json as _json
from penstock.model.formats import parquet as _parquet
from penstock.model.formats import rows as _rows
from penstock.model.network import Network
from penstock.model.places import with_place
from penstock.model.qos import QoS
from penstock.model.stream import Stream
from penstock.model.types import Schema
from penstock.model.windows import latch
from penstock.model.yaml_form import from_yaml, to_yaml

if TYPE_CHECKING:
    from penstock.runtime import Runtime as Runtime  # type: ignore

__version__ = "0.1.0"
csv, json, parquet, rows = with_place(_csv), with_place(_json), with_place(_parquet), with_place(_rows)

# what needs an engine comes when it is asked for
_LATER = {"Runtime": "penstock.runtime"}


def __getattr__(name: str) -> Any:
    """Names of the engine side, imported on first use."""
    if name not in _LATER:
        raise AttributeError(f"module 'penstock' has no attribute '{name}'")
    return getattr(import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_LATER])


__all__ = [
    "Count",
    "ExpressionError",
    "Function",
    "Network",
    "NetworkError",
    "PenstockError",
    "QoS",
    "Schema",
    "Stream",
    "Time",
    "callback",
    "console",
    "csv",
    "from_yaml",
    "group_by",
    "json",
    "latch",
    "memory",
    "parquet",
    "rate",
    "rows",
    "to_yaml",
    "union",
]
