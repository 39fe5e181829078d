"""The errors of Linear Road.

Like every error of Penstock, they say what was found, what was expected, and a hint.
"""

from __future__ import annotations

from penstock.model.errors import PenstockError


class LinearRoadError(PenstockError):
    """Everything that Linear Road raises on purpose."""


class InputError(LinearRoadError):
    """An input, a history, a directory or an option that cannot be used."""


class GenerateError(LinearRoadError):
    """Traffic that cannot be generated."""


class TargetError(LinearRoadError):
    """A target that the driver cannot deliver to."""


class ClockError(LinearRoadError):
    """A clock that cannot be read, or a run that has none."""


class CompareError(LinearRoadError):
    """Two results that cannot be compared."""


class RunError(LinearRoadError):
    """A run that could not continue."""


class RateError(LinearRoadError):
    """A rating that could not continue."""


class RunStopped(LinearRoadError):  # noqa: N818 - somebody asked for it
    """A run that was stopped before anything was driven; the same call continues it."""

    def __init__(self) -> None:
        super().__init__("stopped before anything was driven", hint="the same command goes on")
