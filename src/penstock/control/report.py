"""How a network under control stands: what `running.qos()` returns and `penstock qos show` prints.

The names of the fields are the keys of the JSON form, and others build on them. Times are seconds, rates are
tuples a second, shares lie between 0 and 1. None always means unknown, or that nothing was due.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from penstock.model.json_types import JsonMapping, JsonObject

REPORT, MEMORY, ROAD_MAP, VALUES = "report", "memory", "road map", "values"
"""Under these names the catalog keeps the last report, what a restart has to know, and the road map."""
BEGINNING = "1970-01-01T00:00:00Z"
"""`exact_since` of an output that never lost a tuple."""


@dataclass(frozen=True)
class OutputReport:
    """An output or view with a QoS.

    `utility`: in the last second in which something was due; `utility_minute`: the mean of the last minute,
    whose delays `delay_p50` and `delay_p99` tell; if it got nothing, the age of what waits. `share`: what
    valves keep of what is due. `in_zone`: all delays within the threshold. `exact_since`: the event time from
    which on answers are exact; None while tuples are shed. `errors`: of approximate answers, the relative
    standard error by column (`control/estimates.py`); empty if they are exact.
    """

    name: str
    weight: float = 1.0
    utility: float | None = None
    utility_minute: float | None = None
    delay_p50: float | None = None
    delay_p99: float | None = None
    share: float = 1.0
    in_zone: bool | None = None
    exact_since: str | None = BEGINNING
    errors: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class SourceReport:
    """A source: tuples since the start, what waits, and the age of the oldest that waits."""

    name: str
    offered: int = 0
    let_in: int = 0
    shed: int = 0
    offered_rate: float | None = None
    shed_rate: float = 0.0
    waiting: int | None = None
    age: float | None = None


@dataclass(frozen=True)
class ValveReport:
    """A valve that is not fully open: at a source, or at an arrow `tail->head`."""

    at: str
    share: float
    grain: str


@dataclass(frozen=True)
class SubnetworkReport:
    """A row of the scheduler's table (A67): the priority of the next train, what waits, whether one runs."""

    name: str
    priority: float = 0.0
    waiting: int | None = None
    running: bool = False


@dataclass(frozen=True)
class QosReport:
    """All of it. `load` and `capacity`: CPU-seconds a second; None before anything was measured."""

    outputs: tuple[OutputReport, ...] = ()
    sources: tuple[SourceReport, ...] = ()
    valves: tuple[ValveReport, ...] = ()
    subnetworks: tuple[SubnetworkReport, ...] = ()
    load: float | None = None
    capacity: float | None = None

    def plain(self) -> JsonObject:
        """The JSON form.

        >>> QosReport(valves=(ValveReport("cars", 0.5, "tuples"),)).plain()["valves"]
        [{'at': 'cars', 'share': 0.5, 'grain': 'tuples'}]
        """
        return {each.name: _plain(getattr(self, each.name)) for each in fields(self)}

    @classmethod
    def of(cls, plain: JsonMapping) -> QosReport:
        """From the JSON form.

        >>> report = QosReport((OutputReport("alarms", share=0.5),), load=1.5, capacity=2.0)
        >>> QosReport.of(report.plain()) == report
        True
        """
        return cls(
            tuple(OutputReport(**each) for each in plain["outputs"]),
            tuple(SourceReport(**each) for each in plain["sources"]),
            tuple(ValveReport(**each) for each in plain["valves"]),
            tuple(SubnetworkReport(**each) for each in plain["subnetworks"]),
            plain["load"],
            plain["capacity"],
        )


def _plain(value: Any) -> Any:
    return [asdict(each) for each in value] if isinstance(value, tuple) else value
