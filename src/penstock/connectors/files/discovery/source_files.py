"""A source's files: new ones are taken when they are whole, known ones are watched.

A look must cost little, also in a folder of 100,000 files: a folder is listed only if it has changed, a known
file costs only its name, and known files are checked a thousand at a time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from stat import S_ISREG

from penstock.connectors.files.discovery.file_log import FileLog, KnownFile
from penstock.connectors.files.discovery.settling import Settling, Signature
from penstock.connectors.files.discovery.source_path import SourcePath, source_path
from penstock.connectors.paths import shown_path
from penstock.model.boxes import Source
from penstock.model.durations import parse_duration
from penstock.model.errors import NetworkError
from penstock.model.formats.files import Files

SETTLE = "1 second"
"""How long a file must not change to count as whole, unless its source says otherwise."""
_COARSE = 2.0  # seconds: file systems round a folder's time of change, so it is listed for so long after one
_WATCH_SECONDS, _WATCH_FILES = 0.2, 1000
_QUICK = 0.005  # seconds: a listing that costs so little may be made at every look
_LISTING_SHARE = 10  # otherwise it takes at most one part in so many of the time
Judge = Callable[[int], tuple[str, int]]
"""Why a known file that looks different has other content, and how many tuples are not read ("": none)."""


def must_exist(source: Source) -> None:
    """Refuse a source of files that does not exist, unless it says that it waits."""
    if not isinstance(source.format, Files):
        return
    path, options = source.format.path, dict(source.format.options)
    if options.get("wait", "false") != "true" and source_path(path) is None:
        raise NetworkError(
            f"there is no {shown_path(path)}",
            box=source.name,
            where=source.where,
            expected="a folder, a file, or a pattern in a folder",
            hint="create it; or say wait=True if it comes later",
        )


class SourceFiles:
    """Looks at the path of a source. `log` has the files that may be read.

    `complete`: whether a file shows by itself that it is whole, as Parquet does; it need not settle then.
    """

    def __init__(
        self, source: Source, directory: Path, judge: Judge, complete: Callable[[str], bool] | None = None
    ) -> None:
        assert isinstance(source.format, Files)
        options = dict(source.format.options)
        self._source, self._text, self._judge, self._complete = source, source.format.path, judge, complete
        self.log = FileLog(directory)
        # Files present when the network first looks count as arriving just now.
        self._born = 0.0 if self.log.exists else time.time()
        settle = parse_duration(options.get("settle", SETTLE)) / 1e6
        self._settling, self._changing = Settling(settle), Settling(settle)
        must_exist(source)
        self._path = self._resolve(options.get("moved_from", ""))
        self._folder_seen = (0, 0.0)  # the folder's time of change, and since when it is known
        self._listed = -_COARSE  # when the folder was last listed; files may have been left for the next time
        self._next_listing = self._next_watch = 0.0
        self._put_off = False  # whether a listing must wait, because the last one took long
        self._watched = 0

    @property
    def waiting(self) -> bool:
        """Whether there are files that are not whole yet, or may be new ones."""
        return self._put_off or bool(self._settling.waiting or self._changing.waiting)

    def look(self, read: int) -> None:
        """Look for new files, and whether the first `read` ones, which were read, are still the same."""
        self._path = self._path or self._resolve()
        if self._path is None:
            return
        self._watch(read)
        self._discover(self._path)

    # -- the path

    def _resolve(self, moved_from: str = "") -> SourcePath | None:
        path = source_path(self._text)
        if path is None or path.folder == self.log.folder:
            return path
        spelt = os.path.abspath(self._text)  # noqa: PTH100 - without resolving links
        if not self.log.folder:
            self.log.in_folder(path, spelt)
        elif self._comes_from(moved_from):
            old = os.path.basename(moved_from)  # noqa: PTH119 - as written
            self.log.in_folder(path, spelt, (old, path.pattern) if path.one else None)
        else:
            raise self._elsewhere(path)
        return path

    def _comes_from(self, moved_from: str) -> bool:
        """Whether the log's files were once under this path, of which nothing may be left."""
        if not moved_from:
            return False
        real = os.path.realpath(moved_from)
        before = source_path(moved_from)
        folders = {real, os.path.dirname(real), before.folder if before else real}  # noqa: PTH120 - any text
        spelt = os.path.abspath(moved_from)  # noqa: PTH100 - without resolving links
        return self.log.folder in folders or self.log.spelt == spelt

    def _elsewhere(self, path: SourcePath) -> NetworkError:
        return NetworkError(
            "it has read another folder so far and would now read this one from the beginning",
            box=self._source.name,
            where=self._source.where,
            found=shown_path(path.folder),
            expected=shown_path(self.log.folder),
            hint=f"if the folder was moved: moved_from='{shown_path(self.log.spelt)}'; "
            "otherwise start with a new checkpoint",
        )

    # -- new files

    def _discover(self, path: SourcePath) -> None:
        first = self._ready(path, self._candidates(path))
        if not first:
            return
        # A listing is not atomic: it may miss a file that came while it was made, yet show a later one. The
        # next listing has both. So its files up to that time belong to this look, in its order.
        until = max(signature.mtime for signature, _ in first.values())
        again = self._ready(path, self._unknown(path))
        whole = {n: s for n, s in again.items() if n in first or s[0].mtime <= until}
        ordered = sorted(whole.items(), key=lambda item: (item[1][0].mtime, item[0]))
        # For a file moved here, only the time of its renaming tells when it came.
        self.log.add([KnownFile(n, signature, max(came, self._born)) for n, (signature, came) in ordered])
        self._settling.forget(whole)
        if len(again) > len(whole):
            self._listed = -_COARSE

    def _candidates(self, path: SourcePath) -> list[str]:
        """Unknown files; only those known to wait, if the folder cannot have others."""
        now = time.monotonic()
        changed = self._may_have_changed(path, now)
        self._put_off = changed and now < self._next_listing
        if self._put_off or not changed:
            return [name for name in self._settling.waiting if self._complete or self._settling.due(name)]
        names = self._unknown(path)
        self._listed, seconds = now, time.monotonic() - now
        self._next_listing = now + (_LISTING_SHARE * seconds if seconds > _QUICK else 0)
        self._settling.forget({*self._settling.waiting} - {*names})
        return names

    def _may_have_changed(self, path: SourcePath, now: float) -> bool:
        if path.pattern:
            return True
        try:
            changed = os.stat(path.folder).st_mtime_ns  # noqa: PTH116 - a thousand times a second
        except FileNotFoundError:
            return False
        if changed != self._folder_seen[0]:
            self._folder_seen = (changed, now)
        return self._listed < self._folder_seen[1] + _COARSE

    def _unknown(self, path: SourcePath) -> list[str]:
        known = self.log.current
        try:
            return [name for name in path.names() if name not in known]
        except FileNotFoundError:
            return []  # the folder was deleted; it may come back

    def _ready(self, path: SourcePath, names: list[str]) -> dict[str, tuple[Signature, float]]:
        """The files that are whole, each with the time at which it came.

        None of them is newer than one that is not whole yet: files keep the order of their times.
        """
        whole = {}
        for name in names:
            stat = _regular_file(path.path(name))
            if stat is None:
                self._settling.forget([name])
                continue
            signature = Signature.of(stat)
            if self._is_whole(path, name, signature):
                whole[name] = signature, stat.st_ctime
        until = self._settling.oldest(whole)
        return {name: s for name, s in whole.items() if until is None or s[0].mtime <= until}

    def _is_whole(self, path: SourcePath, name: str, signature: Signature) -> bool:
        shows_it = self._complete is not None and self._complete(path.path(name))
        return shows_it or self._settling.whole(name, signature)

    # -- known files

    def _watch(self, read: int) -> None:
        now = time.monotonic()
        if now < self._next_watch:
            return
        self._next_watch = now + _WATCH_SECONDS
        first = self._watched if self._watched < read else 0
        self._watched = min(read, first + _WATCH_FILES)
        for number in range(first, self._watched):
            name = self.log.known[number].name
            if self.log.current.get(name) == number:
                self._check(number, name)

    def _check(self, number: int, name: str) -> None:
        stat = _regular_file(self.log.path(number))
        signature = None if stat is None else Signature.of(stat)
        if signature is None or signature == self.log.signatures[number]:
            # Deleting a file that was read is its owner's right.
            self._changing.forget([name])
        elif number in self.log.refused or not self.log.known[number].signature.size:
            self.read_anew(name)
        elif self._changing.whole(name, signature):
            self.log.has_changed(number, signature, *self._judge(number))
            self._changing.forget([name])

    def read_anew(self, name: str) -> None:
        """Treat a file of which nothing was read as a new one."""
        self.log.anew(name)
        self._listed = -_COARSE


def _regular_file(path: str) -> os.stat_result | None:
    """The facts of a file; None if there is none. What cannot be looked at is refused when it is read."""
    try:
        stat = os.stat(path)  # noqa: PTH116 - a Path for each name would cost more than the call
    except FileNotFoundError:
        return None
    except OSError:
        return os.lstat(path)
    return stat if S_ISREG(stat.st_mode) else None
