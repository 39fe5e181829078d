"""The contract between an engine and a box that runs in it: trains of tuples and horizons in, tuples out.

A box is configuration; its logic holds the state of one partition (all tuples of a key come to the same one).
Input and output tables have exactly `arrow_schema` of their stream type: visible columns, then `_ts` and
`_seq`.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import pyarrow as pa

from penstock.model.boxes import Join, Latch, Node, Windowed
from penstock.model.durations import Count
from penstock.model.errors import NetworkError
from penstock.model.types import SEQ, STAMP, StreamType

MIN = -(2**63) + 1  # the horizon when nothing is known
_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
# `tuples`: how many a letter stands for. Only a file, or a part of one, stands for more than one.
DEAD_SCHEMA = pa.schema(
    [
        ("raw", pa.string()),
        ("reason", pa.string()),
        ("offset", pa.int64()),
        ("box", pa.string()),
        ("tuples", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Answer:
    """What a box makes of one train: tuples, and the dead letters of those it could not process."""

    out: pa.Table
    dead: pa.Table


class Logic(Protocol):
    """One box in one partition."""

    def process(self, inputs: list[pa.Table], horizons: tuple[int, ...], *, final: bool) -> Answer:
        """Take one train. `final`: the input has ended, so every window closes and nothing waits."""

    def delta(self) -> dict[str, pa.Table]:
        """What changed since the last `delta` or `restore`, as small tables. Each change is given once."""

    def apply(self, delta: Mapping[str, pa.Table]) -> None:
        """Bring a state of version b - 1 to version b."""

    def snapshot(self) -> dict[str, pa.Table]:
        """The whole state. It does not affect what `delta` gives next."""

    def restore(self, snapshot: Mapping[str, pa.Table]) -> None:
        """Forget everything and take over a snapshot ({}: as new)."""


def logic_for(node: Node, inputs: list[StreamType], output: StreamType) -> Logic:
    """The logic of a box, for one partition."""
    line = LOGICS.get(node.kind)
    if line is None:
        raise NetworkError(
            f"a {node.kind} has no logic on Arrow tables",
            box=node.name,
            where=node.where,
            expected=f"one of: {', '.join(sorted(LOGICS))}",
            hint="sources, connection points, views and outputs are run by the engine itself",
        )
    module, name = (line if isinstance(line, str) else line(node)).split(":")
    make = getattr(import_module(module), name)
    logic: Logic = make(node, inputs, output)
    return logic


_BOXES = "penstock.engine.arrow.boxes"


def _windows(node: Windowed) -> str:
    if isinstance(node.size, Count):
        return f"{_BOXES}.count_windows:CountWindows"
    return (
        f"{_BOXES}.windows:time_windows"
        if node.function is None
        else f"{_BOXES}.function_windows:KeptWindows"
    )


def _latch(node: Latch) -> str:
    if node.function is not None:
        return f"{_BOXES}.latch:LatchFunction"
    return f"{_BOXES}.latch_aggregates:{'LatchCounts' if isinstance(node.size, Count) else 'LatchTimes'}"


def _join(node: Join) -> str:
    return f"{_BOXES}.diffused_join:DiffusedJoin" if node.spread else f"{_BOXES}.join:JoinLogic"


# A line for each kind of box: where its logic is, 'module:name', or a function of the box that says so. By
# name, so that a worker loads only the boxes it runs.
LOGICS: dict[str, str | Callable[[Any], str]] = {
    "filter": f"{_BOXES}.stateless:FilterLogic",
    "map": f"{_BOXES}.stateless:MapLogic",
    "drop": f"{_BOXES}.stateless:DropLogic",
    "union": f"{_BOXES}.stateless:Pass",
    "group_by": f"{_BOXES}.stateless:Pass",
    "tumble": _windows,
    "slide": _windows,
    "latch": _latch,
    "column_latch": f"{_BOXES}.column_latch:ColumnLatchLogic",
    "resample": f"{_BOXES}.resample:ResampleLogic",
    "join": _join,
}


def dead_letters(rows: pa.Table, reasons: Sequence[str], box: str) -> pa.Table:
    """Dead letters of these tuples; `raw` is the tuple's visible columns as JSON.

    >>> import pyarrow as pa
    >>> rows = pa.table({"vid": [7], "_ts": [0], "_seq": [3]})
    >>> dead_letters(rows, ["late: ..."], "minutes").to_pylist()
    [{'raw': '{"vid": 7}', 'reason': 'late: ...', 'offset': 3, 'box': 'minutes', 'tuples': 1}]
    """
    if not rows.num_rows:
        return DEAD_SCHEMA.empty_table()
    visible = [name for name in rows.column_names if not name.startswith("_")]
    raw = [_as_json(row) for row in rows.select(visible).to_pylist()] or ["{}"] * rows.num_rows
    columns = [
        pa.array(raw, pa.string()),
        pa.array(reasons, pa.string()),
        rows.column(SEQ),
        pa.array([box] * rows.num_rows),
        pa.array([1] * rows.num_rows, pa.int64()),
    ]
    return pa.Table.from_arrays(columns, schema=DEAD_SCHEMA)


def _as_json(row: dict[str, object]) -> str:
    """A tuple as JSON, which has no NaN and no infinity: they are texts."""
    finite = {name: _NOT_FINITE.get(str(v), v) if isinstance(v, float) else v for name, v in row.items()}
    return json.dumps(finite, default=_as_text)


def late_letters(rows: pa.Table, acted: int, box: str) -> pa.Table:
    """Dead letters of tuples behind a horizon that a box has acted on: an idle input came back."""
    stamps = rows.column(STAMP).to_pylist()
    return dead_letters(
        rows,
        [
            f"late: timestamp {ts} us is behind the horizon {acted} us that the box has acted on"
            for ts in stamps
        ],
        box,
    )


def _as_text(value: object) -> str:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)
