"""Where the sources of a sub-network remember what they have seen, for example which files in which order.

Each owner of the checkpoint has a copy of its own. An earlier owner that is only suspended may still add to
its copy, and nobody reads that.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path


def source_memory(folder: Path, sources: Iterable[str], epoch: int) -> dict[str, Path]:
    """The directory of each source in this epoch, with what the epoch before knew.

    Call it after the train log was taken over: the copy then has all that any ticket builds on.
    """
    mine = folder / f"{epoch:06d}"
    if not mine.exists():
        _copy(folder, mine)
    directories = {name: mine / name for name in sources}
    for directory in directories.values():
        directory.mkdir(parents=True, exist_ok=True)
    return directories


def _copy(folder: Path, mine: Path) -> None:
    epochs = sorted(path for path in folder.glob("*") if path.name.isdigit() and path.name < mine.name)
    if not epochs:
        mine.mkdir(parents=True)
        return
    # Copy aside, then rename: a copy cut short must not pass for a whole one.
    aside = folder / f".{mine.name}-{uuid.uuid4().hex[:8]}.tmp"
    shutil.copytree(epochs[-1], aside)
    aside.rename(mine)
    for old in [*epochs[:-1], *folder.glob(".*.tmp")]:
        shutil.rmtree(old, ignore_errors=True)
