"""Accounts: what each vehicle has been charged (docs/linear-road-semantics.md, "Assessment and balance").

Idea: a balance is a sum, so the state consists of sorted runs of (vehicle, amount). Each train adds a run of
its charges. The sums of earlier charges lie in 32 buckets of vehicles, and each train merges the runs into
one bucket, the next in turn. So no train writes more than a thirty-second of all accounts. A log-structured
merge tree would now and then write all of them in one train, and everybody would wait.

Runs are mapped on demand, so a worker that takes over a partition continues at once. A request is answered as
of its own second: trains hold whole seconds, so all charges up to it are known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.linear_road.errors import RunError
from penstock.linear_road.network.tables import column
from penstock.linear_road.rows.arrays import Int64s, Ints

PRODUCES = "Second TIMESTAMP, Time INT, ResultTime INT, QID INT, Bal BIGINT"
CHARGED = "charged"
_UTC = pa.timestamp("us", tz="UTC")
_BITS = 5
BUCKETS = 1 << _BITS
Codes = npt.NDArray[np.uint32]
"""Vehicles, numbered by `codes`."""

SortedRun = tuple[Codes, Int64s]
"""Vehicles in ascending order, and the amount of each."""
_NOTHING: SortedRun = (np.zeros(0, np.uint32), np.zeros(0, np.int64))


def codes(vid: Ints) -> Codes:
    """Number vehicles so that a bucket is a range: the low bits, which name the bucket, move to the front.

    >>> codes(np.array([0, 1, 32, 33])).tolist()
    [0, 134217728, 1, 134217729]
    """
    plain = vid.astype(np.uint32)
    return (plain << np.uint32(32 - _BITS)) | (plain >> np.uint32(_BITS))


def bucket_of(code: Codes) -> Codes:
    """The bucket of each code."""
    return code >> np.uint32(32 - _BITS)


class Accounts:
    """The accounts of one partition of the vehicles."""

    def __init__(self) -> None:
        self._sums: dict[int, SortedRun] = {}  # bucket -> charges of its vehicles, up to the run `_merged`
        self._runs: dict[int, SortedRun] = {}  # number of a train -> its charges, until all buckets have them
        self._merged = np.full(BUCKETS, -1, np.int64)  # bucket -> the last run that it has
        self._parts: Mapping[str, pa.Table] = {}
        self._changed: dict[str, pa.Table | None] = {}
        self._charged = 0

    def figures(self) -> dict[str, int]:
        """The sum of charges since the last call."""
        charged, self._charged = self._charged, 0
        return {CHARGED: charged}

    def changes(self) -> dict[str, pa.Table | None]:
        """The runs that were made and merged."""
        changed, self._changed = self._changed, {}
        return changed

    def restore(self, parts: Mapping[str, pa.Table]) -> None:
        """Restore runs; each is mapped when a balance is asked for or the run is to be merged."""
        if "sizes" in parts:
            raise RunError("accounts of an earlier version of Penstock", hint="start with a new checkpoint")
        self._parts = parts
        if "merged" in parts:
            self._merged = column(parts["merged"], "run").astype(np.int64)

    @property
    def _next(self) -> int:
        """The number of the next run: each run brings the bucket whose turn it is up to date."""
        return int(self._merged.max()) + 1

    @property
    def _unmerged(self) -> range:
        """The runs that some bucket does not have yet."""
        return range(int(self._merged.min()) + 1, self._next)

    def _run(self, number: int) -> SortedRun:
        if number not in self._runs:
            self._runs[number] = self._read(f"run/{number}")
        return self._runs[number]

    def _bucket(self, number: int) -> SortedRun:
        if number not in self._sums:
            self._sums[number] = self._read(f"bucket/{number}") if self._merged[number] >= 0 else _NOTHING
        return self._sums[number]

    def _read(self, name: str) -> SortedRun:
        part = self._parts[name]
        return column(part, "vehicle").view(np.uint32), column(part, "amount").view(np.int64)

    def process(self, inputs: list[pa.Table], until: int, final: bool) -> pa.Table:  # noqa: ARG002 - protocol
        """Charges (their QID is -1) and requests in, balances out."""
        names = ("Second", "Time", "VID", "Toll", "QID")
        second, time, vid, toll, qid = (column(inputs[0], name) for name in names)
        asked, charged = qid >= 0, qid < 0  # a charge carries no query id
        vehicle = codes(vid)
        fresh = _Fresh(vehicle[charged], time[charged], toll[charged])
        # A request sees this train's charges up to its own second, and all of earlier trains.
        balance = fresh.up_to(vehicle[asked], time[asked]) + self._known(vehicle[asked])
        if charged.any():
            self._add(fresh.run())
            self._charged += int(fresh.sums[-1])
        return pa.table(
            {
                "Second": pa.array(second[asked]).view(_UTC),
                "Time": time[asked],
                "ResultTime": time[asked],
                "QID": qid[asked],
                "Bal": balance,
            }
        )

    def _known(self, vehicle: Codes) -> Int64s:
        """What each vehicle was charged in earlier trains."""
        balances, bucket = np.zeros(len(vehicle), np.int64), bucket_of(vehicle)
        for number in np.unique(bucket).tolist():
            there = bucket == number
            balances[there] = amounts(*self._bucket(number), vehicle[there])
        # Runs that a bucket has merged already are in its sums: count only the later ones.
        for number in self._unmerged if len(vehicle) else ():
            balances += np.where(self._merged[bucket] < number, amounts(*self._run(number), vehicle), 0)
        return balances

    def _add(self, run: SortedRun) -> None:
        """Add a run, and merge all runs so far into the bucket whose turn it is."""
        number, oldest = self._next, self._unmerged.start
        self._runs[number] = run
        self._changed[f"run/{number}"] = _part(run)
        # Runs are numbered without gaps, so each bucket has its turn within 32 runs, and a run lives no
        # longer than that.
        bucket = number % BUCKETS
        late = (self._run(n) for n in range(self._merged[bucket] + 1, number + 1))
        self._sums[bucket] = merged([self._bucket(bucket), *(_within(run, bucket) for run in late)])
        self._merged[bucket] = number
        self._changed[f"bucket/{bucket}"] = _part(self._sums[bucket])
        # A copy: Arrow would share the array, which later trains change.
        self._changed["merged"] = pa.table({"run": self._merged.copy()})
        # Drop the runs that every bucket has by now.
        for gone in range(oldest, self._unmerged.start):
            self._runs.pop(gone, None)
            self._changed[f"run/{gone}"] = None


def _part(run: SortedRun) -> pa.Table:
    return pa.table({"vehicle": run[0], "amount": run[1]})


def _within(run: SortedRun, bucket: int) -> SortedRun:
    """A bucket's share of a run."""
    # The end of the last bucket does not fit 32 bits, so its end is the end of the run.
    ends = np.array([bucket, (bucket + 1) % BUCKETS], np.uint32) << np.uint32(32 - _BITS)
    begin, end = np.searchsorted(run[0], ends).tolist()
    part = slice(begin, end if bucket < BUCKETS - 1 else None)
    return run[0][part], run[1][part]


class _Fresh:
    """The charges of a train, in order of vehicle and time."""

    def __init__(self, vehicle: Codes, time: Ints, toll: Ints) -> None:
        self.key = (vehicle.astype(np.uint64) << np.uint64(32)) | time.astype(np.uint64)
        # Sorted by vehicle and second, both questions are a difference of two running sums: what a vehicle
        # was charged up to a second, and in the whole train.
        order = np.argsort(self.key, kind="stable")
        self.key = self.key[order]
        self.sums = np.concatenate([[0], np.cumsum(toll[order].astype(np.int64))])

    def up_to(self, vehicle: Codes, time: Ints) -> Int64s:
        """What each vehicle was charged in this train up to and including its second."""
        key = vehicle.astype(np.uint64) << np.uint64(32)
        last = np.searchsorted(self.key, key | time.astype(np.uint64), "right")
        first = np.searchsorted(self.key, key)
        balances: Int64s = self.sums[last] - self.sums[first]
        return balances

    def run(self) -> SortedRun:
        vehicle = (self.key >> np.uint64(32)).astype(np.uint32)
        first = _firsts(vehicle)
        return vehicle[first], np.diff(self.sums[np.append(first, len(vehicle))])


def _firsts(vehicle: Codes) -> Int64s:
    """Where each vehicle comes first in a sorted list."""
    new = np.ones(len(vehicle), bool)
    new[1:] = vehicle[1:] != vehicle[:-1]
    return np.flatnonzero(new)


def amounts(known: Codes, amount: Int64s, vehicle: Codes) -> Int64s:
    """The amount of each vehicle in a run, 0 where it has none.

    >>> amounts(np.array([3, 7]), np.array([50, 60]), np.array([7, 8, 3])).tolist()
    [60, 0, 50]
    """
    if not len(known):
        return np.zeros(len(vehicle), np.int64)
    at = np.minimum(np.searchsorted(known, vehicle), len(known) - 1)
    return np.where(known[at] == vehicle, amount[at], 0)


def merged(runs: Sequence[SortedRun]) -> SortedRun:
    """Merge runs into one, adding amounts of the same vehicle.

    >>> first, second = (np.array([3, 7]), np.array([50, 60])), (np.array([7, 9]), np.array([1, 2]))
    >>> vehicle, amount = merged([first, second])
    >>> vehicle.tolist(), amount.tolist()
    ([3, 7, 9], [50, 61, 2])
    """
    vehicle, amount = (np.concatenate(columns) for columns in zip(*runs, strict=True))
    order = np.argsort(vehicle, kind="stable")  # fast where whole stretches are already in order
    vehicle, amount = vehicle[order], amount[order]
    first = _firsts(vehicle)
    return vehicle[first], np.add.reduceat(amount, first) if len(first) else amount
