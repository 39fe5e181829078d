"""Errors for clients of standing queries: what is wrong, what was found, what was expected, a hint."""

from __future__ import annotations

from penstock.model.errors import PenstockError


class QueryError(PenstockError):
    """A query that cannot be registered or invoked; its parts are data, so that HTTP can send them on.

    >>> print(QueryError("no stream 'report'", hint="did you mean 'reports'?"))
    no stream 'report'
      hint:     did you mean 'reports'?
    """

    kind = "refused"


class LimitError(QueryError):
    """A client asks for more than it may have: queries, or rows of one answer."""

    kind = "limit"


class UnknownHandleError(QueryError):
    """No standing query has this handle: it was never registered, or it was unregistered."""

    kind = "unknown handle"


class NotRetainedError(QueryError):
    """The window reaches back to tuples that retention has deleted."""

    kind = "not retained"


class OutOfTimeError(QueryError):
    """The work for a client took longer than the server allows, and was cancelled."""

    kind = "out of time"


class StaleError(QueryError):
    """The network has failed or lags, so its answers no longer say how things are."""

    kind = "stale"
