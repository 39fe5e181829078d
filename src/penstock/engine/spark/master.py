"""Spark's master: where the tasks run. This needs no PySpark, so `penstock explain` can ask without it."""

from __future__ import annotations

import os

from penstock.process.cores import usable_cores

TASK_ATTEMPTS = 4
"""As on a cluster, a task may fail before its train does: a killed worker costs one task, not the train."""


def default_master() -> str:
    """The master of a session of our own, if nobody names one."""
    return os.environ.get("MASTER", f"local[{cores()},{TASK_ATTEMPTS}]")


def names_this_host(master: str | None) -> bool:
    """Whether all tasks run on this host; None: with the master that is taken if nobody names one.

    >>> names_this_host("local[2]"), names_this_host("spark://elsewhere:7077")
    (True, False)
    """
    return (master or default_master()).startswith("local")


def cores() -> int:
    """The cores that a session of our own uses."""
    return max(2, usable_cores())
