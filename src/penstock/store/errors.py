"""The store's errors: what was found, what was expected and a hint, as everywhere in Penstock."""

from __future__ import annotations

from penstock.model.errors import PenstockError


class StoreError(PenstockError):
    """Something on disk is not as expected."""


class CorruptFileError(StoreError):
    """A committed file has another length or content than what was committed."""


class MissingFileError(StoreError):
    """A committed file is gone."""


class HistoryLostError(StoreError):
    """A reader wants entries that retention has already deleted."""


class LeaseLostError(StoreError):
    """A reader's lease expired and was removed; what the reader had not read may be gone."""


class OwnedError(StoreError):
    """Another process owns the checkpoint."""


class FencedError(StoreError):
    """Another process has taken over the checkpoint from this one."""
