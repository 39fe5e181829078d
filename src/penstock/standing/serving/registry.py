"""The registry: standing queries on disk. A query whose handle a client has survives any crash.

Only the queries are stored. Their results follow from them and from the connection points' tuples, which are
already durable. After a restart they are computed again, and an invocation then sees at least as much as
before.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.model.errors import PenstockError
from penstock.store.durable import FILE_MODE, make_directory

_TABLE = """CREATE TABLE IF NOT EXISTS queries (
    handle TEXT PRIMARY KEY, owner TEXT NOT NULL, client TEXT NOT NULL, text TEXT NOT NULL, mode TEXT,
    created REAL NOT NULL)"""
_COLUMNS = "handle, owner, client, text, mode, created"


@dataclass(frozen=True)
class RegistryEntry:
    """One registered query as the client asked for it; `mode` None: the rule decides."""

    handle: str
    owner: str
    client: str
    text: str
    mode: str | None
    created: float


class Registry:
    """A small SQLite file; every method may be called from any thread.

    >>> import tempfile
    >>> registry = Registry(Path(tempfile.mkdtemp()) / "registry.db")
    >>> registry.add([RegistryEntry("q-1", "", "me", "SELECT v FROM cars", None, 0.0)])
    >>> [entry.handle for entry in registry.entries()]
    ['q-1']
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        make_directory(path.parent)
        path.touch(mode=FILE_MODE)  # before SQLite makes it; its other files take the same mode
        self._lock = threading.Lock()
        with self._readable():
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            # With a write-ahead log, a killed process loses nothing that was committed.
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute(_TABLE)
            self._db.execute(f"SELECT {_COLUMNS} FROM queries LIMIT 0")

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Say in a sentence that the file is none of ours, or damaged."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise PenstockError(
                f"{self._path} is not a registry of standing queries, or it is damaged",
                found=str(error),
                hint="put back a copy, or move it away: then the queries in it are gone, but no tuples",
            ) from error

    def add(self, entries: Iterable[RegistryEntry]) -> None:
        """Add all or none; they are on disk when this returns."""
        rows = [(e.handle, e.owner, e.client, e.text, e.mode, e.created) for e in entries]
        with self._lock, self._readable():
            self._db.execute("BEGIN")
            try:
                self._db.executemany("INSERT INTO queries VALUES (?, ?, ?, ?, ?, ?)", rows)
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def remove(self, handle: str) -> None:
        """Forget a query; a missing one does no harm."""
        with self._lock, self._readable():
            self._db.execute("DELETE FROM queries WHERE handle = ?", (handle,))

    def entries(self) -> list[RegistryEntry]:
        """All queries in the order of registration."""
        with self._lock, self._readable():
            rows = self._db.execute(f"SELECT {_COLUMNS} FROM queries ORDER BY rowid").fetchall()
        return [RegistryEntry(*row) for row in rows]

    def close(self) -> None:
        with self._lock:
            self._db.close()
