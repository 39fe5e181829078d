"""The reference engine: rows are dicts, boxes are loops; slow and obvious, so that the other engines can be held against it."""

from penstock.engine.local.engine import LocalEngine, LocalResult
from penstock.engine.local.rows import DeadLetter

__all__ = ["DeadLetter", "LocalEngine", "LocalResult"]
