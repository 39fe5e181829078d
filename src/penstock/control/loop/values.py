"""Semantic shedding in a running network (A90, A91): what trains tell about values, and what goes now."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from penstock.control.loop.valves import Places
from penstock.control.semantic.bins import Bins, Cut
from penstock.control.semantic.by_value import ByValue
from penstock.control.semantic.choice import chosen_bins
from penstock.control.semantic.pool import Pool
from penstock.engine.contract.train_done import TrainDone
from penstock.engine.contract.valve import Valve, ValveFlow
from penstock.model.json_types import JsonMapping, JsonObject
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import SubNetwork
from penstock.rewrite.value_ways import ValueWay, value_ways

_EVERY = 10.0  # seconds between two looks at all that is known of an output
_LEAST_CHANGE = 0.02  # of the share that is kept: below it the cut stays as it is
_MOST_ERROR = 0.05  # between the share that a cut was to keep and what its valve has counted
_COUNTED = 1_000  # tuples from which on a valve's count says something
_REMEMBERED = 256  # cuts, by their valve: trains of a moment ago still have theirs


@dataclass(frozen=True)
class _Held:
    """A cut, and the share for which it was made."""

    keep: float
    cut: Cut


class ValueBook:
    """What is known of the values of outputs; the loop and the threads of trains use it."""

    def __init__(self, plain: JsonMapping | None = None) -> None:
        self._lock = threading.Lock()
        self._pools = {name: Pool.of(each) for name, each in (plain or {}).items()}
        self._bins: dict[str, Bins] = {}
        self._held: dict[str, _Held] = {}
        self._cuts: dict[Valve, Cut] = {}
        self._order: deque[Valve] = deque()
        self._looked = float("-inf")

    # -- what trains tell

    def note(self, sub: SubNetwork, done: TrainDone) -> None:
        """A train has ended: take its samples."""
        if not done.values:
            return
        valves = {valve.at: valve for valve in done.ticket.valves if valve.grain == "values"}
        with self._lock:
            for way in value_ways(sub):
                valve = valves.get(way.at)
                cut = None if valve is None else self._cuts.get(valve)
                if valve is not None and cut is None:
                    continue  # of an earlier run: nobody knows what it had in mind
                flow = done.commit.valves.get(way.at, ValveFlow())
                key = _key(way)
                pool = self._pools.get(key, Pool())
                self._pools[key] = pool.after_train(way, done.values, cut, (flow.offered, flow.shed))

    # -- what can be done

    def look(
        self, subs: Iterable[SubNetwork], places: Places, now: float, *, busy: bool
    ) -> dict[str, ByValue]:
        """The outputs that can be shed by value. `busy`: it may matter soon; else nothing is computed."""
        if busy and now - self._looked >= _EVERY:
            self._looked = now
            with self._lock:
                pools = dict(self._pools)
            tried = [(way, _bins(sub, way, places, pools)) for sub in subs for way in value_ways(sub)]
            self._bins = {way.output: bins for way, bins in reversed(tried) if bins is not None}
        return {name: ByValue(bins.curve(), "->" not in bins.at) for name, bins in sorted(self._bins.items())}

    def cut(self, output: str, keep: float) -> Cut | None:
        """What goes so that this share of the tuples at its place is kept; None if values cannot tell."""
        held, bins = self._held.get(output), self._bins.get(output)
        if held is not None and abs(held.keep - keep) < _LEAST_CHANGE and not self._misses(held):
            return held.cut
        cut = None if bins is None else bins.cut(keep)
        if cut is None:
            self._held.pop(output, None)
            return None
        self._held[output] = _Held(keep, cut)
        self._remember(cut)
        return cut

    def cuts(self, places: Places, outputs: Container[str], shares: Mapping[str, float]) -> dict[str, Cut]:
        """What goes by value of these outputs if all keep these shares."""
        cuts: dict[str, Cut] = {}
        for sub in places.subs:
            for way in value_ways(sub):
                share = shares.get(way.output, 1.0)
                if way.output in outputs and share < 1 and places.by_value(sub, way):
                    above = places.kept_above(sub, way.at, shares)
                    cut = self.cut(way.output, min(1.0, share / max(above, 1e-6)))
                    cuts |= {} if cut is None or cut.at != way.at else {way.output: cut}
        return cuts

    def _misses(self, held: _Held) -> bool:
        """Whether a cut keeps another share than it was to keep."""
        with self._lock:
            pools = [pool for pool in self._pools.values() if pool.cut == held.cut]
        return any(
            pool.offered > _COUNTED and abs(1 - pool.shed / pool.offered - held.cut.share) > _MOST_ERROR
            for pool in pools
        )

    def _remember(self, cut: Cut) -> None:
        valve = cut.valve()
        with self._lock:
            if valve not in self._cuts:
                self._order.append(valve)
            self._cuts[valve] = cut
            while len(self._order) > _REMEMBERED:
                self._cuts.pop(self._order.popleft(), None)

    def plain(self) -> JsonObject:
        """For the catalog."""
        with self._lock:
            return {name: pool.plain() for name, pool in self._pools.items()}


def _key(way: ValueWay) -> str:
    return f"{way.output} at {way.at}"


def _bins(sub: SubNetwork, way: ValueWay, places: Places, pools: Mapping[str, Pool]) -> Bins | None:
    pool = pools.get(_key(way))
    if pool is None or not places.by_value(sub, way) or _says_otherwise(sub.network, way):
        return None
    return chosen_bins(sub.network, way, pool)


def _says_otherwise(network: Network, way: ValueWay) -> bool:
    """Whether a box on the way says what is to be dropped in front of it."""
    return any(network.nodes[name].shed_by not in ("", "tuples") for name in way.boxes)
