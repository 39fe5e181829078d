"""The test kit: rows in, rows out, a clock set by hand, crashes on demand, one suite over all engines.

See docs/testing.md.

Names are loaded when first used: engine code imports `penstock.testing.crash`, which must not pull in the
rest.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.testing.clock import HandClock
    from penstock.testing.compare import assert_same_result, assert_same_rows, same_rows
    from penstock.testing.crash import crash_at, crash_point
    from penstock.testing.lists import collect, rows_source, values
    from penstock.testing.suite import Engine, engines, run_network

_HOME = {
    "HandClock": "clock",
    "assert_same_result": "compare", "assert_same_rows": "compare", "same_rows": "compare",
    "crash_at": "crash", "crash_point": "crash",
    "Engine": "suite", "engines": "suite", "run_network": "suite",
    "collect": "lists", "rows_source": "lists", "values": "lists",
}  # fmt: skip

__all__ = [
    "Engine", "HandClock", "assert_same_result", "assert_same_rows", "collect", "crash_at",
    "crash_point", "engines",
    "rows_source", "run_network", "same_rows", "values",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'penstock.testing' has no attribute '{name}'")
    return getattr(importlib.import_module(f"penstock.testing.{_HOME[name]}"), name)
