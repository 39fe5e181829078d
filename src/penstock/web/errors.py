"""Why the console refuses something; each kind has its HTTP status in `routes/error_statuses.py`."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.model.errors import PenstockError


class LookingOnlyError(PenstockError):
    """The network does not run in this process, so nothing can be changed here."""

    kind = "looking only"


class VersionMovedError(PenstockError):
    """Somebody else has changed the network since the client last read it."""

    kind = "moved"

    def __init__(self, *, sent: int, now: int, difference: Sequence[str]) -> None:
        self.sent, self.now, self.difference = sent, now, list(difference)
        super().__init__(
            "the network has changed meanwhile",
            found=f"version {now}",
            expected=f"version {sent}",
            hint="look at the difference, then try again with the new version",
        )


class RefusedChangeError(PenstockError):
    """A change that cannot be made as it was asked for."""

    kind = "refused"


class UnknownNameError(PenstockError):
    """Something that the network does not have."""

    kind = "unknown"


class EditingOffError(PenstockError):
    """A network without a text form cannot be edited as text."""

    kind = "editing off"
