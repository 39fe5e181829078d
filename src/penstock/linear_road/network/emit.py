"""Emit: the time on the run's clock just before an answer becomes visible.

Meaning: docs/linear-road-semantics.md, "Output". Idea: the clock is a small file that the driver keeps. The
task that writes answers reads it, and reads it again whenever it has changed (a resumed run has another
start). Without a clock, at maximum speed, Emit is the answer's own Time.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from penstock.linear_road.drive.clock import CLOCK_FILE, Clock

# One for each worker process. The stamp itself is pickled and frozen, so it cannot hold the clock.
_clocks: dict[str, tuple[int, Clock]] = {}


@dataclass(frozen=True)
class EmitStamp:
    """Sets the column `Emit` of finished answers; `clock` is the clock's file or the directory it lies in."""

    clock: str

    def __call__(self, answers: pa.Table) -> pa.Table:
        clock = self._clock()
        if not clock.ticks:
            return answers
        # One stamp for all rows: they are in one file and become visible together.
        emit = pa.scalar(Decimal(f"{clock.now():.3f}"), pa.decimal128(12, 3))
        at = answers.schema.get_field_index("Emit")
        return answers.set_column(at, "Emit", pa.repeat(emit, answers.num_rows))

    def _clock(self) -> Clock:
        path = Path(self.clock)
        file = path / CLOCK_FILE if path.is_dir() else path
        # This runs for every answer file, and a look at the file's time is far cheaper than reading JSON.
        changed = file.stat().st_mtime_ns if file.exists() else -1
        known = _clocks.get(self.clock)
        if known is None or known[0] != changed:
            known = _clocks[self.clock] = (changed, Clock.load(path))
        return known[1]
