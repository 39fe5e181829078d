"""The picture: all that was measured at one look, frozen. A recorded picture gives the same plan again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.model.costs import MeasuredCosts
from penstock.store.catalog.record_types import InputLoad


@dataclass(frozen=True)
class SubnetworkPicture:
    """One sub-network: what comes to its inputs and waits there, whether it is held, whether a train runs.

    `departed`: seconds since its last train left; None if none has.
    """

    name: str
    inputs: tuple[InputLoad, ...] = ()
    held: bool = False
    running: bool = False
    trains: int = 0  # with tuples, since control began
    departed: float | None = None

    @property
    def rates(self) -> dict[str, float]:
        """Tuples a second that are offered, by input; 0 where it is not known."""
        return {load.input: load.offered_rate or 0.0 for load in self.inputs}

    @property
    def age(self) -> float:
        """Of the oldest tuple that waits.

        >>> load = InputLoad("cars", "main", 0.0, age=1.5)
        >>> SubnetworkPicture("main", (load,)).age, SubnetworkPicture("main").age
        (1.5, 0.0)
        """
        return max((load.age for load in self.inputs if load.age is not None), default=0.0)

    @property
    def left(self) -> float:
        """How long the oldest waiting tuple had waited when the last train left without it.

        >>> load = InputLoad("cars", "main", 0.0, age=1.5)
        >>> SubnetworkPicture("main", (load,), departed=1.0).left
        0.5
        >>> SubnetworkPicture("main", (load,), departed=2.0).left
        0.0
        """
        return 0.0 if self.departed is None else max(0.0, self.age - self.departed)


@dataclass(frozen=True)
class Picture:
    """All measures at one moment.

    `now`: seconds since control began. `capacity`: CPU-seconds a second that trains can use. `used`: CPU of
    the trains that ended since the last look, by sub-network, with the tuples that entered: None if it was
    not measured. `zones`: whether each output was good in the last second; None if nothing was due. `worked`:
    CPU-seconds that trains have spent on tuples so far, as the cost lines say, without what is fixed.
    `spent`: the same as measured, by sub-network. `floors`: seconds that trains of each take at least,
    however few their tuples are.
    """

    now: float
    subnetworks: tuple[SubnetworkPicture, ...]
    costs: MeasuredCosts = field(default=MeasuredCosts())
    capacity: float | None = None
    measured: float | None = None
    predicted: float | None = None
    zones: Mapping[str, bool | None] = field(default_factory=dict)
    worked: float = 0.0
    spent: Mapping[str, float] = field(default_factory=dict)
    floors: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Coming:
    """What comes from outside for outputs with a QoS: tuples a second; what waits; the age of the oldest."""

    rate: float = 0.0
    waiting: int = 0
    age: float = 0.0
