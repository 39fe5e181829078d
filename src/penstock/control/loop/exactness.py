"""From when on the answers of an output are exact (A92): null while its tuples are shed.

When the last valve of an output opens, all later tuples get in. Boxes with memory still remember what was
missing before: answers are exact after the newest time at that moment plus the memory of the boxes on the
way. A tuple of just that time may have been shed. Of a block of lines only the last one is looked at; one
before it may be newer, by the lateness that its source allows. Tuples without a timestamp have the time at
which their train left.

What a connection point has lost, its readers miss, though their own valves are open. They are exact from when
the point is, plus the memory of their own boxes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from penstock.control.report import BEGINNING
from penstock.control.valve_places import memory_behind
from penstock.engine.contract.train_done import TrainDone
from penstock.model.boxes import Source
from penstock.rewrite.subnetworks import SubNetwork, reaching

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"


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
        '1970-01-01T00:01:10.000001Z'
        """
        known = [at for at in (self.newest, newest) if at is not None]
        if shed:  # a train without tuples knows no time, and takes none back
            return Exactness(None, max(known, default=None))
        if self.since is None and known and memory is not None:
            return Exactness(_iso(known[0] + memory + 1), known[0])
        return self

    def after(
        self, done: TrainDone, sub: SubNetwork, output: str, memory: int | None, *, shut: bool
    ) -> Exactness:
        """After this train. `shut`: one of its valves stands above the output.

        It may have dropped nothing in this train, and yet the next windows are not whole.
        """
        shed = shut or done.kept.get(output, 1.0) < 1
        return self.after_train(shed=shed, newest=seen_by(done, sub, output), memory=memory)

    def behind(self, point: Exactness, memory: int | None) -> Exactness:
        """The same for one that reads a point, through boxes that remember so long.

        >>> Exactness().behind(Exactness("1970-01-01T00:01:00Z"), 10_000_000).since
        '1970-01-01T00:01:10Z'
        >>> Exactness().behind(Exactness(None), 0).since is None
        True
        """
        if point.since == BEGINNING:
            return self
        if self.since is None or point.since is None or memory is None:
            return Exactness(None, self.newest)
        return Exactness(_iso(max(_us(self.since), _us(point.since) + memory)), self.newest)


Above = Mapping[str, Mapping[str, int | None]]
"""By output or point, the points on its way in its sub-network, and how long boxes behind each remember."""


def points_read(subs: Iterable[SubNetwork]) -> Above:
    """The points that lead to each output and point of these sub-networks."""
    return {
        end: {
            point: memory_behind(sub.network, point, end)
            for point in sub.inputs
            if point not in sub.network.sources and point in reaching(sub.network, [end])
        }
        for sub in subs
        for end in (*sub.outputs, *sub.points)
    }


def with_points(name: str, known: Mapping[str, Exactness], above: Above) -> Exactness:
    """What is known of an output or point, with what was lost above the points that lead to it."""
    exactness = known.get(name, Exactness())
    for point, memory in above.get(name, {}).items():
        exactness = exactness.behind(with_points(point, known, above), memory)
    return exactness


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
    unseen = _unseen(done, sub, above)
    return max((at + unseen for name, at in done.commit.newest.items() if name in above), default=None)


def _unseen(done: TrainDone, sub: SubNetwork, above: Iterable[str]) -> int:
    """How much newer than all that was seen a tuple may be which was shed above an output, in us."""
    blocks = {valve.at for valve in done.ticket.valves if valve.grain == "blocks"}
    nodes = [sub.network.nodes[name] for name in above if name in blocks]
    return max((node.lateness for node in nodes if isinstance(node, Source)), default=0)


def _iso(us: int) -> str:
    # A time that stands for "never", such as the end of the year 9999, plus a memory has no ISO form.
    at = _EPOCH + timedelta(microseconds=min(max(us, _us(_FIRST)), _us(_LAST)))
    return at.isoformat().replace("+00:00", "Z")


def _us(iso: str) -> int:
    return (datetime.fromisoformat(iso) - _EPOCH) // timedelta(microseconds=1)
