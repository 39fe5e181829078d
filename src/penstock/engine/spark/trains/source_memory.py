"""Where the sources of a sub-network remember what they have seen, for example which files in which order.

Each owner of the checkpoint has a copy of its own. An earlier owner that is only suspended may still add to
its copy, and nobody reads that.
"""

from __future__ import annotations

import contextlib
import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path

from penstock.store.durable import make_directory, sync_directory, sync_file


def source_memory(folder: Path, sources: Iterable[str], epoch: int, *, sync: bool) -> dict[str, Path]:
    """The directory of each source in this epoch, with what the epoch before knew.

    Call it after the train log was taken over: the copy then has all that any ticket builds on. `sync`: it
    survives a power cut.
    """
    mine = folder / f"{epoch:06d}"
    if not mine.exists():
        _copy(folder, mine, sync=sync)
    directories = {name: mine / name for name in sources}
    for directory in directories.values():
        make_directory(directory, sync=sync)
    return directories


def sync_tree(folder: Path) -> None:
    """Flush all files and directories below a folder, and the folder."""
    for path in folder.rglob("*"):
        if path.is_file():
            sync_file(path)
        else:
            sync_directory(path)
    sync_directory(folder)


def _copy_if_there(source: str, target: str) -> None:
    """An owner that was followed may still delete what no train reads again."""
    with contextlib.suppress(FileNotFoundError):
        shutil.copy2(source, target)


def _copy(folder: Path, mine: Path, *, sync: bool) -> None:
    epochs = sorted(path for path in folder.glob("*") if path.name.isdigit() and path.name < mine.name)
    if not epochs:
        make_directory(mine, sync=sync)
        return
    # Copy aside, then rename: a copy cut short must not pass for a whole one.
    aside = folder / f".{mine.name}-{uuid.uuid4().hex[:8]}.tmp"
    shutil.copytree(epochs[-1], aside, copy_function=_copy_if_there)
    if sync:
        sync_tree(aside)
    aside.rename(mine)
    if sync:
        sync_directory(folder)
    for old in [*epochs[:-1], *folder.glob(".*.tmp")]:
        shutil.rmtree(old, ignore_errors=True)
