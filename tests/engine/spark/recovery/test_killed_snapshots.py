"""A process that is killed while it writes a snapshot, with and without a machine that goes down."""

from __future__ import annotations

import pytest

from engine.spark.recovery.dry_recovery import EVERY_TRAIN, reboot, start, trains, written
from penstock.engine.spark.recovery import snapshots

POINTS = (
    "snapshot-before-files",
    "snapshot-before-record",
    "snapshot-after-record",
    "snapshot-before-forget",
)


class KilledError(BaseException):
    """Nothing catches a kill."""


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("times", [1, 2, 4])
@pytest.mark.parametrize("point", POINTS)
def test_the_next_run_goes_on(run, expected, memory, monkeypatch, point, times, down):
    reached = []

    def dies(name):
        reached.append(name)
        if reached.count(point) == times:
            raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(snapshots, "crash_point", dies)
        dry = start(run, EVERY_TRAIN)
        with pytest.raises(KilledError):
            trains(dry, 8)
    if down:
        reboot(memory)
    start(run, EVERY_TRAIN, epoch=2).run_all()
    assert written(run) == expected
