"""Accounts: balances as a plain sum gives them, through restarts at any train, and no train that rewrites all
of them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.linear_road.errors import RunError
from penstock.linear_road.network.accounts import BUCKETS, Accounts

VEHICLES = [0, 1, 31, 32, 33, 1_000_000, 2**31 - 1, 77, 109]
ROW = st.tuples(st.sampled_from(VEHICLES), st.integers(0, 3000), st.booleans())


def train(second: int, rows) -> pa.Table:
    """Rows (vehicle, toll, asks) of one second."""
    vid, toll, asks = (list(values) for values in zip(*rows, strict=True)) if rows else ([], [], [])
    ints = {
        "Time": [second] * len(rows),
        "VID": vid,
        "Toll": [0 if a else t for t, a in zip(toll, asks, strict=True)],
        "QID": [n if a else -1 for n, a in enumerate(asks)],
    }
    stamps = pa.array([second * 1_000_000] * len(rows), pa.int64()).view(pa.timestamp("us", "UTC"))
    return pa.table({"Second": stamps, **{name: pa.array(v, pa.int32()) for name, v in ints.items()}})


class Kept:
    """What the engine keeps of an object: parts put and let go."""

    def __init__(self) -> None:
        self.parts: dict[str, pa.Table] = {}
        self.written: list[int] = []

    def take(self, accounts: Accounts) -> None:
        made = 0
        for name, part in accounts.changes().items():
            if part is None:
                del self.parts[name]
            else:
                self.parts[name] = part
                made += part.nbytes
        self.written.append(made)


@given(st.lists(st.tuples(st.lists(ROW, max_size=6), st.booleans()), max_size=80))
def test_a_balance_is_the_sum_of_the_charges_until_its_second(trains):
    accounts, kept, owed = Accounts(), Kept(), dict.fromkeys(VEHICLES, 0)
    for second, (rows, restarted) in enumerate(trains):
        if restarted:
            accounts = Accounts()
            accounts.restore(dict(kept.parts))
        out = accounts.process([train(second, rows)], (second + 1) * 1_000_000, False)
        for vid, toll, asks in rows:
            owed[vid] += 0 if asks else toll
        assert out["Bal"].to_pylist() == [owed[vid] for vid, _, asks in rows if asks]
        assert accounts.figures() == {"charged": sum(toll for _, toll, asks in rows if not asks)}
        kept.take(accounts)


def test_no_train_writes_many_accounts_and_old_runs_go():
    rng, accounts, kept = np.random.default_rng(1), Accounts(), Kept()
    for second in range(6 * BUCKETS):
        rows = [(int(vid), 10, False) for vid in rng.choice(100_000, 300, replace=False)]
        accounts.process([train(second, rows)], (second + 1) * 1_000_000, False)
        kept.take(accounts)
    known = sum(part.num_rows for name, part in kept.parts.items() if name.startswith("bucket/"))
    assert known > 35_000
    most = 12 * (known / BUCKETS + 300)  # a bucket and the train's own run, 12 bytes each
    assert max(kept.written) < 1.5 * most
    assert sum(name.startswith("run/") for name in kept.parts) < BUCKETS


def test_accounts_of_an_earlier_version_are_refused():
    with pytest.raises(RunError, match="earlier version"):
        Accounts().restore({"sizes": pa.table({"run": [0], "rows": [1]})})
