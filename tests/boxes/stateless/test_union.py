from penstock.model.writing.combining import group_by
from penstock.testing import values


def test_merges(run_two):
    result = run_two(lambda a, b: a.union(b), ([(0, "a", 1)], [(5, "b", 2)]), ([(1, "a", 3)], []))
    assert values(result.outputs["out"]) == [(0, "a", 1), (1, "a", 3), (5, "b", 2)]


def test_windows_behind_it_wait_for_the_slower_input(run_two):
    def build(a, b):
        return a.union(b).tumble("10 seconds", n="count(*)")

    trains = [([(1, "a", 1), (25, "a", 1)], [(2, "b", 1)]), ([], [(9, "b", 1)])]
    assert run_two(build, *trains, final=False).outputs["out"] == []
    # the second input reached 12: the first window is closed, the second not
    assert values(run_two(build, *trains, ([], [(12, "b", 1)]), final=False).outputs["out"]) == [(1, 3)]


def test_union_with_itself_doubles(run):
    assert len(run(lambda s: s.union(s), [(0, "a", 1)]).outputs["out"]) == 2


def test_group_by_takes_several_streams(run_two):
    def build(a, b):
        return group_by("k", a, b).tumble("10 seconds", n="count(*)", v="sum(v)")

    result = run_two(build, ([(1, "x", 1), (2, "y", 2)], [(3, "x", 10), (4, None, 5), (5, None, 6)]))
    assert values(result.outputs["out"]) == [(None, 4, 2, 11), ("x", 1, 2, 11), ("y", 2, 1, 2)]


def test_a_window_and_its_own_source(run):
    """On Spark the union is a native box behind a stage: it must wait for that stage, also in a train without
    tuples.
    """

    def build(cars):
        maxima = cars.tumble("1 second", k="max(k)", v="max(v)", stamp="latest").select("time", "k", "v")
        return group_by("k", maxima, cars).slide("1 second", every="1 second", v="sum(v)")

    result = run(build, [(0, "a", 1), (0.5, "a", 2)], [(3, "a", 4)], [])
    assert values(result.outputs["out"]) == [("a", 0, 5), ("a", 3, 8)]
