"""Standing queries (PSoup): register once, invoke any time, over data from before and after.

See docs/standing.md. Names are imported on first use, because the engine itself needs no Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.standing.answers.query_engine import QueryEngine
    from penstock.standing.errors import (
        LimitError,
        NotRetainedError,
        OutOfTimeError,
        QueryError,
        StaleError,
        UnknownHandleError,
    )
    from penstock.standing.limits import Limits
    from penstock.standing.serving.service import Handle, StandingQueries

_HOMES = {
    "Handle": "serving.service",
    "LimitError": "errors",
    "Limits": "limits",
    "NotRetainedError": "errors",
    "OutOfTimeError": "errors",
    "QueryError": "errors",
    "QueryEngine": "answers.query_engine",
    "StaleError": "errors",
    "StandingQueries": "serving.service",
    "UnknownHandleError": "errors",
}

__all__ = [
    "Handle",
    "LimitError",
    "Limits",
    "NotRetainedError",
    "OutOfTimeError",
    "QueryEngine",
    "QueryError",
    "StaleError",
    "StandingQueries",
    "UnknownHandleError",
]


def __getattr__(name: str) -> object:
    """Import a name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'penstock.standing' has no attribute '{name}'")
    return getattr(import_module(f"penstock.standing.{_HOMES[name]}"), name)
