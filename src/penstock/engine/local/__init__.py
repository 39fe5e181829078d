"""The reference engine: slow and obvious, for comparison with the other engines.

Rows are dicts, and boxes are loops. Names are imported on first use, because Spark's workers need single
modules of it and not the engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.engine.local.engine import LocalEngine, LocalResult
    from penstock.engine.local.rows import DeadLetter

__all__ = ["DeadLetter", "LocalEngine", "LocalResult"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'penstock.engine.local' has no attribute '{name}'")
    return getattr(
        import_module("penstock.engine.local." + ("rows" if name == "DeadLetter" else "engine")), name
    )
