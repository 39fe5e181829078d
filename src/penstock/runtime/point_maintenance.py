"""The background task of connection points: regular compaction and retention, and lease renewal."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, Self

from penstock.engine.spark.entry.points import PointInput
from penstock.engine.spark.trains.query import SubnetworkQuery
from penstock.model.errors import one_line
from penstock.store.errors import LeaseLostError
from penstock.store.points.retention import maintain

_LOG = logging.getLogger("penstock")


class PointUsers(Protocol):
    """What maintenance needs of a runtime: who reads and writes points, and where they are stored."""

    @property
    def checkpoint(self) -> Path: ...

    @property
    def queries(self) -> Mapping[str, SubnetworkQuery]: ...


class PointMaintenance:
    """One thread for a runtime, and a last round when the run ends.

    Thanks to the last round, a short run retains no more than a long one.
    """

    def __init__(self, runtime: PointUsers, *, every: float = 10.0) -> None:
        self._runtime, self._every = runtime, every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="point-maintenance", daemon=True)

    def start(self) -> Self:
        self._thread.start()
        return self

    def stop(self, *, last_round: bool = True) -> None:
        """End the thread and run one last round.

        Call it after the trains have stopped, so that the round sees them all.
        """
        self._stop.set()
        self._thread.join(60)
        if last_round:
            self.once(ended=True)

    def _loop(self) -> None:
        while not self._stop.wait(self._every):
            self.once()

    def once(self, *, ended: bool = False) -> None:
        """One round. Leases come first, so that nothing a slow reader needs is deleted.

        A failure is retried in the next round. It stops neither the trains nor the rest of this round. When
        the trains have `ended`, readers hold only what they have not read.
        """
        unsure = {name for name, query, source in self._readers() if not self._renewed(query, source, ended)}
        for query in list(self._runtime.queries.values()):
            for name in query.sub.points:
                self._keep_alive(unsure)
                if name not in unsure:
                    self._maintain(query, name, unsure)

    def _readers(self) -> list[tuple[str, SubnetworkQuery, PointInput]]:
        return [
            (name, query, source)
            for query in list(self._runtime.queries.values())
            for name, source in query.inputs.items()
            if isinstance(source, PointInput)
        ]

    def _keep_alive(self, unsure: set[str]) -> None:
        """Renew leases again: a round may last longer. What cannot be renewed was told before."""
        for name, _, source in self._readers():
            try:
                source.renew()
            except LeaseLostError:
                continue
            except Exception:
                unsure.add(name)

    def _renewed(self, query: SubnetworkQuery, source: PointInput, ended: bool) -> bool:
        """Renew the reader's lease. False: it may succeed later, so keep what the reader needs."""
        try:
            source.renew(ended=ended)
        except LeaseLostError as lost:
            # It no longer holds anything. Its own next train will fail and say so.
            _LOG.warning("point maintenance: sub-network '%s': %s", query.sub.name, lost)
        except Exception as error:
            _tell(f"point maintenance: lease of sub-network '{query.sub.name}'", error)
            return False
        return True

    def _maintain(self, query: SubnetworkQuery, name: str, unsure: set[str]) -> None:
        keep = query.sub.network.points[name].keep
        try:
            maintain(self._runtime.checkpoint, name, keep, between=lambda: self._keep_alive(unsure))
        except Exception as error:
            _tell(f"maintenance of connection point '{name}'", error)


def _tell(what: str, error: Exception) -> None:
    """The run goes on without this round, so one line is enough; a verbose run shows the trace too."""
    _LOG.warning("%s: %s: %s", what, type(error).__name__, one_line(error))
    _LOG.info("%s", what, exc_info=error)
