"""Two owners of one checkpoint: the older one is suspended anywhere, wakes up, and changes nothing.

The real conductor, tasks and files, without Spark: see DryRun.
"""

from __future__ import annotations

import threading

import pytest

from engine.spark.trains.test_express import deliver, network
from penstock.engine.spark.tasks import stage
from penstock.engine.spark.trains import query, train
from penstock.store.dead_letters import DeadLetters
from penstock.store.errors import FencedError
from penstock.store.points.point import PointReader
from penstock.testing.dry_run import DryRun

POINTS = (
    "ticket-before-write",
    "ticket-after-write",
    "stage-before-state",
    "stage-after-state",
    "train-before-commit",
    "train-after-commit",
    "train-published",
)
SECONDS = 9


def deliveries(folder):
    for at in range(1, SECONDS + 1):
        deliver(folder / "in", at, [f"1,{at % 3},30", f"bad {at}"], [f"2,{at % 2},40"])


def with_view(folder):
    net = network(folder)
    net.stream("roads").view("kept", keep="1 hour")
    return net


def written(folder):
    """Everything that a reader can see of a run."""
    lines = {
        name: sorted(
            line for file in (folder / "out" / name).glob("*.csv") for line in file.read_text().splitlines()
        )
        for name in ("roads", "cars")
    }
    rows = PointReader(folder / "checkpoint", "kept").read().select(["road", "n", "_entry"]).to_pylist()
    letters = DeadLetters(folder / "checkpoint").read().select(["raw", "reason", "train", "line"]).to_pylist()
    return lines, sorted(map(str, rows)), sorted(map(str, letters))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    deliveries(folder)
    DryRun(with_view(folder), folder / "checkpoint", length=1, epoch=1).run_all()
    return written(folder)


class Suspended(threading.Thread):
    """An owner that stands still at a point of the code until it is let go."""

    def __init__(self, folder, point, times):
        super().__init__(daemon=True)
        self.dry = DryRun(with_view(folder), folder / "checkpoint", length=1, epoch=1)
        self.point, self.left = point, times
        self.asleep, self.awake = threading.Event(), threading.Event()
        self.error = None

    def reached(self, name):
        if threading.current_thread() is self and name == self.point:
            self.left -= 1
            if self.left == 0:
                self.asleep.set()
                self.awake.wait(60)

    def run(self):
        try:
            self.dry.run_all()
        except BaseException as error:
            self.error = error
        self.asleep.set()


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("wakes", ["at the end", "in the middle"])
def test_a_suspended_owner_changes_nothing(tmp_path, monkeypatch, undisturbed, point, wakes):
    deliveries(tmp_path)
    old = Suspended(tmp_path, point, times=4)
    for module in (query, train, stage):
        monkeypatch.setattr(module, "crash_point", old.reached)
    old.start()
    assert old.asleep.wait(60)
    new = DryRun(with_view(tmp_path), tmp_path / "checkpoint", length=1, epoch=2)
    if wakes == "in the middle":
        new.train()
        old.awake.set()
        old.join(60)
    new.run_all()
    old.awake.set()
    old.join(60)
    assert isinstance(old.error, FencedError), repr(old.error)
    assert "has taken over this checkpoint" in str(old.error)
    assert written(tmp_path) == undisturbed


def test_an_epoch_that_came_too_late_does_not_start(tmp_path):
    deliveries(tmp_path)
    DryRun(with_view(tmp_path), tmp_path / "checkpoint", epoch=3)
    with pytest.raises(FencedError):
        DryRun(with_view(tmp_path), tmp_path / "checkpoint", epoch=2)
