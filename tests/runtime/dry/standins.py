"""A runtime without Spark: its queries only stand for what would run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import penstock as ps
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.steering import Steering
from penstock.rewrite.subnetworks import SubNetwork, split

SCHEMA = "time TIMESTAMP, k INT, v INT"


class StandIn:
    """As much of a query as a runtime looks at; it notes what is done to it."""

    def __init__(self, sub: SubNetwork, steering: Steering | None = None, **known: Any) -> None:
        self.sub, self.steering = sub, steering or Steering(AsSoonAsPossible())
        self.finished = threading.Event()
        self.failure: BaseException | None = None
        self.inputs: dict[str, Any] = {}
        self.last = self.looks = 0
        self.done: list[str] = []
        for name, value in known.items():
            setattr(self, name, value)

    def drained(self) -> bool:
        return True

    def check(self) -> None:
        if self.failure is not None:
            raise self.failure

    def stop(self, timeout: float = 60.0) -> bool:
        del timeout
        self.done.append("stopped")
        return True

    def drain(self, timeout: float) -> bool:
        del timeout
        self.done.append("drained")
        return True

    def release(self) -> None:
        self.done.append("released")

    def wait_ready(self) -> None:
        self.done.append("ready")


class NoRecords:
    """Takes what a runtime records and forgets it."""

    def __getattr__(self, _name: str) -> Callable[..., None]:
        return lambda *_args, **_more: None


def chain() -> ps.Network:
    """cars -> p -> out: two sub-networks."""
    net = ps.Network("n")
    cars = net.source("cars", ps.csv("in", SCHEMA, wait=True), timestamp="time")
    cars.filter("v > 0").connection_point("p").filter("k > 0").output("out", to=ps.memory())
    return net


def subs_of(net: ps.Network) -> dict[str, SubNetwork]:
    return {sub.name: sub for sub in split(net)}
