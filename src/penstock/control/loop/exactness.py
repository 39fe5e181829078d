"""From when on the answers of an output are exact (A92): null while its tuples are shed.

When the last valve of an output opens, all later tuples get in. Boxes with memory still remember what was
missing before: answers are exact from the newest time at that moment plus the memory of the boxes on the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from penstock.control.report import BEGINNING
from penstock.rewrite.subnetworks import SubNetwork


@dataclass(frozen=True)
class Exactness:
    """What is known of one output. `newest`: the largest time, in us, when a train last shed for it."""

    since: str | None = BEGINNING
    newest: int | None = None

    def after_train(self, *, shed: bool, newest: int | None, memory: int | None) -> Exactness:
        """After a train of its sub-network.

        >>> Exactness().after_train(shed=True, newest=60_000_000, memory=10_000_000)
        Exactness(since=None, newest=60000000)
        >>> _.after_train(shed=False, newest=90_000_000, memory=10_000_000).since
        '1970-01-01T00:01:10Z'
        """
        if shed:
            return Exactness(None, newest)
        if self.since is None and self.newest is not None and memory is not None:
            return replace(self, since=_iso(self.newest + memory))
        return self


def newest_of(newest: Mapping[str, int], sub: SubNetwork) -> int | None:
    """The largest time that the inputs of a sub-network have seen."""
    known = [at for name, at in newest.items() if name in sub.inputs]
    return max(known, default=None)


def _iso(us: int) -> str:
    return datetime.fromtimestamp(us / 1e6, UTC).isoformat().replace("+00:00", "Z")
