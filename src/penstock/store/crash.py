"""Where the crash points of the test kit are reached from."""

from penstock.testing.crash import crash_point

__all__ = ["crash_point"]
