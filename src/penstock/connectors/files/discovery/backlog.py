"""What waits in the files of a source: bytes by their sizes, tuples by what the bytes read so far have held.

Nothing is opened or read for it. So it costs the same for three files and for 100,000.
"""

from __future__ import annotations

from penstock.connectors.contract import Waiting
from penstock.connectors.files.discovery.file_log import FileLog

_FORGET = 64 << 20  # bytes after which the weight of what was read halves


class Backlog:
    """Watches how far the files of a log were read."""

    def __init__(self, log: FileLog) -> None:
        self._log = log
        self._bytes = self._tuples = 0.0

    def read(self, start: int, end: int, tuples: int) -> None:
        """Learn from a train: it read from one place to another, see `bytes_before`."""
        self._bytes, self._tuples = self._bytes + max(0, end - start), self._tuples + tuples
        if self._bytes > _FORGET:
            self._bytes, self._tuples = self._bytes / 2, self._tuples / 2

    def bytes_before(self, file: int, byte: int = 0) -> int:
        """How many bytes of all files lie before a place. Files count with the size they have on disk."""
        return self._log.bytes_before(file) + byte

    def waiting(self, file: int, byte: int = 0) -> Waiting:
        """What lies behind a place. The number of tuples is unknown before the first train."""
        left = max(0, self.bytes_before(len(self._log.known)) - self.bytes_before(file, byte))
        oldest = self._log.known[file].arrived if file < len(self._log.known) else None
        if oldest is None or not left:
            return Waiting(0, 0)
        tuples = round(left * self._tuples / self._bytes) if self._bytes else None
        return Waiting(tuples, left, oldest)
