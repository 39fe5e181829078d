"""Crashes on demand, for users' tests as well: see `penstock.store.crash`, where the engine reaches its crash
points.
"""

from penstock.store.crash import VARIABLE, crash_at, crash_point, parse_plan

__all__ = ["VARIABLE", "crash_at", "crash_point", "parse_plan"]
