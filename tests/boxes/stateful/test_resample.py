from penstock.testing import values


def _every(s, **options):
    return s.resample("1 second", columns="v", **options)


def test_interpolates_on_the_grid(run):
    result = run(_every, [(0.5, "a", 0), (3, "a", 10)])
    assert values(result.outputs["out"]) == [
        (0.5, "a", 0.0, False),
        (1, "a", 2.0, True),
        (2, "a", 6.0, True),
        (3, "a", 10.0, False),
    ]


def test_by_key(run):
    rows = [(0, "a", 0), (0, "b", 10), (2, "a", 2), (2, "b", 20)]
    result = run(lambda s: _every(s.group_by("k")), rows)
    assert values([row for row in result.outputs["out"] if row["synthetic"]]) == [
        (1, "a", 1.0, True),
        (1, "b", 15.0, True),
    ]


def test_a_longer_gap_stays(run):
    rows = [(0, "a", 0), (2, "a", 2), (4.5, "a", 4)]
    result = run(lambda s: _every(s, limit="2 seconds"), rows)
    assert values([row for row in result.outputs["out"] if row["synthetic"]], "time") == [(1,)]


def test_nulls_are_not_interpolated(run):
    result = run(_every, [(0, "a", None), (2, "a", 2)])
    assert values(result.outputs["out"], "time", "v") == [(0, None), (1, None), (2, 2.0)]


def test_other_columns_repeat_the_earlier_tuple(run):
    result = run(_every, [(0, "a", 0), (2, "b", 2)])
    assert values(result.outputs["out"], "time", "k") == [(0, "a"), (1, "a"), (2, "b")]


def test_ties_give_nothing_in_between(run):
    result = run(_every, [(1, "a", 0), (1, "a", 8), (2.5, "a", 14)])
    assert values(result.outputs["out"], "time", "v") == [(1, 0.0), (1, 8.0), (2, 12.0), (2.5, 14.0)]


def test_over_trains_and_disorder(run):
    rows = [(0, "a", 0), (4, "a", 4), (2, "a", 20), (6, "a", 6)]
    expected = [(0, 0.0), (1, 10.0), (2, 20.0), (3, 12.0), (4, 4.0), (5, 5.0), (6, 6.0)]
    for trains in ([rows], [[row] for row in rows]):
        assert values(run(_every, *trains, lateness="2 seconds").outputs["out"], "time", "v") == expected


def test_actual_tuples_pass_at_once(run):
    result = run(_every, [(0, "a", 0), (2, "a", 2)], final=False)
    assert values(result.outputs["out"], "time") == [(0,), (1,), (2,)]


def test_synthetic_tuples_are_stamped(run):
    result = run(lambda s: _every(s).tumble("1 second", n="count(*)"), [(0, "a", 0), (3, "a", 3)])
    assert values(result.outputs["out"]) == [(0, 1), (1, 1), (2, 1), (3, 1)]


def test_the_last_tuple_outlives_final():
    from penstock.engine.local import LocalEngine
    from penstock.model.writing.network import Network
    from penstock.testing import collect, rows_source

    net = Network("again")
    _every(net.source("cars", rows_source("time TIMESTAMP, v INT"), timestamp="time")).output(
        "out", to=collect()
    )
    local = LocalEngine(net)
    local.train({"cars": [(0, 0)]}, final=True)
    assert values(local.train({"cars": [(2, 2)]}, final=True).outputs["out"], "time") == [(0,), (1,), (2,)]
