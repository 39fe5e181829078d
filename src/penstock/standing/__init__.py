"""Standing queries (PSoup): register once, invoke any time, over data from before and after. See docs/standing.md.

Names come when they are first used: the soup itself needs no Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.standing.answers.registered import Limits
    from penstock.standing.answers.soup import Soup
    from penstock.standing.errors import LimitError, NotRetainedError, QueryError, UnknownHandleError
    from penstock.standing.serving.service import Handle, StandingQueries

_HOMES = {
    "Handle": "serving.service",
    "LimitError": "errors",
    "Limits": "answers.registered",
    "NotRetainedError": "errors",
    "QueryError": "errors",
    "Soup": "answers.soup",
    "StandingQueries": "serving.service",
    "UnknownHandleError": "errors",
}

__all__ = [
    "Handle",
    "LimitError",
    "Limits",
    "NotRetainedError",
    "QueryError",
    "Soup",
    "StandingQueries",
    "UnknownHandleError",
]


def __getattr__(name: str) -> Any:
    """Import a name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'penstock.standing' has no attribute '{name}'")
    return getattr(import_module(f"penstock.standing.{_HOMES[name]}"), name)
