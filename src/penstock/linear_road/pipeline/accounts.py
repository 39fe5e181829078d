"""Accounts: what each vehicle has been charged (shared page, "Assessment and balance").

Idea: a balance is a sum, so the state is a few sorted runs of (vehicle, amount), as in a log-structured merge tree: a train adds a
small run, and runs of like size are merged. Nothing is ever looked up in a table as large as all vehicles, and a
worker that takes over a partition maps the runs and goes on. A request is answered as of its own second: trains
hold whole seconds, so all charges up to it are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.linear_road.pipeline.tables import Array, column

ENTRY = "Second TIMESTAMP, Time INT, VID INT, Toll INT, QID INT"
"""What comes in: a charge of `Toll` with QID -1, or the request QID."""

PRODUCES = "Second TIMESTAMP, Time INT, ResultTime INT, QID INT, Bal BIGINT"
CHARGED = "charged"
_UTC = pa.timestamp("us", tz="UTC")
Run = tuple[Array, Array]


class Accounts:
    """The accounts of one partition of the vehicles."""

    def __init__(self) -> None:
        self._runs: dict[int, Run] = {}  # number -> sorted vehicles, amounts; later runs are smaller
        self._sizes: dict[int, int] = {}
        self._next = 0
        self._parts: Mapping[str, Any] = {}
        self._changed: dict[str, Any] = {}
        self._charged = 0

    def figures(self) -> dict[str, int]:
        """The sum of what was charged since this was last asked."""
        charged, self._charged = self._charged, 0
        return {CHARGED: charged}

    def changes(self) -> dict[str, Any]:
        """The runs that were made and merged."""
        changed, self._changed = self._changed, {}
        return changed

    def restore(self, parts: Mapping[str, Any]) -> None:
        """A run is mapped when somebody asks for a balance."""
        self._parts = parts
        if "sizes" in parts:
            numbers, sizes = column(parts["sizes"], "run").tolist(), column(parts["sizes"], "rows").tolist()
            self._sizes = dict(zip(numbers, sizes, strict=True))
            self._next = max(numbers, default=-1) + 1

    def _run(self, number: int) -> Run:
        if number not in self._runs:
            part = self._parts[f"run/{number}"]
            self._runs[number] = column(part, "vid"), column(part, "amount")
        return self._runs[number]

    def process(self, inputs: list[Any], until: int, final: bool) -> pa.Table:  # noqa: ARG002
        """Charges and requests in, balances out."""
        names = ("Second", "Time", "VID", "Toll", "QID")
        second, time, vid, toll, qid = (column(inputs[0], name) for name in names)
        asked, charged = qid >= 0, qid < 0
        fresh = _Fresh(vid[charged], time[charged], toll[charged])
        balance = fresh.up_to(vid[asked], time[asked])
        if asked.any():
            for number in self._sizes:
                balance += amounts(*self._run(number), vid[asked])
        if charged.any():
            self._add(fresh.run())
            self._charged += int(fresh.sums[-1])
        return pa.table({
            "Second": pa.array(second[asked]).view(_UTC), "Time": time[asked], "ResultTime": time[asked],
            "QID": qid[asked], "Bal": balance,
        })  # fmt: skip

    def _add(self, run: Run) -> None:
        """A new run; the ones before it that are not twice as large are merged with it."""
        while self._sizes:
            last = max(self._sizes)
            if self._sizes[last] > 2 * len(run[0]):
                break
            run = merged(self._run(last), run)
            del self._sizes[last], self._runs[last]
            if self._changed.pop(f"run/{last}", None) is None:
                self._changed[f"run/{last}"] = None
        number, self._next = self._next, self._next + 1
        self._runs[number], self._sizes[number] = run, len(run[0])
        self._changed[f"run/{number}"] = pa.table({"vid": run[0], "amount": run[1]})
        sizes = {"run": list(self._sizes), "rows": list(self._sizes.values())}
        self._changed["sizes"] = pa.table({n: pa.array(v, pa.int64()) for n, v in sizes.items()})


class _Fresh:
    """The charges of a train, in order of vehicle and time."""

    def __init__(self, vid: Array, time: Array, toll: Array) -> None:
        self.key = (vid.astype(np.int64) << 32) | time
        order = np.argsort(self.key, kind="stable")
        self.key = self.key[order]
        self.sums = np.concatenate([[0], np.cumsum(toll[order].astype(np.int64))])

    def up_to(self, vid: Array, time: Array) -> Array:
        """What each vehicle was charged in this train until its time, that second included."""
        key = vid.astype(np.int64) << 32
        last, first = np.searchsorted(self.key, key | time, "right"), np.searchsorted(self.key, key)
        found: Array = self.sums[last] - self.sums[first]
        return found

    def run(self) -> Run:
        vid = self.key >> 32
        first = np.flatnonzero(np.diff(vid, prepend=-1))
        return vid[first].astype(np.int32), np.diff(self.sums[np.append(first, len(vid))])


def amounts(known: Array, amount: Array, vid: Array) -> Array:
    """The amount of each vehicle in a run, 0 where it has none.

    >>> amounts(np.array([3, 7]), np.array([50, 60]), np.array([7, 8, 3])).tolist()
    [60, 0, 50]
    """
    at = np.minimum(np.searchsorted(known, vid), len(known) - 1)
    return np.where(known[at] == vid, amount[at], 0)


def merged(one: Run, other: Run) -> Run:
    """Two runs as one, amounts of the same vehicle added.

    >>> vid, amount = merged((np.array([3, 7]), np.array([50, 60])), (np.array([7, 9]), np.array([1, 2])))
    >>> vid.tolist(), amount.tolist()
    ([3, 7, 9], [50, 61, 2])
    """
    vid = np.concatenate([one[0], other[0]])
    order = np.argsort(vid, kind="stable")
    vid, amount = vid[order], np.concatenate([one[1], other[1]])[order]
    first = np.flatnonzero(np.diff(vid, prepend=-1))
    return vid[first], np.add.reduceat(amount, first)
