"""The reference engine: rows are dicts, boxes are loops; slow and obvious, so that the other engines can be
held against it.

Names come when first used: Spark's workers need single modules of it, not the engine.
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
