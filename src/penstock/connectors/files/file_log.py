"""Which files a path has brought, in which order and when. It makes a folder a stream that can be reread."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from penstock.store.durable import write_bytes

_LOG = "files.jsonl"


@dataclass(frozen=True)
class KnownFile:
    """A file of the stream. It is read up to the size it had when discovered."""

    path: str
    size: int
    arrived: float


class FileLog:
    """The files of a path in order of discovery, stored on disk so that each keeps its number."""

    def __init__(self, path: str, directory: Path) -> None:
        self._path, self._log = Path(path), directory / _LOG
        directory.mkdir(parents=True, exist_ok=True)
        # Files present when the network first looks count as arriving just now.
        self._born = 0.0 if self._log.exists() else time.time()
        self.known: list[KnownFile] = self._remembered() if self._log.exists() else []
        self._names = {file.path for file in self.known}

    def _remembered(self) -> list[KnownFile]:
        lines = self._log.read_text().splitlines(keepends=True)
        if lines and not lines[-1].endswith("\n"):
            # The process died while writing the last line. That file is discovered again. The log is replaced
            # as a whole, because the numbers of all files depend on it.
            lines.pop()
            write_bytes(self._log, "".join(lines).encode(), sync=False)
        return [KnownFile(*json.loads(line)) for line in lines]

    def discover(self) -> None:
        """Look for new files. As for Spark's file source, a file must be complete when its name appears."""
        first = self._unknown()
        if not first:
            return
        # A listing is not atomic: it may miss a file that came while it was made, yet show a later one. The
        # next listing has both. So its files up to that time belong to this look, in its order.
        until = max(stat.st_mtime_ns for stat in first.values())
        both = {name: s for name, s in self._unknown().items() if name in first or s.st_mtime_ns <= until}
        # For a file moved here, only the time of its renaming tells when it came.
        fresh = sorted(
            (s.st_mtime_ns, name, s.st_size, max(s.st_ctime, self._born)) for name, s in both.items()
        )
        self._remember([KnownFile(name, size, arrived) for _, name, size, arrived in fresh])

    def _remember(self, files: list[KnownFile]) -> None:
        with self._log.open("a") as log:
            for file in files:
                log.write(json.dumps([file.path, file.size, file.arrived]) + "\n")
        self.known += files
        self._names.update(file.path for file in files)

    def arrived(self, numbers: Iterable[int]) -> float | None:
        """When the first of these files came."""
        return min((self.known[number].arrived for number in numbers), default=None)

    def _unknown(self) -> dict[str, os.stat_result]:
        """The new files. A folder holds all files that ever came, so a known file must cost only its name."""
        files = {}
        for name in self._listed():
            if name not in self._names and name.rpartition("/")[2][:1] not in "._":
                with contextlib.suppress(FileNotFoundError):  # deleted since it was listed
                    stat = os.stat(name)  # noqa: PTH116 - a Path for each name would cost more than the call
                    if S_ISREG(stat.st_mode):
                        files[name] = stat
        return files

    def _listed(self) -> Iterator[str]:
        if self._path.is_dir():
            with os.scandir(self._path) as entries:
                yield from (entry.path for entry in entries)
        elif any(c in str(self._path) for c in "*?["):
            root = Path(self._path.anchor or ".")
            yield from map(str, root.glob(str(self._path.relative_to(self._path.anchor))))
        elif self._path.exists():
            yield str(self._path)
