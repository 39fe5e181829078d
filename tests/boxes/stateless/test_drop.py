from penstock.engine.local.boxes.stateless import drop_hash
from penstock.model.boxes import Drop
from penstock.testing import values

ROWS = [(n, "a", n) for n in range(200)]


def test_rate_0_keeps_all_and_rate_1_none(run):
    assert len(run(lambda s: s.drop(0.0), ROWS).outputs["out"]) == 200
    assert run(lambda s: s.drop(1.0), ROWS).outputs["out"] == []


def test_the_hash_of_name_seed_and_place_decides(run):
    lot = Drop(name="shed", seed=7).lot
    expected = [(n,) for n in range(200) if drop_hash(lot, n) % 1_000_000 >= 250_000]
    assert 120 < len(expected) < 180
    for trains in ([ROWS], [ROWS[:13], ROWS[13:]]):
        assert (
            values(run(lambda s: s.drop(0.25, seed=7, name="shed"), *trains).outputs["out"], "v") == expected
        )


def test_another_seed_drops_others(run):
    one, other = (run(lambda s, seed=seed: s.drop(0.5, seed=seed), ROWS).outputs["out"] for seed in (0, 1))
    assert values(one) != values(other)


def test_boxes_of_one_seed_choose_independently(run):
    """Natively in a row, then behind a window, where the vectorised logic drops: each halves what is left."""
    assert 30 < len(run(lambda s: s.drop(0.5).drop(0.5), ROWS).outputs["out"]) < 70
    behind = run(lambda s: s.group_by("v").tumble("1 second", n="count(*)").drop(0.5).drop(0.5), ROWS)
    assert 30 < len(behind.outputs["out"]) < 70


def test_a_higher_rate_drops_more_of_the_same(run):
    few, many = (set(values(run(lambda s, r=r: s.drop(r), ROWS).outputs["out"])) for r in (0.7, 0.2))
    assert few < many


def test_the_rate_changes_from_train_to_train(run):
    result = run(
        lambda s: s.drop(0.0, name="shed"),
        ROWS[:50],
        ROWS[50:100],
        ROWS[100:],
        drop_rates=[{"shed": 1.0}, {"shed": 0.0}, {}],
    )
    assert values(result.outputs["out"], "v") == [(n,) for n in range(50, 200)]
