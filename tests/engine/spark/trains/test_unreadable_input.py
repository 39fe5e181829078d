"""Which failures of a train are its input's fault, and what its ticket then leaves out."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.connectors.files.parquet import RowGroups, WholeParquet
from penstock.connectors.files.text import ByteRange
from penstock.engine.contract.account import AccountError
from penstock.engine.contract.commit import Commit
from penstock.engine.contract.ticket import Ticket
from penstock.engine.contract.train_log import TrainLog
from penstock.engine.spark.trains.unreadable_input import without_unreadable
from penstock.store.errors import MissingFileError


def text(path, content="1\n2\n", number=0):
    path.write_text(content)
    return ByteRange(str(path), number, 0, len(content), 0, rows=2)


def parquet(path):
    pq.write_table(pa.table({"v": [1, 2, 3]}), path, row_group_size=2)
    return WholeParquet(str(path), 0, 3)


def test_a_fault_elsewhere_leaves_the_ticket_as_it_is(tmp_path):
    pieces = {"a": [text(tmp_path / "a.csv")], "b": [parquet(tmp_path / "b.parquet")]}
    assert without_unreadable(Ticket(0, 0.0, slices=pieces), RuntimeError("a user's function")) is None


def test_files_that_are_gone_or_loops_are_left_out(tmp_path):
    kept = text(tmp_path / "a.csv")
    gone, loop = text(tmp_path / "b.csv", number=1), text(tmp_path / "c.csv", number=2)
    (tmp_path / "b.csv").unlink()
    (tmp_path / "c.csv").unlink()
    (tmp_path / "c.csv").symlink_to(tmp_path / "c.csv")
    amended = without_unreadable(Ticket(3, 0.0, slices={"s": [kept, gone, loop]}), RuntimeError())
    assert amended.slices == {"s": [kept]}
    letters = amended.left_out["s"]
    assert [(piece["file"], piece["tuples"], piece["offset"]) for piece in letters] == [
        (gone.path, 2, 1 << 40),
        (loop.path, 2, 2 << 40),
    ]
    assert "deleted" in letters[0]["reason"]
    assert "symbolic links" in letters[1]["reason"]


@pytest.mark.parametrize(
    "error", [RuntimeError("[FAILED_READ_FILE.NO_HINT] b.parquet"), AccountError("lost or doubled")]
)
def test_what_sparks_reader_cannot_take_is_read_by_row_groups(tmp_path, error):
    whole = parquet(tmp_path / "b.parquet")
    amended = without_unreadable(Ticket(0, 0.0, slices={"s": [whole]}), error)
    (groups,) = amended.slices["s"]
    assert isinstance(groups, RowGroups)
    assert (groups.path, groups.first, groups.last, groups.row, groups.rows) == (whole.path, 0, 2, 0, 3)
    assert amended.left_out == {}
    assert without_unreadable(amended, error) is None  # once is enough


def test_an_amended_ticket_is_the_one_that_counts(tmp_path):
    log = TrainLog(tmp_path, epoch=1)
    log.take_over()
    log.write_ticket(Ticket(0, 0.0, slices={"s": [text(tmp_path / "a.csv")]}))
    left_out = {"s": [{"raw": "a.csv", "reason": "gone", "offset": 0, "tuples": 2}]}
    log.amend(Ticket(0, 0.0, left_out=left_out))
    assert TrainLog(tmp_path, epoch=1).ticket(0).left_out == left_out
    assert log.last() == 0


def test_a_committed_train_keeps_the_ticket_it_ran_with(tmp_path):
    """An owner that was suspended while it amended a ticket must not change a follower's committed train."""
    old, new = TrainLog(tmp_path, epoch=1), TrainLog(tmp_path, epoch=2)
    old.take_over()
    old.write_ticket(Ticket(0, 0.0, rows=5))
    left_out = {"s": [{"raw": "a.csv", "reason": "gone", "offset": 0, "tuples": 5}]}
    first = old.amend(Ticket(0, 0.0, rows=5, left_out=left_out))
    new.take_over()
    ran_with = new.ticket(0)
    assert ran_with == first
    new.write_commit(Commit(0, epoch=2, amended=ran_with.amended))
    old.must_own = lambda: None  # it looked before it was followed
    old.amend(Ticket(0, 0.0, rows=5))
    assert new.ticket(0).left_out == left_out


def test_a_train_without_an_amendment_gets_none_afterwards(tmp_path):
    old, new = TrainLog(tmp_path, epoch=1), TrainLog(tmp_path, epoch=2)
    old.take_over()
    old.write_ticket(Ticket(0, 0.0, rows=5))
    new.take_over()
    new.write_commit(Commit(0, epoch=2, amended=new.ticket(0).amended))
    old.must_own = lambda: None
    old.amend(Ticket(0, 0.0, rows=4))
    assert new.ticket(0).rows == 5


def test_a_lost_amendment_is_refused(tmp_path):
    log = TrainLog(tmp_path, epoch=1)
    log.take_over()
    log.write_ticket(Ticket(0, 0.0, rows=5))
    amended = log.amend(Ticket(0, 0.0, rows=4))
    log.write_commit(Commit(0, epoch=1, amended=amended.amended))
    (file,) = (tmp_path / "amended").iterdir()
    file.unlink()
    with pytest.raises(MissingFileError, match="amended ticket"):
        log.ticket(0)


def test_amendments_of_forgotten_trains_are_deleted(tmp_path):
    log = TrainLog(tmp_path, epoch=1)
    log.take_over()
    for train in range(3):
        log.write_ticket(Ticket(train, 0.0))
        log.write_commit(Commit(train, epoch=1, amended=log.amend(Ticket(train, 0.0)).amended))
    log.forget(before=2)
    assert [path.name[:12] for path in (tmp_path / "amended").iterdir()] == ["000000000002"]
