"""File names, built and parsed in one place.

Covers tickets, state versions, spools, staged and final files, and deliveries. Numbers are padded with zeros,
so names sort in the order of their numbers.
"""

from __future__ import annotations

import glob
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

STAGING = "_staging"
"""Where an output's files lie until their train is committed. Spark and most readers skip names with a
leading '_'.
"""

_DELIVERED = re.compile(r"(?:^|/)t(\d{6})-g(\d{3})\.(csv|parquet|packed)$")


_OUTPUT = re.compile(r"part-(.+)-(\d{8,})-\d{5,}\.[a-z]+")


class Delivery(NamedTuple):
    """Which second and which group of keys a delivered file holds."""

    second: int
    group: int


def number_text(number: int) -> str:
    """The number of a train, an entry or a version as written in a name.

    >>> number_text(7)
    '000000000007'
    """
    return f"{number:012d}"


def numbered(folder: Path, number: int, suffix: str = "json") -> Path:
    """The file of one number: a ticket, a commit, a state version, a part of a spool."""
    return folder / f"{number_text(number)}.{suffix}"


def numbers_in(folder: Path, suffix: str = "json") -> Iterator[int]:
    """The numbers of the files that `numbered` named, in no order; none if the folder is missing."""
    return (int(path.stem) for path in folder.glob(f"*.{suffix}") if path.stem.isdigit())


def numbered_part(number: int, part: int | str) -> str:
    """The stem of one of several files with the same number.

    >>> numbered_part(7, 2), numbered_part(7, "late")
    ('000000000007-00002', '000000000007-late')
    """
    return f"{number_text(number)}-{part_text(part) if isinstance(part, int) else part}"


def number_of(name: str) -> int:
    """The number at the start of a name that `numbered` or `numbered_part` made.

    >>> number_of("000000000007-00002.parquet")
    7
    """
    return int(name[:12])


def part_text(part: int) -> str:
    """The number of a partition or part as written in a name.

    >>> part_text(2)
    '00002'
    """
    return f"{part:05d}"


def final_file(folder: str, owner: str, train: int, part: int, suffix: str) -> str:
    """The final path of an output file. A replayed train writes the same names.

    >>> final_file("out", "jams-1f2e", 7, 0, "csv")
    'out/part-jams-1f2e-00000007-00000.csv'
    """
    return str(Path(folder) / f"part-{owner}-{train:08d}-{part_text(part)}.{suffix}")


class OutputFile(NamedTuple):
    """What the name of an output file says: whose it is, and of which train."""

    owner: str
    train: int


def output_file_of(name: str) -> OutputFile | None:
    """Parse a name that `final_file` made; None for any other name.

    >>> output_file_of("part-jams-1f2e-00000007-00000.csv")
    OutputFile(owner='jams-1f2e', train=7)
    >>> output_file_of("part-00000-9a.snappy.parquet")
    """
    match = _OUTPUT.fullmatch(name)
    return None if match is None else OutputFile(match[1], int(match[2]))


def staged_file(folder: str, owner: str, train: int, part: int, suffix: str) -> Path:
    """A new name for a file that waits for its commit. No two attempts ever share a name."""
    return _staged(folder, owner, f"{train:08d}-{part_text(part)}-{uuid.uuid4().hex}.{suffix}")


def staged_folder(folder: str, owner: str, train: int) -> Path:
    """A new folder for the files of Spark's own writer."""
    return _staged(folder, owner, f"{train:08d}-{uuid.uuid4().hex}")


def staged_nameless(folder: str, owner: str) -> Path:
    """A new name for a file that its own task moves into place."""
    return _staged(folder, owner, uuid.uuid4().hex)


def staged_by(folder: str, owner: str) -> Iterator[Path]:
    """What an owner has staged: others may write into the same folder."""
    return Path(folder, STAGING).glob(f"{glob.escape(owner)}-*")


def _staged(folder: str, owner: str, name: str) -> Path:
    return Path(folder) / STAGING / f"{owner}-{name}"


def delivered_file(second: int, group: int, suffix: str) -> str:
    """The name of a file that a driver delivers to a feed: one second of one group of keys.

    >>> delivered_file(75, 2, "csv")
    't000075-g002.csv'
    """
    return f"t{second:06d}-g{group:03d}.{suffix}"


def delivery_of(path: str) -> Delivery | None:
    """Parse a name that `delivered_file` made; None for any other name.

    >>> delivery_of("/feed/t000075-g002.csv"), delivery_of("rows.csv")
    (Delivery(second=75, group=2), None)
    """
    match = _DELIVERED.search(path)
    return None if match is None else Delivery(int(match[1]), int(match[2]))
