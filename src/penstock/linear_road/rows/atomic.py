"""Files that are either whole or absent.

Idea: write under a temporary name in the same directory, flush to disk, rename. A full disk or a killed process
leaves at most a `.tmp` file, which no reader of the kit looks at.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TEMPORARY = ".tmp"


@contextmanager
def atomic_path(final: Path) -> Iterator[Path]:
    """Give a temporary path to write to; it becomes `final` if the block succeeds and vanishes if it fails.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "answers.csv"
    >>> with atomic_path(target) as path:
    ...     _ = path.write_text("0,1")
    ...     target.exists()
    False
    >>> target.read_text()
    '0,1'
    """
    # The pid keeps two processes that write the same file from sharing a temporary name.
    temporary = final.with_name(f".{final.name}.{os.getpid()}{TEMPORARY}")
    try:
        yield temporary
        _sync(temporary)
        temporary.replace(final)
        _sync(final.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(final: Path, text: str) -> None:
    """Write a small text file atomically."""
    with atomic_path(final) as path:
        path.write_text(text, encoding="utf-8")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
