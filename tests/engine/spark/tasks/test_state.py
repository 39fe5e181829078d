"""Versions of a partition's state: deltas, snapshots, replay, and files that must be refused."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.engine.arrow.logic import logic_for
from penstock.engine.spark.recovery.snapshot_files import PartitionVersion
from penstock.engine.spark.tasks import state as module
from penstock.engine.spark.tasks.key_targets import hash_of
from penstock.engine.spark.tasks.state import (
    NO_STATE,
    PartitionState,
    StateError,
    decode,
    encode,
)
from penstock.model.types import arrow_schema
from penstock.model.writing.network import Network
from penstock.testing import collect, examples, rows_source


@pytest.fixture(autouse=True)
def _nothing_resident():
    """Each test starts as a fresh worker does."""
    module._RESIDENT.clear()
    TOKENS.clear()
    yield
    module._RESIDENT.clear()


def counting():
    """A network whose latch numbers the tuples of each key."""
    net = Network("counting")
    cars = net.source("cars", rows_source("time TIMESTAMP, k STRING, v INT"), timestamp="time")
    counted = cars.group_by("k").latch(
        function=examples.running_count,
        state="seen BIGINT",
        produces="k STRING, v INT, seen BIGINT",
        name="count",
    )
    counted.output("out", to=collect())
    return net


NET = counting()
TOKENS: dict[tuple[str, int, int], str] = {}  # of the versions that were kept, as commits would tell them


def token(state: PartitionState, number: int) -> str:
    return TOKENS.get((state.root, state.partition, number), NO_STATE)


def kept(state: PartitionState, held, number: int) -> None:
    TOKENS[state.root, state.partition, number] = state.keep(held, number).token


def at(state: PartitionState, number: int):
    return state.at(number, token(state, number))


def file(state: PartitionState, number: int, kind: str):
    return state.path((number, token(state, number)), kind)


def make():
    node = NET.nodes["count"]
    return {"count": logic_for(node, NET.input_types("count"), NET.types["count"])}


def train(state: PartitionState, number: int, keys: str) -> list[tuple[str, int]]:
    """One train of tuples with these keys through the latch.

    What came out, and the state kept as `number`.
    """
    held = at(state, number - 1)
    table = pa.Table.from_pylist(
        [{"time": None, "k": k, "v": 1, "_ts": number, "_seq": number * 100 + i} for i, k in enumerate(keys)],
        schema=arrow_schema(NET.input_types("count")[0].schema),
    )
    out = held.boxes["count"].process([table], (number,), final=False).out
    kept(state, held, number)
    return [(row["k"], row["seen"]) for row in out.to_pylist()]


def fresh_worker(state: PartitionState) -> PartitionState:
    module._RESIDENT.clear()
    return PartitionState(state.root, state.partition, make)


@pytest.fixture
def state(tmp_path):
    return PartitionState(str(tmp_path), 0, make)


def test_state_goes_on_in_the_same_worker(state):
    assert train(state, 0, "ab") == [("a", 1), ("b", 1)]
    assert train(state, 1, "aa") == [("a", 2), ("a", 3)]


def test_another_worker_loads_it_from_the_files(state):
    train(state, 0, "ab")
    train(state, 1, "aa")
    assert train(fresh_worker(state), 2, "ab") == [("a", 4), ("b", 2)]


def test_a_worker_that_is_behind_catches_up(state, monkeypatch):
    """Trains of one task go to one worker and to another in turn; neither loads the whole state again."""
    loads = []
    real = PartitionState._load
    monkeypatch.setattr(PartitionState, "_load", lambda *args: loads.append(args[1:]) or real(*args))
    workers = [dict(module._RESIDENT), dict(module._RESIDENT)]
    for number, keys in enumerate(["ab", "a", "ba", "b", "aab"]):
        monkeypatch.setattr(module, "_RESIDENT", workers[number % 2])
        found = train(state, number, keys)
    assert found == [("a", 4), ("a", 5), ("b", 4)]
    assert len(loads) == 2, "each worker once, when it began"


def test_a_worker_that_cannot_catch_up_loads(state, monkeypatch):
    """Another attempt counts than the one that this worker has run."""
    train(state, 0, "a")
    train(state, 1, "b")
    stale = dict(module._RESIDENT)
    fresh_worker(state)
    train(state, 1, "a")  # run again elsewhere, and this attempt is the one that counts
    monkeypatch.setattr(module, "_RESIDENT", stale)
    assert train(state, 2, "ab") == [("a", 3), ("b", 1)]


def test_a_train_can_be_run_again(state):
    train(state, 0, "ab")
    first = train(state, 1, "aab")
    # the worker is a train ahead, as after a lost answer
    assert train(state, 1, "aab") == first
    assert train(fresh_worker(state), 1, "aab") == first
    assert train(state, 2, "b") == [("b", 3)]


def test_another_start_of_the_query_does_not_take_over_what_a_worker_holds(state, tmp_path):
    """Its boxes may have been changed, or their state thrown away (Runtime.replace), while the worker lives
    on.
    """
    train(state, 0, "a")
    again = PartitionState(state.root, 0, make, epoch="second")
    assert at(again, 0).boxes is not at(state, 0).boxes
    for path in (tmp_path / "0").iterdir():
        path.unlink()
    TOKENS.clear()
    fresh = PartitionState(state.root, 0, make, epoch="third")
    assert train(fresh, 1, "a") == [("a", 1)]


def test_partitions_are_apart(state):
    other = PartitionState(state.root, 1, make)
    train(state, 0, "aaa")
    assert train(other, 0, "a") == [("a", 1)]


def test_snapshots_and_what_they_make_needless(state, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SNAPSHOT_EVERY", 3)
    for number in range(12):
        train(state, number, "a")
    snapshots = sorted(int(p.stem[:12]) for p in (tmp_path / "0").glob("*.snapshot"))
    assert len(snapshots) == 2  # the last, and the one before for a replay
    assert min(int(p.stem[:12]) for p in (tmp_path / "0").glob("*.delta")) > snapshots[0]
    # every version since the older snapshot can still be had
    for version in range(snapshots[0], 12):
        assert train(fresh_worker(state), version + 1, "a") == [("a", version + 2)]


def test_the_newest_train_can_be_replayed_right_after_a_snapshot(state, monkeypatch):
    monkeypatch.setattr(module, "SNAPSHOT_EVERY", 2)
    seen = {n: train(state, n, "a") for n in range(9)}
    for number in (8, 7):
        assert train(fresh_worker(state), number, "a") == seen[number]


def test_large_deltas_bring_a_snapshot_early(state, tmp_path, monkeypatch):
    train(state, 0, "a")
    monkeypatch.setattr(module, "encode", lambda *given: encode(*given) + bytes(2 << 20))
    kept(state, at(state, 0), 1)
    assert [p.stem[:12] for p in (tmp_path / "0").glob("*.snapshot")] == [f"{1:012d}"]


def test_a_stage_may_begin_late(tmp_path):
    state = PartitionState(str(tmp_path), 0, make)
    assert train(state, 42, "a") == [("a", 1)]
    assert train(fresh_worker(state), 43, "a") == [("a", 2)]


def test_each_attempt_writes_files_of_its_own(state):
    """An orphan, or an owner that was followed, runs the same train and must not touch what counts."""
    train(state, 0, "a")
    first = token(state, 0)
    again = PartitionState(state.root, 0, make, epoch="orphan")
    again.keep(again.at(-1), 0)
    module._RESIDENT.clear()
    assert token(state, 0) == first
    assert train(state, 1, "a") == [("a", 2)]


def test_a_worker_drops_the_state_of_a_query_that_was_detached(tmp_path):
    states = [PartitionState(str(tmp_path / name), 0, make) for name in ("stays", "detached")]
    for each in states:
        train(each, 0, "a")
    shutil.rmtree(tmp_path / "detached")
    train(states[0], 1, "a")
    assert list(module._RESIDENT) == [(str(tmp_path / "stays"), 0)]


def test_the_hashes_that_a_worker_remembers_are_bounded():
    """Keys of text may be new in every train, for ever."""
    assert 0 < (hash_of.cache_info().maxsize or 0) <= 1 << 16


def test_a_missing_delta_is_refused(state):
    for number in range(3):
        train(state, number, "a")
    version = PartitionVersion(Path(state.root), "0", (2, token(state, 2)))
    version.check()
    file(state, 1, "delta").unlink()
    with pytest.raises(StateError, match=r"the state after train 1 is lost"):
        at(fresh_worker(state), 2)
    with pytest.raises(StateError, match=r"the state after train 1 is lost"):
        version.check()


def test_all_files_missing_is_refused(state):
    train(state, 0, "a")
    file(state, 0, "delta").unlink()
    with pytest.raises(StateError, match="the state after train 0 is lost"):
        at(fresh_worker(state), 0)


@pytest.mark.parametrize("kind", ["delta", "snapshot"])
@pytest.mark.parametrize("harm", ["torn", "changed", "empty", "longer"])
def test_a_harmed_file_is_refused(state, monkeypatch, harm, kind):
    monkeypatch.setattr(module, "SNAPSHOT_EVERY", 1 if kind == "snapshot" else 100)
    train(state, 0, "abc")
    path = file(state, 0, kind)
    data = path.read_bytes()
    middle = len(data) // 2
    harmed = {
        "torn": data[:middle],
        "changed": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
        "empty": b"",
        "longer": data + b"\0",
    }
    path.write_bytes(harmed[harm])
    with pytest.raises(StateError, match=f"{path}: this file of the state is torn or changed"):
        at(fresh_worker(state), 0)


def test_a_delta_of_another_version_is_refused(state):
    for number in range(3):
        train(state, number, "a")
    file(state, 1, "delta").write_bytes(file(state, 2, "delta").read_bytes())
    with pytest.raises(StateError, match="the file of another version"):
        at(fresh_worker(state), 2)


class Secret:
    """Remembers the first value it saw, and looks it up when it is told 0: long after a restart, perhaps."""

    def __init__(self) -> None:
        self.parts, self.made = {}, {}

    def process(self, inputs, until, final):
        times, values = (inputs[0][name].to_pylist() for name in ("time", "v"))
        if values and "first" not in self.parts:
            self.parts = self.made = {"first": {"v": values[:1]}}
        told = [v or _first(self.parts["first"]) for v in values]
        return {"time": pa.array(times, pa.timestamp("us", "UTC")), "v": pa.array(told, pa.int32())}

    def changes(self):
        made, self.made = self.made, {}
        return made

    def restore(self, parts):
        self.parts = parts


def _first(part):
    return part["v"][0] if isinstance(part, dict) else part["v"][0].as_py()


def test_a_part_is_there_when_it_is_first_looked_at_two_hundred_trains_after_a_restart(tmp_path):
    net = Network("secret")
    cars = net.source("cars", rows_source("time TIMESTAMP, v INT"), timestamp="time")
    cars.column_latch(Secret, produces="time TIMESTAMP, v INT", name="told").output("out", to=collect())
    schema = arrow_schema(net.input_types("told")[0].schema)

    def boxes():
        return {"told": logic_for(net.nodes["told"], net.input_types("told"), net.types["told"])}

    def ride(state, number, v):
        held = at(state, number - 1)
        row = {"time": datetime.fromtimestamp(number, UTC), "v": v, "_ts": number * 1_000_000, "_seq": number}
        table = pa.Table.from_pylist([row], schema=schema)
        out = held.boxes["told"].process([table], ((number + 1) * 1_000_000,), final=False).out
        kept(state, held, number)
        return out["v"].to_pylist()

    state = PartitionState(str(tmp_path), 0, boxes, plain=False)
    assert ride(state, 0, 42) == [42]
    module._RESIDENT.clear()  # another worker takes over
    assert [ride(state, n, 1) for n in range(1, 200)] == [[1]] * 199
    assert not list((tmp_path / "0").glob(f"{0:012d}-*.parts"))
    assert ride(state, 200, 0) == [42]


def test_encode_and_decode():
    table = pa.table({"k": ["a", None], "n": [1, 2]})
    data = encode({"one": {"x": table, "y": table.slice(0, 0)}, "two": {}}, (8, "b"), (7, "a"))
    back, base = decode(data, (8, "b"), "here")
    assert base == (7, "a")
    assert back["one"]["x"].equals(table)
    assert back["one"]["y"].num_rows == 0
    assert "two" not in back
