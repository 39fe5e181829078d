"""The stream of changes of one answer: what has come in and what has left since the client was last told.

Answers are sets that change (P10), not logs: a sliding window loses rows as well. Differences are taken of multisets of rows, at the trains at which the
answer was looked at; a client that reads slowly gets the sum of several trains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.standing.errors import UnknownHandleError

if TYPE_CHECKING:
    from penstock.standing.soup import Soup


@dataclass(frozen=True)
class Change:
    """Rows that came and rows that left, and the version of the visible prefix at which the answer is so."""

    version: int
    added: pa.Table
    removed: pa.Table

    @property
    def empty(self) -> bool:
        return not self.added.num_rows and not self.removed.num_rows


def difference(before: pa.Table, after: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Rows of `after` that `before` lacks, and the other way round, each as often as it is lacking.

    >>> one, other = pa.table({"v": [1, 1, 2]}), pa.table({"v": [1, 3]})
    >>> [table["v"].to_pylist() for table in difference(one, other)]
    [[3], [1, 2]]
    """
    return _lacking(after, before), _lacking(before, after)


def _lacking(one: pa.Table, other: pa.Table) -> pa.Table:
    spare = Counter(_rows(other))
    chosen = []
    for i, row in enumerate(_rows(one)):
        if spare[row] > 0:
            spare[row] -= 1
        else:
            chosen.append(i)
    return one.take(pa.array(chosen, pa.int64()))


def _rows(table: pa.Table) -> list[Any]:
    columns = [["nan" if v != v else v for v in column.to_pylist()] for column in table.columns]  # noqa: PLR0124
    return list(zip(*columns, strict=True)) if columns else []


def changes(soup: Soup, handle: str, timeout: float | None = None) -> Iterator[Change]:
    """Changes until nothing has happened for `timeout` seconds (None: for ever) or the query is unregistered."""
    for change in watch(soup, handle, timeout):
        if change is None:
            return
        yield change


def watch(soup: Soup, handle: str, beat: float | None) -> Iterator[Change | None]:
    """The changes, and None whenever nothing was visible for `beat` seconds; ends when the query is unregistered."""
    version, held = soup.version, soup.invoke(handle)
    yield Change(version, held, held.slice(0, 0))
    while handle in soup.queries:
        if not soup.wait(version, beat):
            yield None
            continue
        version = soup.version
        try:
            now = soup.invoke(handle)
        except UnknownHandleError:
            return  # unregistered while we waited
        change = Change(version, *difference(held, now))
        held = now
        if not change.empty:
            yield change
