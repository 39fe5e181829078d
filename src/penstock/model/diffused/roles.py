"""Roles and epochs of a diffused join: pure steps from one train's recorded state to the next (S12).

What steers a train is recorded before it runs, so `Roles` is plain data: it goes into the train's ticket.
After the train, each server reports what it received and did; `step` makes the next `Roles` of both. A new
epoch begins when the scheme changes: from hash to diffused, or from one master to the other. It is a
*transition* (`both` streams go to all servers) until no tuple of an earlier epoch can meet one that still
comes; how far those reach is known from the newest timestamps seen before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TypeVar

from penstock.model.boxes import Join
from penstock.model.diffused.placement import least_loaded, round_robin

T = TypeVar("T")
NEVER = -(2**63) + 1
# What receiving a tuple costs, in comparisons of a pair: the order of magnitude on our engine, some
# microseconds a tuple and some 25 ns a comparison. (The paper's servers: a fifth of one comparison.)
TUPLE_COST = 100.0
MARGIN = 1.1  # a switch costs a transition, so the other stream must be faster by this
HASH, LEFT, RIGHT = "hash", "left", "right"


@dataclass(frozen=True)
class Roles:
    """How one train of a join is spread, and what is remembered for the next decision."""

    servers: int
    scheme: str  # 'hash', or the side that is master
    wheel: tuple[int, ...]
    epoch: int = 0
    both: bool = False  # both streams go to all servers
    reach: tuple[int, int] = (NEVER, NEVER)  # newest timestamp of each side before this epoch
    newest: tuple[int, int] = (NEVER, NEVER)
    counts: tuple[int, int] = (0, 0)  # tuples of each side in this sampling period
    since: int | None = None  # stream time at which the period began
    loads: tuple[float, ...] = ()  # of each server in this period
    recent: tuple[float, ...] = ()  # of each server, older trains counting less
    rates: tuple[float, float] | None = None  # tuples a second of stream time in the last full period
    share: float | None = None  # of the hottest server then

    def master(self, side: int) -> bool:
        """Whether tuples of this side (0 left, 1 right) have one place of their own."""
        return self.scheme == HASH or self.scheme == (LEFT, RIGHT)[side]

    def everywhere(self, side: int) -> bool:
        """Whether tuples of this side go to all servers."""
        return self.both or not self.master(side)

    def plain(self) -> dict[str, object]:
        """For the ticket."""
        return asdict(self)

    @classmethod
    def of(cls, plain: Mapping[str, object]) -> Roles:
        """From a ticket."""
        return _from_plain(cls, plain)


@dataclass(frozen=True)
class Report:
    """What one server did in one train, as (left, right); `owned` counts each tuple at one server only."""

    server: int
    owned: tuple[int, int] = (0, 0)
    received: tuple[int, int] = (0, 0)
    newest: tuple[int, int] = (NEVER, NEVER)
    oldest: int | None = None
    operations: int = 0
    held: tuple[int, int] = (0, 0)
    size: int = 0  # bytes held
    dropped: int = 0
    replaced: int = 0
    seconds: float = 0.0

    @property
    def load(self) -> float:
        return self.operations + TUPLE_COST * sum(self.received)

    def plain(self) -> dict[str, object]:
        """For the commit record."""
        return asdict(self)

    @classmethod
    def of(cls, plain: Mapping[str, object]) -> Report:
        """From a commit record."""
        return _from_plain(cls, plain)


def first_roles(node: Join, partitions: int) -> Roles:
    """Before anything is measured: hash if the join may and can, else the named master, else left."""
    servers = node.servers or partitions
    hashed = node.distribution != "diffused" and bool(node.on)
    named = node.diffusion.master if node.diffusion.master in (LEFT, RIGHT) else LEFT
    none = (0.0,) * servers
    return Roles(servers, HASH if hashed else named, round_robin(servers), loads=none, recent=none)


def fits(roles: Roles, node: Join, servers: int) -> bool:
    """Whether the join can go on from these roles; not if they are those of another join of its name."""
    return roles.servers == servers and (roles.scheme != HASH or bool(node.on))


def step(
    node: Join, roles: Roles, reports: Iterable[Report], horizons: tuple[int, int], forced: str | None = None
) -> Roles:
    """The roles of the next train.

    `horizons`: of both inputs; no tuple of that train is older. `forced`: the scheme that somebody asks for.
    """
    if forced == HASH and not node.on:
        forced = None  # asked of another join of its name: here is nothing to hash
    after = _measured(roles, list(reports))
    full = _period_is_full(node, after)
    if full:
        after = _sampled(after)
    chooses = full or node.distribution == HASH  # which needs no figures
    wanted = forced or (_wanted(node, after) if chooses else after.scheme)
    if full:
        after = replace(after, counts=(0, 0), since=None, loads=(0.0,) * after.servers)
    if wanted != after.scheme:
        after = replace(after, scheme=wanted, epoch=after.epoch + 1, reach=after.newest)
    return replace(after, both=_in_reach(node, after, horizons), wheel=_wheel(node, after))


def _measured(roles: Roles, reports: list[Report]) -> Roles:
    """Add what a train's servers report."""
    if not reports:
        return roles
    loads, recent = list(roles.loads), [load / 2 for load in roles.recent]
    for report in reports:
        loads[report.server] += report.load
        recent[report.server] += report.load
    oldest = min((r.oldest for r in reports if r.oldest is not None), default=None)
    return replace(
        roles,
        counts=_pair(roles.counts[s] + sum(r.owned[s] for r in reports) for s in (0, 1)),
        newest=_pair(max(roles.newest[s], *(r.newest[s] for r in reports)) for s in (0, 1)),
        since=oldest if roles.since is None else roles.since,
        loads=tuple(loads),
        recent=tuple(recent),
    )


def _period_is_full(node: Join, roles: Roles) -> bool:
    return roles.since is not None and max(roles.newest) - roles.since >= node.diffusion.sample


def _sampled(roles: Roles) -> Roles:
    """Rates and the hottest server's share over the period that is full now."""
    assert roles.since is not None
    seconds = (max(roles.newest) - roles.since) / 1e6
    total = sum(roles.loads)
    return replace(
        roles,
        rates=_pair(_rate(roles, side, seconds) for side in (0, 1)),
        share=max(roles.loads) / total if total else None,
    )


def _rate(roles: Roles, side: int, seconds: float) -> float:
    # A train takes as many tuples of each stream, so the faster one may be behind in time: it counts by how
    # far it is itself. One with far fewer tuples has none waiting. It has fallen silent, however fast they
    # came.
    assert roles.since is not None
    own = (roles.newest[side] - roles.since) / 1e6
    waits = 2 * roles.counts[side] >= roles.counts[1 - side]
    return roles.counts[side] / (own if own > 0 and waits else seconds)


def _wanted(node: Join, roles: Roles) -> str:
    """The scheme that the join would choose, whatever somebody asked for before."""
    if node.distribution == HASH:
        return HASH
    if node.distribution == "auto" and roles.scheme == HASH and not _hot(node, roles):
        return HASH
    return _master(node, roles)


def _hot(node: Join, roles: Roles) -> bool:
    """Whether one of several servers has too much of the load."""
    return roles.servers > 1 and roles.share is not None and roles.share > node.diffusion.hot(roles.servers)


def _master(node: Join, roles: Roles) -> str:
    """The side that the master rule wants; a small difference changes nothing."""
    if node.diffusion.master in (LEFT, RIGHT):
        return node.diffusion.master
    assert roles.rates is not None
    left, right = roles.rates
    faster = LEFT if left > right * MARGIN else RIGHT if right > left * MARGIN else None
    if faster is None:
        return roles.scheme if roles.scheme != HASH else LEFT
    return faster if node.diffusion.master == "higher" else RIGHT if faster == LEFT else LEFT


def _in_reach(node: Join, roles: Roles, horizons: tuple[int, int]) -> bool:
    """Whether a tuple that comes now or later may meet one of an earlier epoch."""
    after, before = node.within
    left, right = roles.reach
    meets_left = left != NEVER and horizons[1] <= left + after
    meets_right = right != NEVER and horizons[0] <= right + before
    return meets_left or meets_right


def _wheel(node: Join, roles: Roles) -> tuple[int, ...]:
    if node.diffusion.placement == "round_robin" or roles.scheme == HASH:
        return round_robin(roles.servers)
    # `recent` halves with each train, so half of its sum is about what one train brings
    return least_loaded([load / 2 for load in roles.recent], sum(roles.recent) / 2)


def _from_plain(kind: Callable[..., T], plain: Mapping[str, object]) -> T:
    # JSON knows no tuples.
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()})


def _pair(values: Iterable[T]) -> tuple[T, T]:
    left, right = values
    return left, right
