"""What the store refuses, with what was found, what was expected and a hint, as everywhere in Penstock."""

from __future__ import annotations

from penstock.model.errors import PenstockError


class StoreError(PenstockError):
    """Something on disk is not as it should be."""


class CorruptFileError(StoreError):
    """A committed file is shorter, longer or other than what was committed."""


class MissingFileError(StoreError):
    """A committed file is gone."""


class HistoryLostError(StoreError):
    """A reader wants entries that retention has already deleted."""


class LeaseLostError(StoreError):
    """A reader's lease ran out and was taken away; what it had not read may be gone."""
