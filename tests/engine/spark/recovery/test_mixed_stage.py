"""A stage of which one box keeps its state in parts and another in deltas: its versions are both or none."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.engine.arrow.boxes.column_latch import PUT
from penstock.engine.spark.recovery.snapshot_files import PartitionVersion
from penstock.engine.spark.tasks import state as module
from penstock.engine.spark.tasks.state import PartitionState
from penstock.engine.spark.tasks.state_parts import StateError


class Latch:
    """Keeps its last number as a part."""

    parted = True

    def __init__(self, number=None):
        self.number = number

    def delta(self):
        return {} if self.number is None else {f"{PUT}last": pa.table({"n": [self.number]})}

    def restore(self, parts):
        self.number = parts["last"]["n"][0].as_py() if "last" in parts else None


class Window:
    """Keeps all numbers so far; a delta adds one."""

    def __init__(self):
        self.numbers = []

    def delta(self):
        return {"new": pa.table({"n": self.numbers[-1:]})}

    def snapshot(self):
        return {"all": pa.table({"n": self.numbers})}

    def apply(self, tables):
        self.numbers += tables["new"]["n"].to_pylist() if "new" in tables else []

    def restore(self, tables):
        self.numbers = tables["all"]["n"].to_pylist() if "all" in tables else []


def make():
    return {"latch": Latch(), "window": Window()}


def kept(folder, numbers, *, latched=True):
    """The version after a train for each number."""
    module._RESIDENT.clear()
    state, version = PartitionState(str(folder), 0, make), (-1, "")
    for number in numbers:
        held = state.at(*version)
        held.boxes["latch"].number = number if latched else None
        held.boxes["window"].numbers.append(number)
        version = (number, state.keep(held, number).token)
    return version


@pytest.mark.parametrize("latched", [True, False])
def test_it_is_copied_whole(tmp_path, latched):
    version = kept(tmp_path / "a", range(4), latched=latched)
    copied = PartitionVersion(tmp_path / "a", "0", version).bodies()
    target = PartitionVersion(tmp_path / "b", "0", version)
    target.write({name: body.read() for name, body in copied.items()}, sync=False)
    target.check(contents=True)
    module._RESIDENT.clear()
    held = PartitionState(str(tmp_path / "b"), 0, make).at(*version)
    assert held.boxes["latch"].number == (3 if latched else None)
    assert held.boxes["window"].numbers == [0, 1, 2, 3]


@pytest.mark.parametrize("left", [0, 2])
def test_without_its_deltas_it_is_not_taken_for_whole(tmp_path, left):
    """Later trains may delete them while a snapshot is begun: then it must fail, and be tried again."""
    version = kept(tmp_path, range(4))
    for path in sorted((tmp_path / "0").glob("*.delta"))[: 4 - left]:
        path.unlink()
    found = PartitionVersion(tmp_path, "0", version)
    for look in (found.bodies, found.check):
        with pytest.raises(StateError, match="is lost"):
            look()
