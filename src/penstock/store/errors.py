"""What the store refuses, with what was found, what was expected and a hint, as everywhere in Penstock."""

from __future__ import annotations

from penstock.model.errors import PenstockError, told


class StoreError(PenstockError):
    """Something on disk is not as it should be; its parts are data, so that a page can show them."""

    def __init__(self, problem: str, *, found: str = "", expected: str = "", hint: str = "") -> None:
        self.problem, self.found, self.expected, self.hint = problem, found, expected, hint
        super().__init__(told(problem, found, expected, hint))

    def __reduce__(self) -> tuple[object, ...]:
        """Errors cross from Spark tasks to the driver, so they must survive pickling with their parts."""
        return _rebuild, (type(self), self.problem, self.found, self.expected, self.hint)


class CorruptFileError(StoreError):
    """A committed file is shorter, longer or other than what was committed."""


class MissingFileError(StoreError):
    """A committed file is gone."""


class HistoryLostError(StoreError):
    """A reader wants entries that retention has already deleted."""


class LeaseLostError(StoreError):
    """A reader's lease ran out and was taken away; what it had not read may be gone."""


def _rebuild(kind: type[StoreError], problem: str, found: str, expected: str, hint: str) -> StoreError:
    return kind(problem, found=found, expected=expected, hint=hint)
