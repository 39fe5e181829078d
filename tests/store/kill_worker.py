"""A producer that commits, compacts and retains as fast as it can, until it is killed.

Started by test_kill.
"""

from __future__ import annotations

import sys

from penstock.store.points.compaction import Sizes, compact
from penstock.store.points.point import PointWriter
from penstock.store.points.retention import retain
from store.points import SCHEMA, put


def main(root: str) -> None:
    writer = PointWriter(root, "p", SCHEMA, key="seg")
    # As a restarted query does: the last train is run again, since its commit may not have been noted
    # elsewhere.
    number = max(0, writer.latest())
    while True:
        put(
            writer,
            number,
            [(k, "x", number * 10 + k, number * 10 + k) for k in range(10)],
            horizon=number * 10,
            arrival=0.0,
        )
        print(number, flush=True)
        if number % 5 == 0:
            compact(root, "p", Sizes(min_entries=3, span=50))
            retain(root, "p", 100, grace=1.0)
        number += 1


if __name__ == "__main__":
    main(sys.argv[1])
