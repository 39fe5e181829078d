"""Standing queries (PSoup): register once, invoke any time, over data from before and after. See docs/standing.md.

Names come when they are first used: the soup itself needs no Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.standing.errors import LimitError, NotRetainedError, QueryError, UnknownHandleError
    from penstock.standing.registered import Limits
    from penstock.standing.service import Handle, StandingQueries
    from penstock.standing.soup import Soup

_HOMES = {
    "Handle": "service",
    "LimitError": "errors",
    "Limits": "registered",
    "NotRetainedError": "errors",
    "QueryError": "errors",
    "Soup": "soup",
    "StandingQueries": "service",
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
