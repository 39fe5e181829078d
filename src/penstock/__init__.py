"""Penstock: networks of boxes on streams, run on Apache Spark.

`import penstock as ps` gives what one needs to write a network: the names of `penstock.model.api`, `Runtime`,
`Control` and `Console`. Names come when they are first used: the Linear Road kit needs none of them, a
network needs no Spark, and only a Runtime starts an engine.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.control.control import Control as Control
    from penstock.model.api import *  # noqa: F403 - the one list of names is there
    from penstock.runtime import Runtime as Runtime
    from penstock.web.console import Console as Console

__version__ = "0.1.0"

_ROOMS = {
    "Console": "penstock.web.console",
    "Control": "penstock.control.control",
    "Runtime": "penstock.runtime",
}
"""Names that are not of the model, and where they come from."""


def __getattr__(name: str) -> Any:
    """Import a name on first use."""
    if name == "__all__":
        return _public_names()
    if name in _ROOMS:
        return getattr(import_module(_ROOMS[name]), name)
    if _may_be_public(name) and name in _public_names():
        return getattr(import_module("penstock.model.api"), name)
    raise AttributeError(f"module 'penstock' has no attribute '{name}'")


def _public_names() -> list[str]:
    return sorted([*import_module("penstock.model.api").__all__, *_ROOMS])


def _may_be_public(name: str) -> bool:
    # `from penstock import linear_road` asks for the attribute before it imports the folder: that must not
    # load all that networks are written with.
    return not name.startswith("_") and find_spec(f"penstock.{name}") is None


def __dir__() -> list[str]:
    return sorted([*globals(), *_public_names()])
