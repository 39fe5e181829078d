"""Where the versions of the state lie that only running workers need: in memory, as files of a tmpfs.

With snapshots, the version after each train is needed by the worker that runs the next one, which may be
another process. A file in memory reaches it without the disk: no write-back that a train could have to wait
for. The files outlive every process, so a run that was killed goes on from them at once. They do not outlive
the machine: then the snapshots count.

On a cluster, workers share only the checkpoint. There, and where memory is short, the files lie in the
checkpoint, never flushed. They count as long as the machine has not been started anew.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from pathlib import Path

from penstock.store.boot import boot_id
from penstock.store.durable import TEMPORARY, make_directory, write_text

MEMORY = Path("/dev/shm")  # noqa: S108 - folders in it are private and checked, see _private
_PREFIX, _OF = "penstock-", "checkpoint.txt"
_LEAST = 1 << 30  # bytes that must be free in memory
_SHARE = 8  # and this part of it, at least


def version_folder(directory: Path, *, local: bool) -> Path:
    """The folder for the versions of the sub-network that lives in `directory`, created if need be.

    `local`: all workers run on this host.
    """
    folder = _in_memory(directory)
    if local and _has_room(folder) and _private(folder):
        write_text(folder / _OF, str(directory.resolve()), sync=False)
        return folder
    folder = directory / "versions" / boot_id()
    make_directory(folder)
    return folder


def known_folders(directory: Path) -> list[Path]:
    """The folders that may hold versions of this sub-network, from this boot."""
    folders = [_in_memory(directory), directory / "versions" / boot_id()]
    return [folder for folder in folders if folder.is_dir() and folder.stat().st_uid == os.getuid()]


def delete_versions(directory: Path) -> None:
    """Delete all versions of this sub-network, also those of earlier boots."""
    for folder in (*known_folders(directory), directory / "versions"):
        shutil.rmtree(folder, ignore_errors=True)


def delete_orphans() -> None:
    """Delete what killed runs have left in memory if their checkpoint is gone."""
    for folder in MEMORY.glob(f"{_PREFIX}*") if MEMORY.is_dir() else ():
        try:
            orphaned = not Path((folder / _OF).read_text()).exists()
        except OSError:
            continue  # of another user, or just being made
        if orphaned:
            shutil.rmtree(folder, ignore_errors=True)


def delete_unfinished(*folders: Path) -> None:
    """Delete what killed processes were writing there. One that lives has been followed, and will fail."""
    for folder in folders:
        for place, _, names in os.walk(folder):
            for name in names:
                if name.startswith(".") and name.endswith(TEMPORARY):
                    Path(place, name).unlink(missing_ok=True)


def _in_memory(directory: Path) -> Path:
    digest = hashlib.sha256(str(directory.resolve()).encode()).hexdigest()[:16]
    return MEMORY / f"{_PREFIX}{digest}"


def _has_room(folder: Path) -> bool:
    """Whether there is room in memory for a folder. What it holds already, after a kill, counts as free."""
    try:
        room = os.statvfs(folder.parent)
    except OSError:
        return False
    free, whole = room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize
    needed = max(_LEAST, whole // _SHARE)
    return os.access(folder.parent, os.W_OK) and (free >= needed or free + _size(folder) >= needed)


def _size(folder: Path) -> int:
    sizes = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                sizes += Path(place, name).lstat().st_size
    return sizes


def _private(folder: Path) -> bool:
    """Create the folder for our eyes only. False: somebody else has taken the name."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        state = folder.lstat()
    except OSError:  # not a folder, or memory has no room for another one
        return False
    return (
        folder.is_dir()
        and not folder.is_symlink()
        and state.st_uid == os.getuid()
        and not state.st_mode & 0o077
    )
