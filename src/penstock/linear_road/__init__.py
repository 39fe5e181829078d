"""Linear Road: the benchmark as a network, and its kit (traffic, history, driver, validator) for any engine.

These names are what a user needs. Each is imported when it is first used: the kit's tools need no engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.linear_road.network.road import road_network
    from penstock.linear_road.network.start import road_runtime, warm_up

_MODULES = {
    "road_network": "network.road",
    "road_runtime": "network.start",
    "warm_up": "network.start",
}

__all__ = ["road_network", "road_runtime", "warm_up"]


def __getattr__(name: str) -> Any:
    """Import a name on first use."""
    if name not in _MODULES:
        raise AttributeError(f"module 'penstock.linear_road' has no attribute '{name}'")
    return getattr(import_module(f"penstock.linear_road.{_MODULES[name]}"), name)
