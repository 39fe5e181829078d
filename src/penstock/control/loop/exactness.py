"""From when on the answers of an output are exact (A92): null while its tuples are shed.

When the last valve of an output opens, all later tuples get in. Boxes with memory still remember what was
missing before: answers are exact from the newest time at that moment plus the memory of the boxes on the way.
Tuples without a timestamp have the time at which their train left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.control.report import BEGINNING
from penstock.engine.contract.train_done import TrainDone
from penstock.rewrite.subnetworks import SubNetwork, reaching


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
        known = [at for at in (self.newest, newest) if at is not None]
        if shed:  # a train without tuples knows no time, and takes none back
            return Exactness(None, max(known, default=None))
        if self.since is None and known and memory is not None:
            return Exactness(_iso(known[0] + memory), known[0])
        return self


def newest_of(newest: Mapping[str, int], sub: SubNetwork) -> int | None:
    """The largest time that the inputs of a sub-network have seen."""
    known = [at for name, at in newest.items() if name in sub.inputs]
    return max(known, default=None)


def seen_by(done: TrainDone, sub: SubNetwork, output: str) -> int | None:
    """The largest time, in us, that a train has seen of what leads to an output; None if it has seen none.

    Behind sources without timestamps, that is when the train left.
    """
    above = [name for name in sub.inputs if name in reaching(sub.network, [output])]
    if all(sub.network.types[name].timestamp is None for name in above):
        return round(done.ticket.arrival * 1e6)
    return max((at for name, at in done.commit.newest.items() if name in above), default=None)


def _iso(us: int) -> str:
    return datetime.fromtimestamp(us / 1e6, UTC).isoformat().replace("+00:00", "Z")
