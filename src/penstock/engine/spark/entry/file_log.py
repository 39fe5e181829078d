"""Which files a path has brought, in which order and when: what makes a folder a stream that can be read again."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISREG

from penstock.engine.contract.ticket import Slice


class FileLog:
    """The files of a path in order of discovery, remembered on disk so that each keeps its number."""

    def __init__(self, path: str, place: Path) -> None:
        self._path, self._log = Path(path), place / "files.jsonl"
        place.mkdir(parents=True, exist_ok=True)
        self.known: list[tuple[str, int]] = []
        self._arrived: list[float | None] = []
        # what lies there when the network first looks has come to it just now
        self._born = 0.0 if self._log.exists() else time.time()
        if self._log.exists():
            # a last line without its end was being written when the process died; it is discovered again
            lines = self._log.read_text().splitlines(keepends=True)
            found = [json.loads(line) for line in lines if line.endswith("\n")]
            self.known = [(name, size) for name, size, *_ in found]
            self._arrived = [rest[0] if rest else None for _, _, *rest in found]
            if lines and not lines[-1].endswith("\n"):
                # never in place: the numbers of all files hang on it
                aside = self._log.with_name("files.aside")
                aside.write_text("".join(lines[:-1]))
                aside.rename(self._log)
        self._names = {name for name, _ in self.known}

    def discover(self) -> None:
        """Look for new files; a file must be whole when its name appears, as for Spark's own file source."""
        first = self._new()
        if not first:
            return
        # A listing is not of one moment: it may lack a file that came while it was made, and have one that came still later.
        # The next listing has both, so what it has of that time or before belongs to this look, in its order.
        until = max(stat.st_mtime_ns for stat in first.values())
        found = {name: s for name, s in self._new().items() if name in first or s.st_mtime_ns <= until}
        # of a file that was moved here, only the time of its change of name tells when
        fresh = sorted(
            (s.st_mtime_ns, name, s.st_size, max(s.st_ctime, self._born)) for name, s in found.items()
        )
        with self._log.open("a") as log:
            for _, name, size, arrived in fresh:
                log.write(json.dumps([name, size, arrived]) + "\n")
        for _, name, size, arrived in fresh:
            self.known.append((name, size))
            self._arrived.append(arrived)
            self._names.add(name)

    def arrived(self, slices: list[Slice]) -> float | None:
        """When the first of the slices' files came; None if an older version has listed it."""
        known = [self._arrived[s["file"]] for s in slices]
        return min((at for at in known if at is not None), default=None)

    def _new(self) -> dict[str, os.stat_result]:
        """The files that are not known yet. A folder holds all that ever came, so those that are known cost no more than their name."""
        found = {}
        for name in self._listed():
            if name not in self._names and name.rpartition("/")[2][:1] not in "._":
                with contextlib.suppress(FileNotFoundError):  # gone since it was listed
                    stat = os.stat(name)  # noqa: PTH116
                    if S_ISREG(stat.st_mode):
                        found[name] = stat
        return found

    def _listed(self) -> Iterator[str]:
        if self._path.is_dir():
            with os.scandir(self._path) as entries:
                yield from (entry.path for entry in entries)
        elif any(c in str(self._path) for c in "*?["):
            yield from map(
                str, Path(self._path.anchor or ".").glob(str(self._path.relative_to(self._path.anchor)))
            )
        elif self._path.exists():
            yield str(self._path)
