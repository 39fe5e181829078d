"""The stream of changes of one answer: what has come in and what has left since the client last heard.

Answers are sets that change (P10), not logs: a sliding window also loses rows. Changes are differences of
multisets of rows between the trains at which the answer was looked at. A client that reads slowly gets the
sum of several trains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.standing.deadline import check_time
from penstock.standing.errors import LimitError, UnknownHandleError

if TYPE_CHECKING:
    from penstock.standing.answers.query_engine import QueryEngine


@dataclass(frozen=True)
class Change:
    """Rows that came, rows that left, and the version of the visible prefix that has this answer."""

    version: int
    added: pa.Table
    removed: pa.Table

    @property
    def empty(self) -> bool:
        return not self.added.num_rows and not self.removed.num_rows


def difference(before: pa.Table, after: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Rows that only `after` has, and rows that only `before` has, with multiplicity.

    >>> one, other = pa.table({"v": [1, 1, 2]}), pa.table({"v": [1, 3]})
    >>> [table["v"].to_pylist() for table in difference(one, other)]
    [[3], [1, 2]]
    """
    return _lacking(after, before), _lacking(before, after)


def _check_followed(answer: pa.Table, most: int) -> None:
    if answer.num_rows > most:
        raise LimitError(
            f"the answer has {answer.num_rows:,} rows",
            expected=f"at most {most:,} to be followed",
            hint="narrow the query or its window, or invoke it now and then",
        )


def _lacking(one: pa.Table, other: pa.Table) -> pa.Table:
    check_time()
    spare = Counter(_rows(other))
    chosen = []
    for i, row in enumerate(_rows(one)):
        if spare[row] > 0:
            spare[row] -= 1
        else:
            chosen.append(i)
    return one.take(pa.array(chosen, pa.int64()))


def _rows(table: pa.Table) -> list[tuple[object, ...]]:
    # NaN is a value like any other here, though it does not equal itself.
    columns = [
        ["nan" if v != v else v for v in column.to_pylist()]  # noqa: PLR0124 - see above
        for column in table.columns
    ]
    return list(zip(*columns, strict=True)) if columns else []


def changes(engine: QueryEngine, handle: str, timeout: float | None = None) -> Iterator[Change]:
    """Changes until `timeout` seconds pass without one (None: for ever), or the query is unregistered."""
    for change in watch(engine, handle, timeout):
        if change is None:
            return
        yield change


def watch(engine: QueryEngine, handle: str, beat: float | None) -> Iterator[Change | None]:
    """The changes, and None whenever nothing new was visible for `beat` seconds.

    Ends when the query is unregistered.
    """
    following = ChangeFollower(engine, handle)
    yield following.step()
    while engine.wait(following.version, beat, handle) or handle in engine.queries:
        try:
            change = following.step()
        except UnknownHandleError:
            return  # unregistered while we waited
        if change is not None or following.idle:
            yield change


class ChangeFollower:
    """One follower of an answer, which knows what it was last told.

    `step` never waits, so it may run in any thread.
    """

    def __init__(self, engine: QueryEngine, handle: str) -> None:
        self._engine, self._handle = engine, handle
        self.answer: pa.Table | None = None  # what the follower knows
        self.version = -1
        self.idle = False  # it has seen all that is visible

    def step(self) -> Change | None:
        """What has changed since the last step; the first step brings the whole answer. None: nothing."""
        self.idle = self._engine.version == self.version
        if self.idle and self._handle in self._engine.queries:
            return None
        self.version = self._engine.version
        now, before = self._engine.invoke(self._handle), self.answer
        _check_followed(now, self._engine.limits.followed_rows)
        self.answer = now
        if before is None:
            return Change(self.version, now, now.slice(0, 0))
        change = Change(self.version, *difference(before, now))
        return None if change.empty else change
