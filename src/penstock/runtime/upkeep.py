"""The background task that keeps connection points in shape: compaction and retention now and then, leases alive."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Self

from penstock.engine.spark.points import PointInput
from penstock.store.retention import maintain

if TYPE_CHECKING:
    from penstock.runtime.runtime import Runtime

_LOG = logging.getLogger("penstock")


class Upkeep:
    """One thread for a runtime."""

    def __init__(self, runtime: Runtime, *, every: float = 10.0) -> None:
        self._runtime, self._every = runtime, every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="upkeep", daemon=True)

    def start(self) -> Self:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(60)

    def _loop(self) -> None:
        while not self._stop.wait(self._every):
            try:
                self.once()
            except Exception:
                # the next round tries again; trains must not stop for it
                _LOG.exception("upkeep of connection points")

    def once(self) -> None:
        """One round: leases first, so that nothing of a slow reader is deleted."""
        for query in list(self._runtime.queries.values()):
            for source in query.inputs.values():
                if isinstance(source, PointInput):
                    source.renew()
        for query in list(self._runtime.queries.values()):
            for name in query.sub.points:
                maintain(self._runtime.checkpoint, name, query.sub.network.nodes[name].keep)  # type: ignore[attr-defined]
