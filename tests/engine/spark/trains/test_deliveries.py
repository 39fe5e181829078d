"""Outputs of this process get every row of a committed train, also if one of them fails for a while."""

from __future__ import annotations

import pytest

import penstock as ps
from connectors.test_inputs import put
from penstock.engine.spark.trains.failures import TrainFailedError
from penstock.testing.dry_run import DryRun

ROWS = 20


class Asked:
    """A callback that fails at its first calls."""

    def __init__(self, fails, before_failing=lambda: None):
        self.fails, self.before_failing, self.values = fails, before_failing, []

    def __call__(self, table):
        if self.fails:
            self.fails -= 1
            self.before_failing()
            raise ValueError("not now")
        self.values += table.column("v").to_pylist()


def started(folder, asked, **more):
    """A run with two outputs of this process: the callback comes first."""
    (folder / "in").mkdir()
    put(folder / "in" / "a.csv", "".join(f"{n},{n}\n" for n in range(ROWS)), 100)
    net, sink = ps.Network("told"), ps.memory()
    cars = net.source("cars", ps.csv(str(folder / "in"), "time TIMESTAMP, v INT"), timestamp="time")
    kept = cars.filter("v >= 0")
    kept.output("asked", to=ps.callback(asked))
    kept.output("listed", to=sink)
    return DryRun(net, folder / "checkpoint", **more), sink


def test_a_callback_that_fails_once_gets_its_rows_and_so_do_those_behind_it(tmp_path):
    asked, heard = Asked(fails=1), []
    run, sink = started(tmp_path, asked, listen=heard.append)
    run.run_all()
    assert asked.values == [row["v"] for row in sink.rows] == list(range(ROWS))
    assert heard[0].delivered == {"asked": ROWS, "listed": ROWS}


def test_a_committed_train_does_not_run_again_when_its_input_is_gone(tmp_path):
    """It would be amended, and end as if another process had taken over."""
    asked = Asked(fails=1, before_failing=(tmp_path / "in" / "a.csv").unlink)
    run, sink = started(tmp_path, asked)
    assert run.train()
    assert asked.values == [row["v"] for row in sink.rows] == list(range(ROWS))


def test_one_that_fails_for_good_ends_the_run_but_keeps_no_other_from_its_rows(tmp_path):
    run, sink = started(tmp_path, Asked(fails=100))
    with pytest.raises(TrainFailedError, match="not now"):
        run.train()
    assert len(sink.rows) == ROWS
    assert run.query.log.last_commit() == 0
