"""Damage to a checkpoint, as disks, copies and people do it: one file, drawn by a seed."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Damage:
    """What was done to which file."""

    kind: str
    file: str

    def __str__(self) -> str:
        return f"{self.kind} {self.file}"


def files_of(checkpoint: Path) -> list[Path]:
    """Everything that may be damaged; locks hold nothing."""
    return sorted(p for p in checkpoint.rglob("*") if p.is_file() and p.suffix != ".lock")


def damage(checkpoint: Path, seed: int) -> Damage:
    """Damage one file of a checkpoint. First a folder is drawn, so that rare files get their share."""
    dice = random.Random(seed)
    folders: dict[str, list[Path]] = {}
    for path in files_of(checkpoint):
        folders.setdefault(str(path.parent), []).append(path)
    path = dice.choice(folders[dice.choice(sorted(folders))])
    kind = dice.choice(sorted(_KINDS))
    others = [other for other in path.parent.iterdir() if other.is_file() and other != path]
    if kind in ("duplicate", "reorder", "renumber") and not others:
        kind = "flip"
    _KINDS[kind](path, sorted(others), dice)
    return Damage(kind, str(path.relative_to(checkpoint)))


def _flip(path: Path, others: list[Path], dice: random.Random) -> None:
    data = bytearray(path.read_bytes())
    if data:
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    path.write_bytes(data)


def _truncate(path: Path, others: list[Path], dice: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: dice.randrange(len(data) + 1)])


def _delete(path: Path, others: list[Path], dice: random.Random) -> None:
    path.unlink()


def _duplicate(path: Path, others: list[Path], dice: random.Random) -> None:
    """Another file of the folder over this one, as a careless copy does."""
    shutil.copyfile(dice.choice(others), path)


def _reorder(path: Path, others: list[Path], dice: random.Random) -> None:
    """Two files of the folder change places."""
    other, aside = dice.choice(others), path.with_name(".aside")
    path.rename(aside)
    other.rename(path)
    aside.rename(other)


_KINDS: dict[str, Callable[[Path, list[Path], random.Random], None]] = {
    "flip": _flip,
    "truncate": _truncate,
    "delete": _delete,
    "duplicate": _duplicate,
    "reorder": _reorder,
}
