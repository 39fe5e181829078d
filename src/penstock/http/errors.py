"""Errors of every service: it has too much to do, or a request takes too long."""

from __future__ import annotations

from penstock.model.errors import PenstockError


class BusyError(PenstockError):
    """More work waits than the service takes on; the client may try again."""

    kind = "busy"


class TookTooLongError(PenstockError):
    """Work was given up because its time was over."""

    kind = "out of time"
