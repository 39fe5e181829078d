"""Valves (A84, A88): where and how much is shed. The ticket carries them, so a replayed train sheds the same.

A valve stands at an input of a sub-network (`at` is the name of the source, or of the connection point that
it reads), or on an arrow behind a split (`at` is "tail->head"). The network itself stays as written. At share
1 there is no valve.

All valves below one source have its lot, those of windows and of keys have one for all sources. A hash of the
lot and of the number of the grain decides: a grain stays if the hash is below the share. So a branch that
keeps less keeps a part of what the source keeps, and a drop at the source serves all branches at once.

| grain | its number | each answer delivered is one of the exact ones |
|---|---|---|
| slices | that of the file, or of the delivery's group | if no box with memory but joins comes behind |
| blocks | 1,024 lines of a file | the same; saves decoding, too |
| tuples | `_seq` | the same |
| windows | k, the window that begins at k * every | always, in front of Tumble and Slide over time |
| keys | the hash of the columns `keys` | if later boxes group by these |
| values | none: the predicate tells what stays; of some others a part, by `_seq` | as for tuples |

With grain `keys` and no columns, the groups stay or go in which the source delivers (`Slice.key_group`), see
`group_stays`.

A shed tuple is shed whatever it holds: it is neither late nor dead. It still moves the horizon.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace

from penstock.model.errors import PenstockError
from penstock.model.json_types import JsonMapping, JsonObject
from penstock.rewrite.subnetworks import SubNetwork

GRAINS = ("slices", "blocks", "tuples", "windows", "keys", "values")
BLOCK_BITS = 10
"""A block has 2**10 lines."""
PARTS = 1_000_000
"""Hashes are compared as so many parts of 1."""
_GOLDEN = 2_654_435_769  # 2**32 by the golden ratio
_MOST_STEPS = 64
_EVER = 2**62
ARROW = "->"


def lot_of(source: str) -> int:
    """The lot of a source: what the hashes of all valves below it start from.

    >>> lot_of("cars") != lot_of("bikes")
    True
    """
    digest = hashlib.blake2b(f"valve {source}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1  # a BIGINT that is not negative


def valve_places(sub: SubNetwork) -> list[str]:
    """Where valves of a sub-network may stand: at its inputs, and on arrows from a split to a box."""
    net = sub.network
    arrows = [a for a in net.arrows if len(net.readers(a.tail)) > 1 and net.nodes[a.head].is_box]
    return [*sub.inputs, *dict.fromkeys(f"{arrow.tail}{ARROW}{arrow.head}" for arrow in arrows)]


@dataclass(frozen=True)
class Step:
    """A share that held for the windows that end after `since` and begin at or before `until`, in us."""

    share: float
    since: int
    until: int = _EVER


@dataclass(frozen=True)
class Valve:
    """What stays of the tuples on one arrow. `share`: the part of the grains that stays, 0..1.

    `keys`: the columns of grain keys. `size` and `every`: of the windows, in microseconds. `predicate`: what
    stays with grain values (Spark SQL over the columns of the arrow); `share` then only tells how much that
    is. `partly` and `part`: of the tuples that the predicate refuses and for which `partly` is true, this
    part stays, by the hash of `_seq`: so any share can be kept, however many tuples have the same value.
    `worth`: what a shed tuple is worth by the value graph, the mean of all tuples being 1. `slice_bits`: a
    slice's number is `_seq` without so many bits. `steps`: the shares of open windows, filled in by the
    conductor. So a window once chosen stays chosen.
    """

    at: str
    share: float = 1.0
    grain: str = "tuples"
    lot: int = 0
    keys: tuple[str, ...] = ()
    size: int = 0
    every: int = 0
    predicate: str = ""
    partly: str = ""
    part: float = 0.0
    worth: float = 1.0
    slice_bits: int = 40
    steps: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        if self.grain not in GRAINS:
            raise self._wrong(f"grain '{self.grain}'", f"one of: {', '.join(GRAINS)}")
        if not 0 <= self.share <= 1:
            raise self._wrong(f"share {self.share}", "0 to 1")
        if self.grain == "windows" and not 0 < self.every <= self.size:
            raise self._wrong(f"size {self.size}, every {self.every}", "windows: 0 < every <= size")
        if self.grain == "values" and not self.predicate:
            raise self._wrong("no predicate", "values: what stays, as Spark SQL")
        if not 0 <= self.part <= 1:
            raise self._wrong(f"part {self.part}", "0 to 1")

    def _wrong(self, found: str, expected: str) -> PenstockError:
        return PenstockError(f"the valve at '{self.at}' cannot be", found=found, expected=expected)

    @property
    def bar(self) -> int:
        """A grain stays if its hash, modulo a million, is below this.

        >>> Valve("cars", 0.25).bar
        250000
        """
        return round(self.share * PARTS)

    @property
    def part_bar(self) -> int:
        """A tuple that is shed only partly stays if its hash, modulo a million, is below this."""
        return round(self.part * PARTS)

    @property
    def bits(self) -> int | None:
        """The grain's number is `_seq` without so many bits; None if it does not depend on `_seq`.

        >>> [Valve("cars", 0.5, grain).bits for grain in ("tuples", "blocks", "slices", "keys")]
        [0, 10, 40, None]
        """
        return {"tuples": 0, "blocks": BLOCK_BITS, "slices": self.slice_bits}.get(self.grain)

    @property
    def early(self) -> bool:
        """Whether it drops at a source before anything is decoded: slices, blocks, groups of a feed.

        >>> [Valve("cars", 0.5, grain).early for grain in ("slices", "blocks", "tuples", "keys")]
        [True, True, False, True]
        >>> Valve("cars", 0.5, "keys", keys=("seg",)).early
        False
        """
        return self.grain in ("slices", "blocks") or (self.grain == "keys" and not self.keys)

    @property
    def open(self) -> bool:
        """Whether nothing is shed here, now or in windows chosen earlier."""
        return self.share >= 1 and not self.predicate and all(step.share >= 1 for step in self.steps)

    @property
    def arrow(self) -> tuple[str, str] | None:
        """(tail, head) of the arrow; None for a valve at an input.

        >>> Valve("cars->slow").arrow
        ('cars', 'slow')
        """
        tail, arrow, head = self.at.partition(ARROW)
        return (tail, head) if arrow else None

    def plain(self) -> JsonObject:
        """As JSON."""
        return asdict(self)

    @classmethod
    def of(cls, plain: JsonMapping) -> Valve:
        """From JSON."""
        read = {"keys": tuple(plain["keys"]), "steps": tuple(Step(**step) for step in plain["steps"])}
        return cls(**{**plain, **read})


def group_stays(share: float, group: int) -> bool:
    """Whether a group of a feed stays. It depends on nothing else, so a group is in or out, train by train.

    Groups are few and numbered from 0, so a random hash would keep far more or fewer of them than asked for.
    Multiples of the golden ratio spread evenly: of any numbers in a row, and of every second, third ... one,
    nearly this share stays, so that partitions lose nearly alike.

    >>> [sum(group_stays(share, group) for group in range(48)) for share in (0.25, 0.5, 0.6, 1)]
    [14, 25, 30, 48]
    >>> [sum(group_stays(0.5, group) for group in range(first, 48, 2)) for first in (0, 1)]
    [14, 11]
    """
    return (group * _GOLDEN % 2**32) * PARTS >> 32 < round(share * PARTS)


@dataclass(frozen=True)
class ValveFlow:
    """What came to a valve in a train, and what it shed of that: tuples."""

    offered: int = 0
    shed: int = 0

    def __add__(self, other: ValveFlow) -> ValveFlow:
        """Both together."""
        return ValveFlow(self.offered + other.offered, self.shed + other.shed)


@dataclass(frozen=True)
class LeftOut:
    """What the conductor left out of a source, unread: so many tuples, of which the newest has this time.

    `groups`: of a feed, those that a valve left out as a whole; `oldest`: of their times, the earliest.
    """

    tuples: int = 0
    newest: int | None = None
    oldest: int | None = None
    groups: tuple[int, ...] = ()

    def __add__(self, other: LeftOut) -> LeftOut:
        """Both together."""
        newest = [at for at in (self.newest, other.newest) if at is not None]
        oldest = [at for at in (self.oldest, other.oldest) if at is not None]
        groups = tuple(sorted({*self.groups, *other.groups}))
        return LeftOut(
            self.tuples + other.tuples, max(newest, default=None), min(oldest, default=None), groups
        )

    @classmethod
    def of(cls, plain: JsonMapping) -> LeftOut:
        """From JSON."""
        return cls(**{**plain, "groups": tuple(plain.get("groups", ()))})


@dataclass(frozen=True)
class Progress:
    """How far trains are when a ticket is written, in microseconds.

    `closed`: windows that end at or before it were closed by earlier trains. `complete`: those have all their
    tuples, and the coming train closes them, so it cannot choose them any more. `newest`: the largest time
    that any train has seen; None: no train saw any.
    """

    closed: int
    complete: int
    newest: int | None


def next_valves(
    wanted: Iterable[Valve], before: Sequence[Valve], progress: Callable[[Valve], Progress]
) -> tuple[Valve, ...]:
    """The valves of the next ticket: those wanted now, and what open windows still remember.

    `before`: those of the last ticket. `progress`: of the windows among which a valve chooses.
    """
    known = {_identity(valve): valve for valve in before if valve.grain == "windows"}
    opened = {name: replace(valve, share=1.0) for name, valve in known.items()}
    asked = {**opened, **{_identity(valve): valve for valve in wanted}}
    valves = [_stepped(valve, known.get(name), progress) for name, valve in asked.items()]
    return tuple(valve for valve in valves if not valve.open)


def _identity(valve: Valve) -> tuple[object, ...]:
    """Valves with the same choice of windows."""
    return (valve.at, valve.grain, valve.lot, valve.size, valve.every)


def _stepped(valve: Valve, known: Valve | None, progress_of: Callable[[Valve], Progress]) -> Valve:
    if valve.grain != "windows":
        return replace(valve, steps=())
    progress = progress_of(valve)
    past, newest = () if known is None else known.steps, progress.newest
    if past and past[-1].share == valve.share:
        return replace(valve, steps=_unclosed(past, valve, progress.closed))
    # A window that had begun by then was chosen by the old share, a later one was not.
    ended = [] if newest is None else [replace(step, until=min(step.until, newest)) for step in past]
    steps = [*ended, Step(valve.share, progress.complete)]
    return replace(valve, steps=_unclosed(steps, valve, progress.closed))


def _unclosed(steps: Sequence[Step], valve: Valve, closed: int) -> tuple[Step, ...]:
    """Without the steps all of whose windows are closed; the oldest two become one if there are many."""
    # The last window that begins at or before `until` ends here.
    kept = [step for step in steps if step.until // valve.every * valve.every + valve.size > closed]
    while len(kept) > _MOST_STEPS:
        one, two, *rest = kept
        kept = [Step(min(one.share, two.share), min(one.since, two.since), max(one.until, two.until)), *rest]
    return tuple(kept)
