"""A streaming query that ends outside of a train is started again, a few times; then the run fails."""

from __future__ import annotations

import errno

import pytest

import penstock as ps
from engine.spark.trains.test_deliveries import Asked, started
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.steering import Steering
from penstock.engine.contract.train_log import TrainLog
from penstock.engine.spark.trains.failures import ATTEMPTS, TrainFailedError
from penstock.engine.spark.trains.own_records import is_published, note_published
from penstock.engine.spark.trains.query import SubnetworkQuery
from penstock.rewrite.subnetworks import SubNetwork, split
from penstock.store.errors import FencedError
from penstock.testing import collect, rows_source


class EndedQuery:
    """Spark's query, after a program that it needed was killed."""

    isActive = False

    def exception(self) -> Exception:
        return RuntimeError('Cannot run program "chmod": signal: 9')


class EndingQuery(SubnetworkQuery):
    """Counts the starts of the streaming query, each of which ends at once."""

    starts = 0

    def _start_ticks(self) -> None:
        self.starts += 1
        self.query = EndedQuery()


def subnetwork() -> SubNetwork:
    net = ps.Network("n")
    cars = net.source("cars", rows_source("time TIMESTAMP, k INT"), timestamp="time")
    cars.output("out", to=collect())
    return split(net)[0]


def test_a_query_that_ends_by_itself_is_started_again(tmp_path):
    query = EndingQuery(subnetwork(), None, tmp_path, Steering(AsSoonAsPossible()))
    query._start_ticks()
    for _ in range(ATTEMPTS):
        query.check()
    assert query.starts == 1 + ATTEMPTS
    with pytest.raises(TrainFailedError, match="chmod"):
        query.check()


def test_one_that_was_told_to_stop_is_not(tmp_path):
    query = EndingQuery(subnetwork(), None, tmp_path, Steering(AsSoonAsPossible()))
    query._start_ticks()
    query._stop.set()
    query.check()
    assert query.starts == 1


def test_a_shortage_of_descriptors_is_waited_out(tmp_path, monkeypatch, caplog):
    query = EndingQuery(subnetwork(), None, tmp_path, Steering(AsSoonAsPossible()))
    answers = [OSError(errno.EMFILE, "too many open files"), OSError(errno.EMFILE, "again"), True]

    def next_ticket() -> bool:
        if isinstance(answer := answers.pop(0), OSError):
            raise answer
        return answer

    monkeypatch.setattr(query, "next_ticket", next_ticket)
    assert [query._ticket_written() for _ in range(3)] == [False, False, True]
    assert caplog.text.count("cannot read its input for now") == 1
    answers = [OSError(errno.EIO, "the disk is broken")]
    with pytest.raises(OSError, match="broken"):
        query._ticket_written()


def test_an_owner_that_was_followed_leaves_the_note_of_its_follower(tmp_path):
    old = EndingQuery(subnetwork(), None, tmp_path, Steering(AsSoonAsPossible()))
    note_published(old.trains.directory, 7, sync=False)
    TrainLog(old.log.root, epoch=9).take_over()
    with pytest.raises(FencedError):
        old._write_published()
    assert is_published(old.trains.directory, 7)


def test_a_start_that_cannot_publish_notes_nothing(tmp_path, monkeypatch):
    """The note would keep the next start from it, and the files of the last train would stay hidden."""
    run, _ = started(tmp_path, Asked(fails=0))
    run.run_all()
    again = EndingQuery(run.query.sub, None, tmp_path / "checkpoint", Steering(AsSoonAsPossible()))

    def full(*_):
        raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as patch:
        patch.setattr(again.trains, "_publish", full)
        with pytest.raises(OSError, match="no space left"):
            again.start()
    again.stop()
    assert not is_published(again.trains.directory, again.last)


def test_a_failure_that_nobody_has_asked_for_is_told_at_the_end(tmp_path, caplog):
    for asked in (True, False):
        query = EndingQuery(subnetwork(), None, tmp_path / str(asked), Steering(AsSoonAsPossible()))
        query.failure = OSError(errno.EIO, "the disk is broken")
        if asked:
            with pytest.raises(TrainFailedError, match="the disk is broken"):
                query.check()
        query.stop()
    assert caplog.text.count("sub-network 'out' had failed: [Errno 5] the disk is broken") == 1


class RunningQuery:
    """Spark's query, which goes on whatever it is told."""

    isActive = True

    def stop(self) -> None:
        """It does not."""


@pytest.mark.parametrize("failure", [None, OSError(errno.EIO, "the input is broken")])
def test_stopping_says_whether_a_train_still_runs(tmp_path, failure, caplog):
    """Also if the conductor has failed meanwhile: the train goes on to its commit."""
    query = EndingQuery(subnetwork(), None, tmp_path, Steering(AsSoonAsPossible()))
    query.query, query.failure = RunningQuery(), failure
    assert query.drain(0.1)
    query._last, query._committed = 1, 0
    assert not query.drain(0.1)
    assert not query.stop(timeout=0.1)
    assert "its train 1 still runs" in caplog.text
    query.query.isActive = False
    assert query.stop(timeout=0.1)
