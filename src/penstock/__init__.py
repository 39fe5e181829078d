"""Penstock: networks of boxes on streams, run on Apache Spark.

`import penstock as ps` gives what one needs to write a network. Names come when they are first used: the
Linear Road kit needs none of them, a network needs no Spark, and only a Runtime starts an engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.model.api import (
        Count,
        ExpressionError,
        Function,
        Join,
        Network,
        NetworkError,
        PenstockError,
        QoS,
        Schema,
        Stream,
        Time,
        callback,
        column_latch,
        console,
        csv,
        feed,
        from_yaml,
        group_by,
        join,
        json,
        latch,
        memory,
        parquet,
        rate,
        rows,
        stamped,
        to_yaml,
        union,
    )
    from penstock.runtime import Runtime

__version__ = "0.1.0"

__all__ = [
    "Count",
    "ExpressionError",
    "Function",
    "Join",
    "Network",
    "NetworkError",
    "PenstockError",
    "QoS",
    "Runtime",
    "Schema",
    "Stream",
    "Time",
    "callback",
    "column_latch",
    "console",
    "csv",
    "feed",
    "from_yaml",
    "group_by",
    "join",
    "json",
    "latch",
    "memory",
    "parquet",
    "rate",
    "rows",
    "stamped",
    "to_yaml",
    "union",
]


def __getattr__(name: str) -> Any:
    """Import a name on first use."""
    if name not in __all__:
        raise AttributeError(f"module 'penstock' has no attribute '{name}'")
    home = "penstock.runtime" if name == "Runtime" else "penstock.model.api"
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
