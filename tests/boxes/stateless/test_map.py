from penstock.testing import examples, values

ROWS = [(0, "a", 1), (1, "b", None), (2, "c", 2147483647)]


def test_adds_and_replaces(run):
    result = run(lambda s: s.map(k="upper(k)", half="v / 2"), ROWS[:2])
    assert values(result.outputs["out"]) == [(0, "A", 1, 0.5), (1, "B", None, None)]


def test_expressions_read_the_old_columns(run):
    result = run(lambda s: s.map(v="v + 1", w="v"), ROWS[:1])
    assert values(result.outputs["out"]) == [(0, "a", 2, 1)]


def test_overflow_goes_to_dead_letters(run, dead):
    result = run(lambda s: s.map(v="v + 1", name="next"), ROWS)
    assert values(result.outputs["out"], "v") == [(None,), (2,)]
    assert dead(result) == [("next", 2)]


def test_bad_cast_goes_to_dead_letters(run, dead):
    result = run(lambda s: s.map(n="cast(k AS INT)", name="cast"), [(0, "12", 0), (1, "x", 0)])
    assert values(result.outputs["out"], "n") == [(12,)]
    assert dead(result) == [("cast", 1)]


def test_select_keeps_only_what_it_names(run):
    result = run(lambda s: s.select("v", what="k"), ROWS[:1])
    assert result.outputs["out"] == [{"v": 1, "what": "a"}]


def test_a_lost_timestamp_column_comes_back_behind_a_window(run):
    result = run(lambda s: s.select("v").tumble("10 seconds", n="count(*)"), ROWS)
    assert values(result.outputs["out"]) == [(0, 3)]


def test_function_over_a_batch(run):
    result = run(lambda s: s.apply(examples.count_nulls, produces="nulls BIGINT"), ROWS[:2])
    assert values(result.outputs["out"]) == [(0, "a", 1, 0), (1, "b", None, 1)]


def test_function_instead_of_the_other_columns(run):
    result = run(lambda s: s.apply(examples.count_nulls, produces="nulls BIGINT", keep=False), ROWS[:2])
    assert values(result.outputs["out"]) == [(0,), (1,)]


def test_odd_column_names(run):
    schema = "time TIMESTAMP, `my col` STRING, `a.b` INT, `on` INT"
    rows = [(0, "a", 1, 5), (1, "b", 2, 6), (2, "a", 3, 7)]
    result = run(
        lambda s: (
            s.filter("`a.b` < 3")
            .select("time", "my col", "a.b", "on", {"x,y": "`a.b` + `on`"})
            .group_by("my col")
            .tumble("10 seconds", {"the sum": "sum(`x,y`)", "n.n": "count(`a.b`)"})
        ),
        rows,
        schema=schema,
    )
    assert sorted(values(result.outputs["out"])) == [("a", 0, 6, 1), ("b", 1, 8, 1)]
