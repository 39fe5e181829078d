"""Linear Road: traffic, history, driver, validator, and the benchmark itself as a network (`network`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.linear_road.pipeline import network

__all__ = ["network"]


def __getattr__(name: str) -> Any:
    """The network comes when it is first used: the kit's tools need no engine."""
    if name not in __all__:
        raise AttributeError(f"module 'penstock.linear_road' has no attribute '{name}'")
    from penstock.linear_road import pipeline

    return getattr(pipeline, name)
