"""The disk fills up at any write, and is cleared again: the run fails, the next one gives the same rows."""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from fuzz.test_durability import (
    EVERY_TRAIN,
    deliveries,
    memory,  # noqa: F401 - a fixture
    run,
    written,
)
from penstock.model.errors import PenstockError
from penstock.store import durable
from soak import count

FILLINGS = count(4, soak=300)


class FullDisk(durable.FileLayer):
    """From one write on there is no space left. A part of the bytes may still fit."""

    def __init__(self, full_from: int | None, dice: random.Random) -> None:
        self.writes, self._full_from, self._dice = 0, full_from, dice

    def _full(self, path: Path) -> None:
        self.writes += 1
        if self._full_from is not None and self.writes >= self._full_from:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def write(self, path: Path, data: bytes | memoryview) -> None:
        try:
            self._full(path)
        except OSError:
            super().write(path, bytes(data)[: self._dice.randrange(len(data) + 1)])
            raise
        super().write(path, data)

    def write_pieces(self, path: Path, pieces: Iterable[durable.Piece], *, quietly: bool = False) -> None:
        del quietly
        self.write(path, b"".join(pieces))

    def link(self, path: Path, target: Path) -> None:
        self._full(target)  # a new name may need a new block
        super().link(path, target)


@pytest.mark.parametrize("recovery", [None, EVERY_TRAIN])
@pytest.mark.usefixtures("memory")
def test_a_full_disk_loses_and_doubles_nothing(tmp_path, monkeypatch, recovery, record_property):
    dice = random.Random(8)
    deliveries(tmp_path)
    disk = FullDisk(None, dice)
    monkeypatch.setattr(durable, "layer", disk)
    run(tmp_path, sync=False, epoch=1, recovery=recovery)
    expected, failed = written(tmp_path), 0
    for number in range(FILLINGS):
        folder = tmp_path / str(number)
        deliveries(folder)
        monkeypatch.setattr(durable, "layer", FullDisk(dice.randrange(1, disk.writes + 1), dice))
        try:
            run(folder, sync=False, epoch=1, recovery=recovery)
        except (OSError, PenstockError):
            failed += 1
        monkeypatch.setattr(durable, "layer", durable.FileLayer())
        run(folder, sync=False, epoch=2, recovery=recovery)
        assert written(folder) == expected, f"filling {number}"
        shutil.rmtree(folder)
    # A snapshot that finds no space is tried again later: where it was the last write, the run ends well.
    assert failed == FILLINGS if recovery is None else failed > FILLINGS // 2
    record_property("fillings_of_the_disk", failed)
