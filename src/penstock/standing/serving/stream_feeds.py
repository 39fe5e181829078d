"""The streams that queries may name, where their tuples are retained, and the query that follows each.

A stream held by a connection point is read from there. A source without one gets a connection point of our
own, which reads the source beside the network.
"""

from __future__ import annotations

import logging
import re
import shutil
import threading
from collections.abc import Iterable

from penstock.engine.spark.trains.query import SubnetworkQuery
from penstock.model.boxes import Source
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import SubNetwork, at_point
from penstock.runtime import Runtime
from penstock.standing.answers.query_engine import Archived, QueryEngine
from penstock.standing.errors import QueryError
from penstock.standing.language.query import StreamInfo
from penstock.standing.serving.point_feed import InputAfterHistory, ProbeTrains, archived, load_history
from penstock.store.durable import checksum
from penstock.store.points.point import PointReader

_LOG = logging.getLogger("penstock")
_PREFIX = "standing-"


class StreamFeeds:
    """The streams of one runtime.

    `keep`: how long sources without a connection point are retained, in microseconds.
    """

    def __init__(self, runtime: Runtime, keep: int) -> None:
        self.runtime, self.keep = runtime, keep
        # Stream -> the connection point that holds it; None: a source that has none yet.
        self._points = retained_at(runtime.network)
        self._feeds: dict[str, str] = {}  # stream -> name of its query
        self._inputs: list[str] = []  # queries that read sources for us
        self._gate = threading.Lock()

    def infos(self) -> list[StreamInfo]:
        """The streams that queries may name."""
        return [self._info(name) for name in self._points]

    def _info(self, name: str) -> StreamInfo:
        network, point = self.runtime.network, self._points[name]
        keep = self.keep if point is None else network.points[point].keep
        return StreamInfo(name, network.types[name].schema, network.types[name].timestamp is not None, keep)

    def add_new(self, engine: QueryEngine) -> None:
        """Add views that were attached since."""
        for name, point in retained_at(self.runtime.network).items():
            if name not in self._points:
                self._points[name] = point
                engine.add_stream(self._info(name))

    def fed(self, stream: str) -> bool:
        """Whether a stream is loaded and followed."""
        return stream in self._feeds

    def need(self, engine: QueryEngine, streams: Iterable[str]) -> None:
        """Make sure that streams are loaded and followed."""
        for stream in streams:
            if stream not in self._feeds:
                with self._gate:
                    if stream not in self._feeds:  # another thread may have been faster
                        self._feeds[stream] = self._follow(engine, stream)

    def _follow(self, engine: QueryEngine, stream: str) -> str:
        runtime, name = self.runtime, _PREFIX + stream
        point = self._points[stream] or self._retain(stream)
        start = load_history(engine, stream, runtime.checkpoint, point)
        # How far the last run of this feed came does not matter: results are computed again from the tuples.
        shutil.rmtree(runtime.checkpoint / "queries" / name, ignore_errors=True)
        sub = at_point(self._with_point(stream, point), point, name, lambda s: s)
        inputs = {point: InputAfterHistory(runtime.checkpoint, point, name, start)}

        def prepare(query: SubnetworkQuery) -> None:
            assert isinstance(query.trains, ProbeTrains)
            query.trains.feeding(engine, stream, point)

        runtime.attach_subnetwork(sub, prepare=prepare, make_trains=ProbeTrains, inputs=inputs)
        rebuild = threading.Thread(
            target=_rebuild, args=(engine, stream), name=f"rebuild-{stream}", daemon=True
        )
        rebuild.start()
        return name

    def _retain(self, source: str) -> str:
        """Start a connection point of our own for a source that has none."""
        node = self.runtime.network.nodes[source]
        assert isinstance(node, Source)
        if node.format.read_once:
            raise QueryError(
                f"source '{source}' is an iterator, which only one can read",
                hint="put a connection point behind it, and name that",
            )
        point = own_point(source)
        sub = SubNetwork(f"{point}-input", self._with_point(source, point), (source,), (point,), ())
        self.runtime.attach_subnetwork(sub)
        self._inputs.append(sub.name)
        return point

    def _with_point(self, stream: str, point: str) -> Network:
        network = self.runtime.network
        if point in network.nodes:
            return network
        alone = Network.of(point, [network.nodes[stream]])
        alone.stream(stream).connection_point(point, keep=f"{self.keep / 1e6} seconds")
        return alone

    def archive(self, stream: str, through: int, begin: int, end: int, most: float) -> Archived:
        """Tuples of a stream that are no longer in memory, from its connection point's files."""
        point = self._points[stream] or own_point(stream)
        return archived(PointReader(self.runtime.checkpoint, point), through, begin, end, most)

    def stop(self) -> None:
        """End the queries that follow streams; the next service may use their names."""
        with self._gate:
            for name in [*self._feeds.values(), *self._inputs]:
                query = self.runtime.queries.get(name)
                self.runtime.forget(name)
                if query is not None:
                    query.stop()
                    query.release()


def _rebuild(engine: QueryEngine, stream: str) -> None:
    try:
        engine.rebuild(stream)
    except Exception:
        _LOG.exception("standing queries: old blocks of %s", stream)


def retained_at(network: Network) -> dict[str, str | None]:
    """Each stream that queries may name, and the connection point or view that holds its tuples."""
    points: dict[str, str | None] = {name: name for name in network.points}
    for source in network.sources:
        direct = [reader for reader in network.readers(source) if reader in network.points]
        points.setdefault(source, direct[0] if direct else None)
    return points


def own_point(source: str) -> str:
    """The name of the connection point that we keep for a source.

    Point names allow fewer characters than source names. Sources must not share a point, also not one after
    the other in one checkpoint: each would be answered with the tuples of both.

    >>> own_point("cars"), own_point("cars.north")
    ('standing_cars', 'standing_cars_north_8619bd20')
    """
    plain = re.sub(r"\W", "_", source)
    return f"standing_{plain}" if plain == source else f"standing_{plain}_{checksum(source.encode()):08x}"
