"""Which files of a point a query opens: ranges of the storage key, from a filter or from the other side of a
join.
"""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.engine.spark.entry.points import pushed_ranges
from penstock.store.points.ranges import Interval

THREE = (Interval(3, 3),)


def point(net, name, key="k INT"):
    cars = net.source(f"in {name}", ps.csv("in/", f"time TIMESTAMP, {key}, v INT"), timestamp="time")
    return cars.connection_point(name, key=key.split()[0])


@pytest.mark.parametrize(
    ("build", "ranges"),
    [
        (lambda a, b: a.filter("k = 3").join(b, on="k", within=1), (THREE, THREE)),
        (lambda a, b: b.join(a.filter("k = 3"), on="k", within=1), (THREE, THREE)),
        (lambda a, b: a.filter("v = 3").join(b, on="k", within=1), (None, None)),
        (lambda a, b: a.filter("k = 3").join(b, on=[("k", "v")], within=1), (THREE, None)),
        (lambda a, b: a.filter("k = 3").join(b, within=1), (THREE, None)),
        (lambda a, b: a.join(b, on="k", within=1), (None, None)),
        (lambda a, b: a.filter("k = 3").join(b, on="k", within=1, distribution="diffused"), (THREE, None)),
    ],
)
def test_ranges(build, ranges):
    net = ps.Network("n")
    build(point(net, "a"), point(net, "b")).output("out", to=ps.memory())
    assert (pushed_ranges(net, "a", "k"), pushed_ranges(net, "b", "k")) == ranges


def test_a_second_reader_wants_all():
    net = ps.Network("n")
    a, b = point(net, "a"), point(net, "b")
    a.filter("k = 3").join(b, on="k", within=1).output("out", to=ps.memory())
    b.output("all", to=ps.memory())
    assert pushed_ranges(net, "b", "k") is None


def test_keys_of_another_type_are_not_looked_up():
    net = ps.Network("n")
    a, b = point(net, "a"), point(net, "b", "k BIGINT")
    a.filter("k = 3").join(b, on="k", within=1).output("out", to=ps.memory())
    assert pushed_ranges(net, "b", "k") is None
