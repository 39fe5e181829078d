"""Crashes on demand, also for users' tests: `penstock.store.crash` has the engine's crash points."""

from penstock.store.crash import VARIABLE, crash_at, crash_point, parse_plan, suspend_at

__all__ = ["VARIABLE", "crash_at", "crash_point", "parse_plan", "suspend_at"]
