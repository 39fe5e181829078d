"""The current progress of a run: what came in, what went out, how far behind the clock it is.

Idea: the engine reports which files each committed train took, and delivered files are named by their second.
So the last second answered is known without reading anything, and files that are no longer needed can be
removed.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.connectors.contract import Slice
from penstock.linear_road.drive.clock import Clock
from penstock.linear_road.drive.driver import Feed
from penstock.linear_road.errors import ClockError
from penstock.linear_road.network.accidents import NOW
from penstock.linear_road.network.accounts import CHARGED
from penstock.linear_road.run.record import TrainFigures
from penstock.linear_road.run.resource_use import RunCounts
from penstock.store.file_names import delivered_file, delivery_of

if TYPE_CHECKING:
    from penstock.runtime import TrainDone  # needs Spark

_KEEP = 20
"""Delivered files of at least so many trains are kept."""

_RECENT = 64
_SECOND = 1_000_000
OUTPUTS: tuple[str, ...] = ("tolls", "alerts", "balances", "daily", "travel")
"""The outputs of the network in the order of the answer types.

The box before each is named `<output>_rows`.
"""


@dataclass
class RunProgress:
    """Counts of a run in progress; trains report from their own thread."""

    feed: Feed
    delivered: Path
    partitions: int | None = None
    """Those of the network, if groups share them."""
    rows_in: int = 0
    rows_out: int = 0
    trains: int = 0
    second: int = -1
    train_s: float = 0.0
    by_type: list[int] = field(default_factory=lambda: [0] * len(OUTPUTS))
    charges: int = 0
    """How many tolls above 0 were charged on leaving a segment; `charged` is their sum."""
    charged: int = 0
    accidents: int = 0
    """How many accidents there are, on all roads, as of the last train."""
    recent: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_RECENT))
    spans: list[TrainFigures] = field(default_factory=list)
    fresh: deque[Path] = field(default_factory=lambda: deque(maxlen=_RECENT))
    """The newest answer files, for the live view."""
    _done: deque[tuple[int, list[str]]] = field(default_factory=deque)  # trains and their files
    _needed: int = -1
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _clock: Clock | None = None

    def train_done(self, done: TrainDone) -> None:
        """Record a committed train (`penstock.runtime` calls this)."""
        now = time.time()
        slices = [s for taken in done.ticket.slices.values() for s in taken if isinstance(s, Slice)]
        paths = [path for piece in slices if (path := piece.whole_file()) is not None]
        paths += self._left_out(done)
        seconds = [delivery.second for path in paths if (delivery := delivery_of(path))]
        with self._lock:
            self.trains += 1
            self.rows_in += done.ticket.rows
            self.second = max([self.second, *seconds])
            self.train_s = now - done.started
            self.recent.append((now, done.ticket.rows))
            self._count(done.commit.counts)
            if seconds:
                self.spans.append(self._span(done, max(seconds)))
            self.fresh.extend(map(Path, done.shown))
            self._done.append((done.ticket.train, paths))
            self._needed = done.needed

    def _left_out(self, done: TrainDone) -> list[str]:
        """The files that the train has left out unread: nobody needs them any more."""
        left = [left for left in done.ticket.shed.values() if left.oldest is not None]
        return [
            str(self.delivered / delivered_file(second, group, self.feed.suffix))
            for each in left
            for second in range((each.oldest or 0) // _SECOND, (each.newest or 0) // _SECOND + 1)
            for group in each.groups
        ]

    def _span(self, done: TrainDone, second: int) -> TrainFigures:
        since = done.ticket.since
        partitions = self.partitions or self.feed.groups
        boxes = sum(cost.wall for cost in done.commit.costs.values()) / partitions
        read, write, state = (done.phases.get(name, 0.0) / partitions for name in ("read", "write", "state"))
        return {
            "second": second,
            "rows": done.ticket.rows,
            "waited_s": round(max(0.0, done.started - since), 3) if since is not None else 0.0,
            "ran_s": round(done.seconds, 3),
            "job_s": round(done.phases.get("run", 0.0), 3),
            "read_s": round(read, 3),
            "boxes_s": round(boxes, 3),
            "write_s": round(write, 3),
            "state_s": round(state, 3),
        }

    def _count(self, counts: dict[str, dict[str, int]]) -> None:
        self.charges += counts.get("charges", {}).get("out", 0)
        self.charged += counts.get("accounts", {}).get(CHARGED, 0)
        self.accidents = counts.get("accidents", {}).get(NOW, 0)
        for kind, name in enumerate(OUTPUTS):
            left = counts.get(f"{name}_rows", {}).get("out", 0)
            self.by_type[kind] += left
            self.rows_out += left

    @property
    def clock(self) -> Clock | None:
        """The clock of the run; None before it starts and in a run at maximum speed."""
        if self._clock is None:
            with contextlib.suppress(ClockError):
                clock = Clock.load(self.delivered)
                # After a clean stop the old clock stands still until the driver restarts it.
                self._clock = clock if clock.ticks and clock.paused_at is None else None
        return self._clock

    @property
    def rate(self) -> float:
        """Tuples a second over the last trains."""
        with self._lock:
            recent = list(self.recent)
        if len(recent) < 2:
            return 0.0
        span = recent[-1][0] - recent[0][0]
        # The rows of the first train came before the span began.
        return sum(rows for _, rows in recent[1:]) / span if span > 0 else 0.0

    def now(self) -> float:
        """The time of the run: its clock, or without one the last second answered."""
        return float(self.second) if self.clock is None else self.clock.now()

    def backlog(self) -> float:
        """Seconds of input that are due and not answered yet."""
        if self.clock is None:
            return 0.0
        # The clock runs on after the last second, but nothing more falls due.
        due = min(self.clock.now(), self.feed.end - 1)
        return max(0.0, due - max(self.second, self.feed.begin - 1))

    def counts(self) -> RunCounts:
        """The counts that a sampler records."""
        return RunCounts(self.now(), self.rows_in, self.rows_out, self.backlog())

    def new_files(self) -> list[Path]:
        """Answer files that nobody has asked for yet."""
        with self._lock:
            files = list(self.fresh)
            self.fresh.clear()
        return files

    def sweep(self) -> None:
        """Remove delivered files that no train will read again, so that the disk does not fill."""
        old: list[str] = []
        with self._lock:
            # A train after `_needed` may run again after a crash and would read its files again.
            while len(self._done) > _KEEP and self._done[0][0] <= self._needed:
                old += self._done.popleft()[1]
        # Outside the lock: deleting takes time, and a train that reports must not wait for it.
        for path in old:
            Path(path).unlink(missing_ok=True)
