"""State as parts: an index in each version, parts mapped when looked at, files deleted and parts carried
over; torn files refused.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.engine.spark.tasks import state_parts as parts
from penstock.engine.spark.tasks.state_parts import PartFiles, StateError


def table(*values):
    return pa.table({"v": list(values)})


def read_all(files):
    return [files.read(name, location) for name, location in files.index((0, "t")).items()]


def test_a_version_knows_all_parts_wherever_they_lie(tmp_path):
    files = PartFiles(tmp_path)
    one, _ = files.write((0, "t"), {}, {"box:a": table(1), "box:b": table(2), "other:a": table(3)}, set())
    two, written = files.write((1, "t"), one, {"box:b": table(4, 5)}, {"other:a"})
    assert written < 2000
    again = PartFiles(tmp_path)
    mine = again.lazy(again.index((1, "t")), "box")
    assert sorted(mine) == ["a", "b"]
    assert (mine["a"], mine["b"]) == (table(1), table(4, 5))
    assert sorted(again.lazy(again.index((0, "t")), "other")) == ["a"]
    assert two == again.index((1, "t"))


def test_files_whose_parts_are_gone_are_deleted_but_one_version_back_stays_whole(tmp_path):
    files, index = PartFiles(tmp_path), {}
    for version in range(20):
        index, _ = files.write(
            (version, "t"), index, {f"box:s{version}": table(version)}, {f"box:s{version - 5}"}
        )
    assert sorted(int(p.stem[:12]) for p in tmp_path.glob("*.parts")) == list(range(14, 20))
    before = PartFiles(tmp_path)
    assert {
        name: before.read(name, location)["v"][0].as_py()
        for name, location in before.index((18, "t")).items()
    } == {f"box:s{v}": v for v in range(14, 19)}


def test_old_parts_are_carried_over_a_few_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "_OLD", 5)
    monkeypatch.setattr(parts, "_CARRY_BYTES", 1)
    files = PartFiles(tmp_path)
    index, _ = files.write((0, "t"), {}, {f"box:{i}": table(i) for i in range(3)}, set())
    for version in range(1, 12):
        index, _ = files.write((version, "t"), index, {"box:new": table(version)}, set())
    assert min(location.version for location in index.values()) >= 5
    assert [files.read(f"box:{i}", index[f"box:{i}"])["v"][0].as_py() for i in range(3)] == [0, 1, 2]


def test_a_part_that_nobody_has_looked_at_is_still_there_after_it_was_carried_over(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "_OLD", 5)
    PartFiles(tmp_path).write(
        (0, "t"), {}, {"box:old": table(7), "box:new": table(0), "boxes:old": table(8)}, set()
    )
    files = PartFiles(tmp_path)  # as a worker that has taken over
    index = files.index((0, "t"))
    lazy = {box: files.lazy(index, box) for box in ("box", "boxes")}
    for version in range(1, 20):
        index, _ = files.write((version, "t"), index, {"box:new": table(version)}, set())
    assert not files.path((0, "t")).exists()
    assert {box: held["old"]["v"][0].as_py() for box, held in lazy.items()} == {"box": 7, "boxes": 8}


@pytest.mark.parametrize("damage", ["missing", "short", "head", "part"])
def test_what_is_torn_is_refused(tmp_path, damage):
    PartFiles(tmp_path).write((0, "t"), {}, {"box:a": table(*range(500))}, set())
    path = tmp_path / "000000000000-t.parts"
    data = bytearray(path.read_bytes())
    if damage == "missing":
        path.unlink()
    elif damage == "short":
        path.write_bytes(data[:20])
    else:
        data[30 if damage == "head" else -100] ^= 1
        path.write_bytes(data)
    with pytest.raises(StateError, match="missing" if damage == "missing" else "torn or changed"):
        read_all(PartFiles(tmp_path))
