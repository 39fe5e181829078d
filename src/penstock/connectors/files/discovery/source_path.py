"""The path of a source: a folder, one file or a pattern. However it is spelt, a file keeps its name.

A file is known by its name relative to a folder, and the folder by its real path: without links, `..` and
trailing slashes. So the same file is never read twice because its path is written in another way.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

_WILD = frozenset("*?[")


@dataclass(frozen=True)
class SourcePath:
    """Where a source's files are: the real `folder`, and which names in it (`pattern`, "": all of them).

    `one`: the pattern is the name of a single file.
    """

    folder: str
    pattern: str = ""
    one: bool = False

    def names(self) -> Iterator[str]:
        """The names of files that are there now, relative to the folder, without those to be left alone."""
        if self.one:
            yield self.pattern
        elif self.pattern:
            paths = Path(self.folder).glob(self.pattern)
            yield from (name for path in paths if not _left_alone(name := str(path.relative_to(self.folder))))
        else:
            with os.scandir(self.folder) as entries:
                yield from (entry.name for entry in entries if not _left_alone(entry.name))

    def path(self, name: str) -> str:
        """The absolute path of a file."""
        return f"{self.folder}/{name}"


def source_path(text: str) -> SourcePath | None:
    """What a path means now; None if there is nothing yet.

    A path with `*`, `?` or `[` is a pattern, unless a file or folder of exactly that name exists. (If the
    pattern matches its own name, as `*.csv` does, it is a pattern nevertheless.)
    """
    there = os.path.lexists(text)  # asked first: a folder that comes meanwhile must not be taken for a file
    if Path(text).is_dir():
        return SourcePath(os.path.realpath(text))
    name = Path(text).name
    wild = not _WILD.isdisjoint(text)
    if there and not (wild and fnmatchcase(name, name)):
        real = os.path.realpath(text)
        return SourcePath(*os.path.split(real), one=True)
    return _pattern(text) if wild else None


def _pattern(text: str) -> SourcePath | None:
    """The folder before the first part that is a pattern, and the rest. A folder may look like a pattern."""
    parts = Path(text).parts
    for i, part in enumerate(parts):
        if not _WILD.isdisjoint(part) and not Path(*parts[: i + 1]).is_dir():
            folder = Path(*parts[:i])
            return SourcePath(os.path.realpath(folder), "/".join(parts[i:])) if folder.is_dir() else None
    return None


def _left_alone(name: str) -> bool:
    """Whether the name says that the file is hidden or still being written."""
    last = name.rpartition("/")[2]
    return last[:1] in "._" or last.endswith(".tmp")
