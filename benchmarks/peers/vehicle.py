"""The state of one vehicle in Spark: its reports of the last 30 s, and what a new report makes of it.

`quoted` is the minute in which the vehicle was told the toll of the segment it is in (0: it was not), `still`
how many of its latest reports, 30 s apart, were from one place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from penstock.linear_road.rows.fields import COLUMNS

_INPUT = tuple(name.lower() for name in COLUMNS)
EVENTS = (
    ", ".join(f"{name} INT" for name in _INPUT)
    + ", first BOOLEAN, entered BOOLEAN, from_seg INT, quoted INT, stopped BOOLEAN"
)
EVENT = Row(*_INPUT, "first", "entered", "from_seg", "quoted", "stopped")
_REQUEST = (False, False, -1, 0, False)
_WIDTH = 8
"""A remembered report is so many numbers: time, xway, dir, lane, seg, pos, quoted, still."""


class Vehicle(StatefulProcessor):
    """Follows one vehicle."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("recent", "recent ARRAY<INT>")

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,  # noqa: ARG002 - Spark gives it
        rows: Any,
        timerValues: Any,  # noqa: ARG002 - as above
    ) -> Iterator[Row]:
        recent = self._recent()
        for row in sorted(rows, key=lambda row: (row.time, row.type)):
            if row.type != 0:
                yield EVENT(*row, *_REQUEST)
                continue
            event, report = step(row, recent)
            recent = [*(r for r in recent if r[0] >= row.time - 30), report]
            yield EVENT(*row, *event)
        self._state.update(([number for report in recent for number in report],))

    def _recent(self) -> list[tuple[int, ...]]:
        state = self._state.get()
        flat = list(state[0]) if state is not None else []
        return [tuple(flat[i : i + _WIDTH]) for i in range(0, len(flat), _WIDTH)]

    def close(self) -> None:
        pass


def step(row: Any, recent: list[tuple[int, ...]]) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """What a report is (first, entered, from_seg, quoted, stopped), and what to remember of it."""
    before = next((r for r in recent if r[:3] == (row.time - 30, row.xway, row.dir)), None)
    first = before is None or (before[3] == 4 and row.lane != 4)
    entered = first or before is None or before[4] != row.seg
    known = before[6] if before is not None else 0
    quoted = known if not entered else 0 if row.lane == 4 else row.time // 60 + 1
    alone = not any(row.time - 30 < r[0] < row.time for r in recent)
    same = before is not None and 1 <= row.lane <= 3 and (before[3], before[5]) == (row.lane, row.pos)
    still = before[7] + 1 if before is not None and same and alone else 1
    event = (first, entered, before[4] if before is not None else -1, known, still >= 4)
    return event, (row.time, row.xway, row.dir, row.lane, row.seg, row.pos, quoted, still)
