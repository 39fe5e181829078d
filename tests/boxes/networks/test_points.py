from penstock.model.writing.network import Network
from penstock.testing import collect, rows_source, values


def test_points_views_and_outputs_show_what_passed(engine):
    net = Network("points")
    cars = net.source("cars", rows_source("time TIMESTAMP, v INT"), timestamp="time")
    fast = cars.filter("v > 1").connection_point("fast", keep="1 hour")
    fast.view("seen")
    fast.filter("v > 2").output("faster", to=collect())
    result = engine(net, {"cars": [(0, 1), (1, 2)]}, {"cars": [(2, 3)]})
    assert {name: values(rows) for name, rows in result.points.items()} == {
        "fast": [(1, 2), (2, 3)],
        "seen": [(1, 2), (2, 3)],
    }
    assert values(result.outputs["faster"]) == [(2, 3)]


def test_windows_behind_a_point(engine):
    net = Network("points")
    cars = net.source("cars", rows_source("time TIMESTAMP, v INT"), timestamp="time")
    point = cars.tumble("10 seconds", n="count(*)").connection_point("tens")
    point.tumble("1 minute", n="sum(n)").output("out", to=collect())
    result = engine(net, {"cars": [(1, 1), (15, 1)]}, {"cars": [(70, 1)]})
    assert values(result.points["tens"]) == [(1, 1), (15, 1), (70, 1)]
    assert values(result.outputs["out"]) == [(1, 2), (70, 1)]
