"""The list of all cases, and the stream that most of them start from."""

from __future__ import annotations

from collections.abc import Callable

import penstock as ps

CASES: dict[str, Callable[[], object]] = {}
CARS = "time TIMESTAMP, vid INT, spd INT, seg INT, plate STRING"


def case(function):
    assert function.__name__ not in CASES, "two cases of one name would share a golden text"
    CASES[function.__name__] = function
    return function


def cars(net=None, name="cars", schema=CARS, timestamp="time"):
    return (net or ps.Network("traffic")).source(name, ps.csv("in/", schema), timestamp=timestamp)
