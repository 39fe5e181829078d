"""Any interleaving of old and new owners over one train log: one history, and nothing else is published.

An owner can be overtaken between looking at the log and writing to it. So other owners act inside that gap:
the layer below `durable.create` lets them, as a drawn script says.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.contract.commit import Commit
from penstock.engine.contract.ticket import Ticket
from penstock.engine.contract.train_log import TrainLog
from penstock.store import durable
from penstock.store.errors import FencedError
from soak import count

CASES = count(150, soak=20_000)
_NEW, _FORGET = 0, 1  # actions; any other number is a step of that owner


class Owner:
    """One owner, as far as the log is concerned: ticket, commit, publish, one step at a time."""

    def __init__(self, root: Path, epoch: int, published: dict[int, set[float]]) -> None:
        self.log, self.published, self.alive = TrainLog(root, epoch), published, True
        self.pending: Commit | None = None  # committed, not published
        self.ready = self.busy = False

    def open(self) -> None:
        self.log.take_over()
        self.log.check()
        self.pending = self.log.commit(self.log.last_commit())
        self.last, self.committed, self.ready = self.log.last(), self.log.last_commit(), True

    def step(self) -> None:
        if self.busy:
            return  # it cannot overtake itself
        self.busy = True
        try:
            self._step()
        except FencedError:
            self.alive = False
        finally:
            self.busy = False

    def _step(self) -> None:
        if not self.ready:
            self.open()
        elif self.pending is not None:
            self.published.setdefault(self.pending.train, set()).add(self.pending.finished)
            self.pending = None
        elif self.last > self.committed:
            ticket = self.log.ticket(self.last)
            if ticket is None:  # forgotten, long after this owner was followed
                self.log.must_own()
            assert ticket is not None
            commit = self.log.commit(self.last)
            if commit is None:
                # What a train does follows from its ticket.
                commit = Commit(self.last, finished=ticket.arrival)
                self.log.write_commit(commit)
            self.committed, self.pending = self.last, commit
        else:
            self.log.write_ticket(Ticket(self.last + 1, arrival=self.log.epoch * 1000.0 + self.last + 1))
            self.last += 1


class Overtaking(durable.FileLayer):
    """Before a name is taken, others may act."""

    def __init__(self, between) -> None:
        self.between = between

    def link(self, path: Path, target: Path) -> None:
        self.between()
        super().link(path, target)


class World:
    """Owners that act as the script says, also in the middle of one another's writes."""

    def __init__(self, root: Path, script: list[int]) -> None:
        self.root, self.script, self.depth = root, list(script), 0
        self.published: dict[int, set[float]] = {}
        self.owners: list[Owner] = []

    def act(self) -> None:
        if not self.script:
            return
        action = self.script.pop()
        if action == _NEW or not self.owners:
            self.owners.append(Owner(self.root, len(self.owners) + 1, self.published))
        elif action == _FORGET:
            self.owners[-1].log.forget(self.owners[-1].log.last_commit() - 1)
        else:
            owner = self.owners[action % len(self.owners)]
            if owner.alive:
                owner.step()

    def between(self) -> None:
        if self.depth < 2 and self.script:
            self.depth += 1
            for _ in range(self.script.pop() % 4):
                self.act()
            self.depth -= 1

    def run(self) -> None:
        normal, durable.layer = durable.layer, Overtaking(self.between)
        try:
            while self.script:
                self.act()
        finally:
            durable.layer = normal


@settings(max_examples=CASES, deadline=None)
@given(st.lists(st.integers(0, 12), max_size=80))
def test_one_history(script):
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), script)
        world.run()
        reader = TrainLog(Path(folder))
        for train, values in world.published.items():
            assert len(values) == 1, f"train {train} was published in two versions"
        last = Owner(Path(folder), 10_000, world.published)
        last.open()
        last.step()
        assert reader.last_commit() >= max(world.published, default=-1)
        for train in range(max(0, reader.last_commit() - 1), reader.last_commit() + 1):
            commit = reader.commit(train)
            assert commit is not None
            assert world.published.get(train, {commit.finished}) == {commit.finished}
        for owner in world.owners:
            if owner.ready and owner.alive:
                # Whoever was followed is fenced at its next write, however much later.
                for _ in range(3):
                    owner.step()
                assert not owner.alive


def test_a_reader_sees_past_the_fences_of_all_epochs(tmp_path):
    for epoch in (1, 2, 3):
        owner = Owner(tmp_path, epoch, {})
        for _ in range(4):
            owner.step()
    reader = TrainLog(tmp_path)
    trains = range(reader.last() + 1)
    assert [reader.ticket(train).train for train in trains] == list(trains)
    assert [reader.commit(train).train for train in trains] == list(trains)


def test_how_many(record_property):
    record_property("interleavings_of_owners", CASES)
