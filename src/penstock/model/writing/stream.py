"""Stream: the fluent way to write a network. Each method adds one box and returns the stream that leaves it.

The methods are grouped by topic: `stateless`, `windows`, `combining`, and here the ends of a path (Aurora,
Sect. 2.2).
"""

from __future__ import annotations

from penstock.model.boxes import ConnectionPoint, Output, View
from penstock.model.formats.description import SinkFormat
from penstock.model.writing.box_builder import Duration, QoSLike
from penstock.model.writing.combining import CombiningBoxes
from penstock.model.writing.windows import WindowBoxes


class Stream(WindowBoxes, CombiningBoxes):
    """The tuples that leave a node.

    >>> import penstock as ps
    >>> net = ps.Network("traffic")
    >>> cars = net.source("cars", ps.csv("in/", "time TIMESTAMP, vid INT, spd INT"), timestamp="time")
    >>> cars.filter("spd < 40").group_by("vid").tumble("1 minute", speed="avg(spd)")
    Stream(tumble_1: vid INT, time TIMESTAMP, speed DOUBLE)
    """

    def connection_point(
        self, name: str, *, keep: Duration = "2 hours", key: str | None = None, shed: bool = False
    ) -> Stream:
        """Boxes may be added here while the network runs; the point keeps its tuples for a time (A25, A26).

        `key`: the storage key, which finds history without reading all of it (A70). `shed`: under overload,
        tuples may be missing from its history.
        """
        builder = self._builder(ConnectionPoint, "connection_point", name)
        return builder.add([self], keep=builder.duration("keep", keep), key=key, shed=shed)

    def view(
        self, name: str, *, keep: Duration = "2 hours", qos: QoSLike = None, shed: bool = False
    ) -> Stream:
        """A path with no application yet, kept like a connection point; `qos` tells its importance (A28)."""
        builder = self._builder(View, "view", name)
        return builder.add([self], keep=builder.duration("keep", keep), qos=builder.qos(qos), shed=shed)

    def output(self, name: str, *, to: SinkFormat, qos: QoSLike = None) -> Stream:
        """The end of a path: tuples leave to an application under the QoS of the path (A05, A24)."""
        builder = self._builder(Output, "output", name)
        return builder.add([self], to=to, qos=builder.qos(qos))
