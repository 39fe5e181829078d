"""What the oracle has finished, kept in its own database.

Idea: every unit of work (some chunks of rows, one expressway of one step) is one transaction together with
the note that it is done. So a database found after a kill holds only complete units, and the next run skips
them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import duckdb

_TABLE = "CREATE TABLE IF NOT EXISTS finished (unit VARCHAR PRIMARY KEY, state VARCHAR)"


class Journal:
    """The notes of finished units in the database `con`."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self._con = con
        con.execute(_TABLE)
        self.finished: dict[str, object] = {
            unit: json.loads(state) for unit, state in con.execute("FROM finished").fetchall()
        }
        """What an earlier run had finished when this one began."""

    def once(self, unit: str, work: Callable[[], None]) -> None:
        """Do a unit of work, unless an earlier run has done it.

        >>> done = []
        >>> journal = Journal(duckdb.connect())
        >>> journal.once("trips 0", lambda: done.append(0))
        >>> Journal(journal._con).once("trips 0", lambda: done.append(1))
        >>> done
        [0]
        """
        if unit not in self.finished:
            # No rollback: a unit that fails ends the run, and a closed database keeps nothing uncommitted.
            self.begin()
            work()
            self.commit(unit)

    def begin(self) -> None:
        """Begin a unit that is committed by hand."""
        self._con.execute("BEGIN")

    def commit(self, unit: str, state: Mapping[str, object] | None = None) -> None:
        """Record a unit as done, or its progress, together with all that was written since `begin`."""
        self._con.execute("INSERT OR REPLACE INTO finished VALUES (?, ?)", [unit, json.dumps(state)])
        self._con.execute("COMMIT")
