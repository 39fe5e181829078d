"""Tickets and commits of one sub-network: a chain of records, each written once, with one owner at a time.

The chain is ticket 0, commit 0, ticket 1, commit 1 and so on. A record's name carries its train and the
epoch of its writer, and is created exclusively. A new owner takes over by writing a *fence* under the very
name that the old owner would use next. Either the old owner's record comes first, and counts; or the fence
does, and the old owner can never add anything more: it ends with a FencedError. No clock and no lock is
involved.

Names sort in the order of the chain. A fence says nothing about its train: the next epoch writes that record
under a name of its own.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from penstock.engine.contract.commit import Commit
from penstock.engine.contract.ticket import Ticket
from penstock.model.json_types import JsonMapping
from penstock.store.durable import create_record, make_directory, read_record
from penstock.store.errors import CorruptFileError, FencedError, MissingFileError
from penstock.store.file_names import number_text

TICKET, COMMIT = 0, 1
_FOLDERS = ("trains", "commits")
_AMENDED = "amended"
_FENCE, _LOG_NAME = "fenced_by", "log"
_NAME = re.compile(r"(\d{12})-(\d{6})\.json")
_Record = JsonMapping


class Slot(NamedTuple):
    """The place of one record in the chain. Slots sort in the order of the chain."""

    train: int
    kind: int
    epoch: int

    def path(self, root: Path) -> Path:
        return root / _FOLDERS[self.kind] / f"{number_text(self.train)}-{self.epoch:06d}.json"

    def following(self) -> Slot:
        """The place after this one, for the same owner.

        >>> Slot(3, TICKET, 7).following()
        Slot(train=3, kind=1, epoch=7)
        >>> Slot(3, TICKET, 7).following().following()
        Slot(train=4, kind=0, epoch=7)
        """
        ahead = (self.train, COMMIT) if self.kind == TICKET else (self.train + 1, TICKET)
        return Slot(*ahead, self.epoch)


class TrainLog:
    """The chain in the folders `trains` and `commits` of a sub-network.

    Anybody may read. An owner calls `take_over` before it writes. `sync`: records survive a power cut.
    """

    def __init__(self, root: Path, epoch: int = 0, *, sync: bool = False) -> None:
        self.root, self.epoch, self._sync = root, epoch, sync
        self._next: Slot | None = None  # of an owner: where it writes next
        for folder in _FOLDERS:
            make_directory(root / folder, sync=sync)

    # -- the owner

    def take_over(self, *, follows_dead: bool = False) -> None:
        """Put a fence where the owner before would write next.

        `follows_dead`: the owner before can no longer write, so the fence may be forgotten later.
        """
        while (head := self._head()).epoch < self.epoch:
            # The owner before is known to be dead. One before that may have taken this chain and still live.
            dead = follows_dead and head.epoch == self.epoch - 1
            if self._create(head, {_FENCE: self.epoch, "dead": dead}):
                break
        self._next = head._replace(epoch=self.epoch)
        self.must_own()

    def write_ticket(self, ticket: Ticket) -> None:
        self._write(Slot(ticket.train, TICKET, self.epoch), ticket.plain())

    def amend(self, ticket: Ticket) -> Ticket:
        """Replace the ticket of a train that could not read its input, before the train runs again.

        The chain itself is written only once, so amendments lie beside it, each under a name of its own. The
        commit names the one that the train ran with: an owner that was followed may still write another.
        """
        self.must_own()
        make_directory(self.root / _AMENDED, sync=self._sync)
        for attempt in itertools.count():
            amended = replace(ticket, amended=f"{number_text(ticket.train)}-{self.epoch:06d}-{attempt:06d}")
            record = {**amended.plain(), _LOG_NAME: self.root.name}
            if create_record(self._amendment(amended.amended), record, sync=self._sync):
                return amended
        raise AssertionError  # there is always a next number

    def _amendment(self, name: str) -> Path:
        return self.root / _AMENDED / f"{name}.json"

    def write_commit(self, commit: Commit) -> None:
        self._write(Slot(commit.train, COMMIT, self.epoch), commit.plain())

    def _write(self, slot: Slot, record: _Record) -> None:
        # An owner writes every record of its part of the chain. To skip one, because a later owner has
        # written it, would lead past the fence.
        if self._next not in (None, slot) or not self._create(slot, record):
            raise self._fenced()
        self._next = self._next and slot.following()

    def _create(self, slot: Slot, record: _Record) -> bool:
        path = slot.path(self.root)
        return create_record(path, {**record, _LOG_NAME: self.root.name}, sync=self._sync)

    def must_own(self) -> None:
        """Refuse to go on if another epoch owns the chain."""
        if self._head().epoch != self.epoch:
            raise self._fenced()

    def _fenced(self) -> FencedError:
        return FencedError(
            f"{self.root}: another process has taken over this checkpoint; "
            "this one has published nothing since and ends"
        )

    def forget(self, before: int) -> None:
        """Drop tickets and commits that nobody can ask for any more.

        A fence against an owner that may still live stays: without it that owner could go on.
        """
        for slot in self._slots():
            if slot.train < before and not self._guards(slot):
                slot.path(self.root).unlink(missing_ok=True)
        for path in (self.root / _AMENDED).glob("*.json"):
            if path.name < number_text(before):
                path.unlink(missing_ok=True)

    def _guards(self, slot: Slot) -> bool:
        try:
            record = self._read(slot)
        except CorruptFileError:
            return True  # what cannot be read may be a fence
        return record is not None and _FENCE in record and not record["dead"]

    # -- everybody

    def ticket(self, train: int) -> Ticket | None:
        """The ticket of a train; None before it is written."""
        name = self._amended(train)
        record = self._read_amendment(name) if name else self._newest(train, TICKET)
        return None if record is None else Ticket.of({k: v for k, v in record.items() if k != _LOG_NAME})

    def _amended(self, train: int) -> str:
        """The name of the amendment that counts: what the commit says, before it the newest; "" for none."""
        names = [path.stem for path in (self.root / _AMENDED).glob(f"{number_text(train)}-*.json")]
        # Without any, nearly always, one look must do: this is asked in every train.
        commit = self._newest(train, COMMIT) if names else self._read(Slot(train, COMMIT, self.epoch))
        return max(names, default="") if commit is None else str(commit.get("amended", ""))

    def _read_amendment(self, name: str) -> _Record:
        try:
            return read_record(self._amendment(name))
        except FileNotFoundError:
            raise self._gap(f"the amended ticket {name} is gone") from None

    def commit(self, train: int) -> Commit | None:
        """The commit of a train; None before it is written."""
        record = self._newest(train, COMMIT)
        return None if record is None else Commit.of(record)

    def committed_back(self, last: int) -> Iterator[Commit]:
        """The commits from train `last` back, as long as each is there with its ticket.

        The folders are listed once, however many trains there are.
        """
        slots = {(slot.train, slot.kind): slot for slot in self._slots()}  # of each the newest epoch's
        for train in range(last, -1, -1):
            commit, ticket = (self._read_filled(slots.get((train, kind))) for kind in (COMMIT, TICKET))
            amended = "" if commit is None else str(commit.get("amended", ""))
            if commit is None or (not self._amendment(amended).exists() if amended else ticket is None):
                return
            yield Commit.of(commit)

    def _read_filled(self, slot: Slot | None) -> _Record | None:
        record = None if slot is None else self._read(slot)
        return None if record is None or _FENCE in record else record

    def last(self) -> int:
        """The number of the newest ticket, -1 before the first."""
        return self._last(TICKET)

    def last_commit(self) -> int:
        """The number of the newest committed train, -1 before the first."""
        return self._last(COMMIT)

    def check(self) -> None:
        """Refuse a chain with a gap at its end: to go on would lose tuples or double them."""
        ticket, commit = self.last(), self.last_commit()
        if commit > ticket:
            raise self._gap(f"train {commit} has a commit but no ticket")
        if commit < ticket - 1:
            raise self._gap(f"train {ticket} has a ticket, but train {ticket - 1} before it has no commit")

    def _gap(self, problem: str) -> MissingFileError:
        return MissingFileError(
            f"{self.root}: {problem}: a record is lost",
            hint="restore the checkpoint from a copy, or start with a new one and new output folders",
        )

    def _last(self, kind: int) -> int:
        for slot in reversed(self._slots(kind)):
            record = self._read(slot)
            if record is not None and _FENCE not in record:
                return slot.train
        return -1

    def _head(self) -> Slot:
        """The next place to be filled, and whose it is."""
        slots = self._slots()
        record = self._read(slots[-1]) if slots else None
        if record is None:
            return slots[-1] if slots else Slot(0, TICKET, 0)
        return slots[-1]._replace(epoch=record[_FENCE]) if _FENCE in record else slots[-1].following()

    def _newest(self, train: int, kind: int) -> _Record | None:
        """The record of a train by the last epoch that wrote one; a fence is none."""
        record = self._read(Slot(train, kind, self.epoch))  # mine, in nearly all cases
        if record is not None and _FENCE in record and self._next is not None:
            raise self._fenced()
        if record is None or _FENCE in record:
            slots = [slot for slot in self._slots(kind) if slot.train == train]
            record = self._read(slots[-1]) if slots else None
        return None if record is None or _FENCE in record else record

    def _slots(self, *kinds: int) -> list[Slot]:
        """The places that are filled, in the order of the chain."""
        return sorted(
            Slot(int(match[1]), kind, int(match[2]))
            for kind in kinds or (TICKET, COMMIT)
            for path in (self.root / _FOLDERS[kind]).iterdir()
            if (match := _NAME.fullmatch(path.name))
        )

    def _read(self, slot: Slot) -> _Record | None:
        path = slot.path(self.root)
        try:
            record = read_record(path)
        except FileNotFoundError:
            return None
        if record.pop(_LOG_NAME, None) != self.root.name or record.get("train", slot.train) != slot.train:
            raise CorruptFileError(
                f"{path}: this record belongs to another place",
                hint="restore it from a copy of the checkpoint",
            )
        return record
