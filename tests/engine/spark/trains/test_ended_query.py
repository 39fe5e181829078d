"""A streaming query that ends outside of a train is started again, a few times; then the run fails."""

from __future__ import annotations

import errno

import pytest

import penstock as ps
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
