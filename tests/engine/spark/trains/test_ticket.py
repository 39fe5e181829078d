"""Tickets and commits: what steers a train is on disk before it runs."""

from __future__ import annotations

import pytest

from penstock.connectors.files.text import ByteRange, TextPosition
from penstock.connectors.rate import RateSlice
from penstock.engine.contract.commit import Commit, PointPart
from penstock.engine.contract.cost import BoxCost
from penstock.engine.contract.ticket import UNKNOWN, Ticket
from penstock.engine.contract.train_log import TICKET, Slot, TrainLog
from penstock.model.diffused.roles import Report, Roles
from penstock.model.errors import PenstockError
from penstock.store.points.manifest import DataFile


def ticket(train: int, **more):
    return Ticket(train=train, arrival=12.5, **more)


def test_a_ticket_comes_back_as_it_was_written(tmp_path):
    log = TrainLog(tmp_path)
    made = ticket(
        3,
        slices={"cars": [ByteRange("/x", 0, 0, 9, 0, columns=["v"])], "doors": []},
        positions={"cars": TextPosition(1, 0, 0), "doors": None},
        horizons={"cars": UNKNOWN, "doors": 2**62 + 1},
        newest={"cars": -5},
        drop_rates={"shed": 0.125},
        idle=["doors"],
        lifted={"both": (7, 9)},
        late_at=["both"],
        final=True,
        rows=4,
        joins={"j": Roles(2, "hash", (0, 1), reach=(3, 4))},
        refused={"cars": [{"raw": "ä", "reason": "r", "offset": 1}]},
        left_out={"cars": [{"raw": "b.csv", "reason": "gone", "offset": 2, "tuples": 7}]},
    )
    log.write_ticket(made)
    assert TrainLog(tmp_path).ticket(3) == made


def test_a_commit_comes_back_as_it_was_written(tmp_path):
    made = Commit(
        3,
        {"cars": 7},
        (("a", "b"),),
        {"p": PointPart((DataFile("d.parquet", 3, 70, 1, 0, 0),), 5, final=False, idle=True)},
        {"f": {"in": 2}},
        1,
        99.5,
        {"j": (Report(0, (1, 2)),)},
        {"f": BoxCost(0.5, 0.25)},
    )
    TrainLog(tmp_path).write_commit(made)
    assert TrainLog(tmp_path).commit(3) == made


def test_what_is_not_there_is_none(tmp_path):
    log = TrainLog(tmp_path)
    assert (log.ticket(0), log.commit(0), log.last()) == (None, None, -1)


def test_last_is_the_newest_ticket_also_beyond_ten(tmp_path):
    log = TrainLog(tmp_path)
    for number in (8, 9, 10, 11):
        log.write_ticket(ticket(number))
    assert log.last() == 11


@pytest.mark.parametrize(
    ("slices", "empty"), [({}, True), ({"a": []}, True), ({"a": [], "b": [RateSlice(0, 1, 0, 10)]}, False)]
)
def test_empty(slices, empty):
    assert ticket(0, slices=slices).empty is empty


def test_forget_drops_only_what_lies_before(tmp_path):
    log = TrainLog(tmp_path)
    for number in range(10):
        log.write_ticket(ticket(number))
        log.write_commit(Commit(number))
    log.forget(4)
    log.forget(7)
    assert [n for n in range(10) if log.ticket(n) is not None] == [7, 8, 9]
    assert [n for n in range(10) if log.commit(n) is not None] == [7, 8, 9]
    assert log.last() == 9


@pytest.mark.parametrize(
    "harm",
    [lambda data: data[: len(data) // 2], lambda data: data.replace(b"12.5", b"12.6"), lambda data: b""],
)
def test_a_harmed_ticket_is_refused(tmp_path, harm):
    log = TrainLog(tmp_path)
    log.write_ticket(ticket(0))
    path = Slot(0, TICKET, 0).path(tmp_path)
    path.write_bytes(harm(path.read_bytes()))
    with pytest.raises(PenstockError, match=str(path)):
        log.ticket(0)
