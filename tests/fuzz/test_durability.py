"""What each durability promises: the death of a process, and a power cut at any call to the disk."""

from __future__ import annotations

import random
import shutil

import pytest

from engine.spark.trains.test_express import deliver, network
from fuzz.power_cut import ForgettingDisk, PowerCutError
from penstock.engine.spark.recovery import version_folder
from penstock.engine.spark.tasks import state
from penstock.model.errors import PenstockError
from penstock.store import durable
from penstock.store.dead_letters import DeadLetters
from penstock.store.points.point import PointReader
from penstock.testing.dry_run import DryRun
from soak import count

CUTS = count(3, soak=300)
EVERY_TRAIN, SOMETIMES = 0.0, 0.1  # seconds of trains that may have to run again
SECONDS = 5


def with_view(folder):
    net = network(folder)
    net.stream("roads").view("kept", keep="1 hour")
    return net


def deliveries(folder):
    for at in range(1, SECONDS + 1):
        deliver(folder / "in", at, [f"1,{at % 3},30", f"bad {at}"], [f"2,{at % 2},40"])


def run(folder, *, sync, epoch, recovery=None):
    state._RESIDENT.clear()  # workers die too
    net = with_view(folder)
    dry = DryRun(net, folder / "checkpoint", length=1, sync=sync, epoch=epoch, recovery=recovery)
    dry.run_all()


def written(folder):
    lines = {
        name: sorted(
            line for file in (folder / "out" / name).glob("*.csv") for line in file.read_text().splitlines()
        )
        for name in ("roads", "cars")
    }
    rows = PointReader(folder / "checkpoint", "kept").read().select(["road", "n"]).to_pylist()
    return lines, sorted(map(str, rows)), sorted(DeadLetters(folder / "checkpoint").read()["raw"].to_pylist())


@pytest.fixture
def on_disk(monkeypatch):
    def put(layer):
        monkeypatch.setattr(durable, "layer", layer)
        return layer

    return put


@pytest.fixture
def memory(tmp_path, monkeypatch):
    """A folder that takes the place of the machine's memory."""
    (tmp_path / "memory").mkdir()
    monkeypatch.setattr(version_folder, "MEMORY", tmp_path / "memory")
    monkeypatch.setattr(version_folder, "_has_room", lambda _folder: True)
    return tmp_path / "memory"


def cut_short(folder, *, sync, recovery=None):
    try:
        run(folder, sync=sync, epoch=1, recovery=recovery)
    except PowerCutError:
        return True
    return False


@pytest.mark.parametrize("recovery", [None, EVERY_TRAIN, SOMETIMES])
@pytest.mark.parametrize("durability", ["process", "power"])
def test_a_cut_at_any_call_loses_nothing_that_is_promised(
    tmp_path, on_disk, memory, durability, recovery, record_property
):
    sync = durability == "power"
    deliveries(tmp_path)
    disk = on_disk(ForgettingDisk())
    run(tmp_path, sync=sync, epoch=1, recovery=recovery)
    calls, expected = disk.calls, written(tmp_path)
    dice, lost, cuts = random.Random(5), 0, 0
    for number in range(CUTS):
        folder = tmp_path / str(number)
        deliveries(folder)
        disk = on_disk(ForgettingDisk(dice.randrange(1, calls + 1)))
        cuts += cut_short(folder, sync=sync, recovery=recovery)
        if sync:  # the power fails; with "process" only the process dies
            lost += disk.cut(dice)
            shutil.rmtree(memory)
            memory.mkdir()
        on_disk(durable.FileLayer())
        run(folder, sync=sync, epoch=2, recovery=recovery)
        assert written(folder) == expected, f"cut {number}"
        shutil.rmtree(folder)
    assert cuts > CUTS / 2
    if sync:
        assert lost, "the disk never forgot anything: this test shows nothing"
    record_property(f"cuts_survived_{durability}_{recovery}", cuts)


def test_without_flushes_a_power_cut_does_lose(tmp_path, on_disk):
    """The test can tell: with durability 'process' the same cuts lose rows or are refused."""
    deliveries(tmp_path)
    run(tmp_path, sync=True, epoch=1)
    expected, dice, worse = written(tmp_path), random.Random(6), 0
    for number in range(12):
        folder = tmp_path / str(number)
        deliveries(folder)
        disk = on_disk(ForgettingDisk(40 + number * 3))
        cut_short(folder, sync=False)
        disk.cut(dice)
        on_disk(durable.FileLayer())
        try:
            run(folder, sync=False, epoch=2)
            worse += written(folder) != expected
        except PenstockError:
            worse += 1
    assert worse
