"""Once a second: what waits at each input, and how old it is for each output. The catalog keeps both.

Inputs are looked at by the conductors; this thread only collects. It never disturbs the run: if the catalog
cannot take the figures, they are lost, and the log says so once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Mapping

from penstock.engine.spark.trains.query import SubnetworkQuery
from penstock.runtime.running_queries import RunningQueries
from penstock.store.catalog.record_types import InputLoad

_LOG = logging.getLogger("penstock")
_EVERY = 1.0


class Measuring:
    """Collects the load of all queries of a runtime, once a second."""

    def __init__(self, running: RunningQueries) -> None:
        self._running, self._stop = running, threading.Event()
        self._thread = threading.Thread(target=self._measure, name="measuring", daemon=True)
        self._failed = False

    def start(self) -> Measuring:
        """Begin."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End, after one more look."""
        self._stop.set()
        self._thread.join(10)

    def _measure(self) -> None:
        ended = False
        while not ended:
            ended = self._stop.wait(_EVERY)
            try:
                self.look(time.time())
            except Exception as error:
                if not self._failed:
                    _LOG.warning("load cannot be recorded: %s", error)
                self._failed = True

    def look(self, now: float) -> None:
        """Collect the figures of the second that ends now."""
        queries = [query for query in list(self._running.queries.values()) if not query.steering.held]
        records = self._running.running_records()
        loads = [load for query in queries for load in loads_of(query, now)]
        ages = ages_of(queries, now)
        records.second_over(int(now), loads, {name: ages[q.sub.name] for q in queries for name in _ends(q)})


def loads_of(query: SubnetworkQuery, now: float) -> list[InputLoad]:
    """What waits at each input of a query."""
    return [
        InputLoad(
            name,
            query.sub.name,
            now,
            known.taken_tuples,
            known.offered_rate,
            known.waiting_tuples,
            known.waiting_bytes,
            known.oldest_age,
        )
        for name, known in query.situation().inputs.items()
    ]


def ages_of(queries: Iterable[SubnetworkQuery], now: float) -> dict[str, float | None]:
    """The age of the oldest tuple that waits for each sub-network: at an input, in a train, or further up."""
    own = {query.sub.name: _own_age(query, now) for query in queries}
    subs = {query.sub.name: query.sub for query in queries}
    writers = {point: name for name, sub in subs.items() for point in sub.points}
    readers = {name: {writers[i] for i in sub.inputs if i in writers} for name, sub in subs.items()}
    return {name: _oldest(name, own, readers, set()) for name in own}


def _oldest(
    name: str, own: Mapping[str, float | None], above: Mapping[str, set[str]], seen: set[str]
) -> float | None:
    seen.add(name)
    ages = [own[name], *(_oldest(up, own, above, seen) for up in above[name] - seen)]
    return max((age for age in ages if age is not None), default=None)


def _own_age(query: SubnetworkQuery, now: float) -> float | None:
    waiting = [known.oldest_age for known in query.situation().inputs.values()]
    running = [] if query.running_since is None else [max(0.0, now - query.running_since)]
    return max((age for age in (*waiting, *running) if age is not None), default=None)


def _ends(query: SubnetworkQuery) -> tuple[str, ...]:
    return (*query.sub.outputs, *query.rated_points)
