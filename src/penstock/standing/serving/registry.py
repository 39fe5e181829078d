"""The registry: standing queries on disk. A query whose handle a client has survives any crash.

Only the queries are stored. Their results follow from them and from the connection points' tuples, which are
already durable. After a restart they are computed again, and an invocation then sees at least as much as
before.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_TABLE = """CREATE TABLE IF NOT EXISTS queries (
    handle TEXT PRIMARY KEY, client TEXT NOT NULL, text TEXT NOT NULL, mode TEXT, created REAL NOT NULL)"""


@dataclass(frozen=True)
class RegistryEntry:
    """One registered query as the client asked for it; `mode` None: the rule decides."""

    handle: str
    client: str
    text: str
    mode: str | None
    created: float


class Registry:
    """A small SQLite file; every method may be called from any thread.

    >>> import tempfile
    >>> registry = Registry(Path(tempfile.mkdtemp()) / "registry.db")
    >>> registry.add([RegistryEntry("q-1", "me", "SELECT v FROM cars", None, 0.0)])
    >>> [entry.handle for entry in registry.entries()]
    ['q-1']
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        # With a write-ahead log, a killed process loses nothing that was committed.
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute(_TABLE)

    def add(self, entries: Iterable[RegistryEntry]) -> None:
        """Add all or none; they are on disk when this returns."""
        rows = [(e.handle, e.client, e.text, e.mode, e.created) for e in entries]
        with self._lock:
            self._db.execute("BEGIN")
            try:
                self._db.executemany("INSERT INTO queries VALUES (?, ?, ?, ?, ?)", rows)
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def remove(self, handle: str) -> None:
        """Forget a query; a missing one does no harm."""
        with self._lock:
            self._db.execute("DELETE FROM queries WHERE handle = ?", (handle,))

    def entries(self) -> list[RegistryEntry]:
        """All queries in the order of registration."""
        with self._lock:
            rows = self._db.execute("SELECT * FROM queries ORDER BY rowid").fetchall()
        return [RegistryEntry(*row) for row in rows]

    def close(self) -> None:
        with self._lock:
            self._db.close()
