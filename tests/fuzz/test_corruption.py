"""One file of a checkpoint is damaged; then the network goes on. It is refused, or gives exactly its rows.

Here the real conductor, tasks, state and files run without Spark; a few cases start a whole Spark.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import penstock as ps
from engine.spark.trains.test_express import deliver, network
from fuzz.corruption import damage
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.spark.recovery import version_folder
from penstock.engine.spark.tasks import state
from penstock.model.errors import PenstockError
from penstock.rewrite.subnetworks import split
from penstock.runtime.box_facts import facts
from penstock.runtime.checkpoint_identity import claim, settled
from penstock.store.catalog.catalog import Catalog
from penstock.store.dead_letters import DeadLetters
from penstock.store.ownership import own
from penstock.store.points.compaction import Sizes, compact
from penstock.store.points.leases import take_lease
from penstock.store.points.point import PointReader
from penstock.testing.dry_run import DryRun
from soak import SOAK, count

CASES = count(25, soak=1_500)  # for each way of keeping state
EVERY_TRAIN, SOMETIMES = 0.0, 0.2  # seconds of trains that may have to run again
BEFORE, AFTER = 10, 3  # seconds delivered before and after the damage
LIMIT = 240.0  # seconds until a restart that has not come to its end hangs


def with_view(folder: Path):
    net = network(folder)
    net.stream("roads").view("kept", keep="1 hour")
    return net


def second(folder: Path, at: int) -> None:
    deliver(folder / "in", at, [f"1,{at % 3},30", f"bad {at}"], [f"2,{at % 2},40"])


def go_on(folder: Path, recovery: float | None, *, cut_off: bool = False) -> None:
    """Start as a runtime does, and run until the feed is used up; or die after the first ticket."""
    net, checkpoint = with_view(folder), folder / "checkpoint"
    owner = own(checkpoint)
    try:
        subs = settled(checkpoint, split(net))
        claim(checkpoint, net, subs, facts(subs, 2, fuse=True))
        catalog = Catalog(checkpoint / "catalog.db")
        catalog.record_network(net.name, "text", net.nodes.values())
        catalog.counts()
        catalog.close()
        state._RESIDENT.clear()
        dry = DryRun(net, checkpoint, length=1, epoch=owner.epoch, recovery=recovery)
        dry.query.close = False
        dry.query.next_ticket() if cut_off else dry.run_all()
    finally:
        owner.release()


def written(folder: Path):
    """What a reader sees: output files, the view, dead letters."""
    lines = {
        name: sorted(
            line for file in (folder / "out" / name).glob("*.csv") for line in file.read_text().splitlines()
        )
        for name in ("roads", "cars")
    }
    rows = PointReader(folder / "checkpoint", "kept").read().select(["road", "n"]).to_pylist()
    letters = [letter["raw"] for letter in DeadLetters(folder / "checkpoint").read().to_pylist()]
    return lines, sorted(map(str, rows)), sorted(letters)


@pytest.fixture(scope="module", autouse=True)
def _memory(tmp_path_factory):
    """A folder takes the place of the machine's memory. A copied checkpoint finds nothing of it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(version_folder, "MEMORY", tmp_path_factory.mktemp("memory"))
        patched.setattr(version_folder, "_has_room", lambda _folder: True)
        yield


SNAPSHOTS = {None: "never", EVERY_TRAIN: "every_train", SOMETIMES: "sometimes"}


@pytest.fixture(scope="module", params=SNAPSHOTS)
def recovery(request) -> float | None:
    return request.param


@pytest.fixture(scope="module")
def sound(tmp_path_factory, recovery) -> Path:
    """A checkpoint in the middle of a run: compacted, read by others, with a train that was cut off."""
    folder = tmp_path_factory.mktemp("sound")
    for at in range(1, BEFORE + 1):
        second(folder, at)
    go_on(folder, recovery)
    compact(folder / "checkpoint", "kept", Sizes(min_entries=2, segment_entries=4))
    take_lease(PointReader(folder / "checkpoint", "kept"), "reader", seconds=None)
    second(folder, BEFORE + 1)
    go_on(folder, recovery, cut_off=True)
    return folder


@pytest.fixture(scope="module")
def expected(sound, recovery, tmp_path_factory):
    return outcome(sound, tmp_path_factory.mktemp("expected") / "run", recovery, seed=None)


def outcome(sound: Path, folder: Path, recovery: float | None, seed: int | None):
    """The rows of a run that goes on after the damage."""
    shutil.copytree(sound, folder)
    if seed is not None:
        damage(folder / "checkpoint", seed)
    for at in range(BEFORE + 2, BEFORE + 2 + AFTER):
        second(folder, at)
    go_on(folder, recovery)
    return written(folder)


def check_case(sound: Path, folder: Path, recovery: float | None, seed: int, expected) -> str:
    try:
        lines, rows, letters = outcome(sound, folder, recovery, seed)
    except PenstockError:
        result = "refused"
    else:
        assert lines == expected[0], "wrong rows in the outputs"
        assert rows == expected[1], "wrong rows in the view"
        # A file of dead letters that is gone is not missed; one that is there is whole.
        assert Counter(letters) <= Counter(expected[2]), "wrong dead letters"
        result = "harmless"
    return result


def test_damaged_checkpoints_are_refused_or_give_the_same_rows(
    sound, expected, recovery, tmp_path, record_property
):
    results: Counter[str] = Counter()
    for seed in range(CASES):
        folder = tmp_path / str(seed)
        try:
            results[check_case(sound, folder, recovery, seed, expected)] += 1
        except BaseException as error:
            shutil.rmtree(folder / "checkpoint")
            shutil.copytree(sound / "checkpoint", folder / "checkpoint")
            error.add_note(f"seed {seed}: {damage(folder / 'checkpoint', seed)}")
            raise
        shutil.rmtree(folder)
    assert results["refused"] > CASES / 10
    assert results["harmless"] > CASES / 10
    record_property(f"corruptions_by_readers_{SNAPSHOTS[recovery]}", CASES)
    record_property(f"corruptions_refused_{SNAPSHOTS[recovery]}", results["refused"])


# -- whole restarts, with Spark

PARTS = count(1, soak=4)  # `make soak` runs each as a piece of its own
RESTARTS = count(3, soak=125)  # of each part
ROWS = "time TIMESTAMP, k INT, v INT"


def put(folder: Path, number: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"2024-01-01 00:{number:02d}:{i:02d},{i % 5},{number * 60 + i}\n" for i in range(60)]
    (folder / f"{number}.csv").write_text("".join(lines))


def windows(source: Path, out: Path) -> ps.Network:
    """Windows into a connection point and a file, and a sub-network that reads the point."""
    net = ps.Network("windows")
    rows = net.source("rows", ps.csv(str(source), ROWS), timestamp="time")
    point = rows.group_by("k").tumble("20 seconds", n="count(*)", total="sum(v)").connection_point("kept")
    point.output("all", to=ps.csv(str(out / "all")))
    net.output(
        "counted", rows.group_by("k").tumble("30 seconds", m="max(v)"), to=ps.parquet(str(out / "counted"))
    )
    return net


def run_on(spark, source: Path, folder: Path, *, close: bool) -> None:
    net = windows(source, folder / "out")
    policy = AsSoonAsPossible(40)
    with ps.Runtime(
        net, spark, folder / "checkpoint", once=True, close=close, partitions=2, policy=policy
    ) as running:
        assert running.wait(timeout=LIMIT), "it hangs"


def rows_in(folder: Path):
    texts = [file.read_text() for file in (folder / "out" / "all").glob("*.csv")]
    tables = [pq.read_table(file) for file in (folder / "out" / "counted").glob("*.parquet")]
    return sorted("".join(texts).splitlines()), sorted(str(row) for t in tables for row in t.to_pylist())


@pytest.mark.slow
@pytest.mark.timeout(7200 if SOAK else 600)
@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_checkpoints_with_a_whole_restart(spark, tmp_path, part, record_property):
    source, half = tmp_path / "in", tmp_path / "half"
    for number in range(2):
        put(source, number)
    run_on(spark, source, half, close=False)
    put(source, 2)
    refused = 0
    for number in range(RESTARTS + 1):
        folder = tmp_path / str(number)
        shutil.copytree(half, folder)
        done = damage(folder / "checkpoint", 1000 * (part + 1) + number) if number else "nothing"
        try:
            run_on(spark, source, folder, close=True)
        except PenstockError:
            refused += 1
        else:
            if not number:
                expected = rows_in(folder)
            assert rows_in(folder) == expected, f"wrong rows after: {done}"
        shutil.rmtree(folder)
    record_property("corruptions_by_restart", RESTARTS)
    record_property("corruptions_by_restart_refused", refused)
