"""Feeding a running network, and watching its trains."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.common.process_tree import cpu_seconds


class Feeder(threading.Thread):
    """Moves prepared files into a directory, `batch` of them every `period` seconds."""

    def __init__(self, prepared: Sequence[Path], into: Path, period: float, batch: int = 1) -> None:
        super().__init__(name="feeder", daemon=True)
        self.prepared, self.into, self.period, self.batch = list(prepared), into, period, batch
        self.given: list[float] = []  # when each batch was there
        self._stopped = threading.Event()
        into.mkdir(parents=True, exist_ok=True)

    def run(self) -> None:
        begun = time.time()
        for number in range(0, len(self.prepared), self.batch):
            if self._stopped.wait(max(0.0, begun + len(self.given) * self.period - time.time())):
                return
            for path in self.prepared[number : number + self.batch]:
                path.rename(self.into / path.name)
            self.given.append(time.time())

    def stop(self) -> None:
        """Give no more, and be done when this returns."""
        self._stopped.set()
        self.join()


@dataclass(frozen=True)
class CommittedTrain:
    """A train that is through: when it arrived, left and was committed, and what it used."""

    number: int
    rows: int
    arrival: float
    started: float
    done: float
    cpu: float  # processor seconds of the whole tree so far
    state_bytes: int


class TrainWatch:
    """Notes every committed train of a sub-network."""

    def __init__(self, query: Any) -> None:
        self.seen: list[CommittedTrain] = []
        self._listen = query.settings.listen
        query.settings = replace(query.settings, listen=self._note)

    def _note(self, done: Any) -> None:
        ticket = done.ticket
        self.seen.append(
            CommittedTrain(
                number=ticket.train,
                rows=ticket.rows,
                arrival=ticket.arrival,
                started=done.started,
                done=time.time(),
                cpu=cpu_seconds(),
                state_bytes=done.state_bytes,
            )
        )
        if self._listen is not None:
            self._listen(done)
