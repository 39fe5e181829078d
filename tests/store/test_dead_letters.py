"""Dead letters are there once, whoever replays, and can be counted by what went wrong."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from penstock.store.dead_letters import SCHEMA, DeadLetters
from penstock.store.errors import CorruptFileError, StoreError


def letters(*reasons, box="parse"):
    return pa.table(
        {
            "raw": [f"raw {n}" for n in range(len(reasons))],
            "reason": list(reasons),
            "offset": range(len(reasons)),
            "box": [box] * len(reasons),
        }
    )


def test_append_read_and_count(tmp_path):
    table = pickle.loads(pickle.dumps(DeadLetters(tmp_path)))
    assert table.append("main/../a", 0, letters("late: 3 s", "bad number")) == 2
    assert table.append("b", 1, letters("late: 3 s", box="mean"), part=3) == 1
    found = table.read()
    assert found.schema == SCHEMA
    assert set(found["offset"].to_pylist()) == {"0", "1"}
    assert sorted(found["train"].to_pylist()) == [0, 0, 1]
    assert found["source"].null_count == 3
    assert table.counts() == {"late: # s": 2, "bad number": 1}
    assert table.counts("box") == {"parse": 2, "mean": 1}
    assert table.counts("source") == {"": 3}
    assert (table.count(), table.count("b"), table.subnetworks()) == (3, 1, ["b", "main/../a"])
    assert table.read(after=0).num_rows == 1
    assert table.read("b", through=0).num_rows == 0
    assert not (tmp_path / "a").exists()


def test_a_replayed_train_leaves_each_letter_once(tmp_path):
    table = DeadLetters(tmp_path)
    table.append("a", 5, letters("x", "y"))
    table.append("a", 5, letters("x", "y"))
    assert table.count() == 2
    table.append("a", 5, letters("x"))
    assert table.read()["reason"].to_pylist() == ["x"]
    table.append(
        "a",
        5,
        letters().cast(
            pa.schema([("raw", "string"), ("reason", "string"), ("offset", "int64"), ("box", "string")])
        ),
    )
    assert (table.count(), table.read().num_rows) == (0, 0)


def test_nothing_yet(tmp_path):
    assert (DeadLetters(tmp_path).read().num_rows, DeadLetters(tmp_path).counts()) == (0, {})


def test_errors_name_what_is_wrong(tmp_path):
    table = DeadLetters(tmp_path)
    with pytest.raises(StoreError, match="no column 'why'"):
        table.append("a", 0, pa.table({"why": ["?"]}))
    with pytest.raises(StoreError, match="no column 'why'"):
        table.counts("why")
    table.append("a", 0, letters("x"))
    path = next(tmp_path.rglob("*.parquet"))
    whole = path.read_bytes()
    for cut in range(0, len(whole), 13):
        path.write_bytes(whole[:cut])
        with pytest.raises(CorruptFileError, match="cannot be read"):
            table.read()
        with pytest.raises(CorruptFileError, match="cannot be read"):
            table.count()


def test_late_tuples_are_counted_together(tmp_path):
    table = DeadLetters(tmp_path)
    reason = "late: timestamp {} us is behind the horizon {} us of earlier trains"
    table.append("cars", 0, letters(*(reason.format(at, 9_000_000) for at in (1, 2_000_000, -3))))
    assert table.counts() == {"late: timestamp # us is behind the horizon # us of earlier trains": 3}


def test_only_their_owner_may_read_them(tmp_path):
    """They hold raw input."""
    table = DeadLetters(tmp_path)
    table.append("a", 0, letters("late: 3 s"))
    modes = {path.is_dir(): path.stat().st_mode & 0o777 for path in table.path.rglob("*")}
    assert modes == {True: 0o700, False: 0o600}
    assert table.path.stat().st_mode & 0o777 == 0o700
