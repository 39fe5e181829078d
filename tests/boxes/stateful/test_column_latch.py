"""ColumnLatch: state as columns of the partition, on both engines; order, several inputs, errors."""

from __future__ import annotations

import pytest

from penstock.model.errors import NetworkError
from penstock.model.writing.windows import column_latch
from penstock.testing import values
from penstock.testing.columns import TuplesPerKey, TuplesWithoutTime

PRODUCES = "time TIMESTAMP, k STRING, n BIGINT"


ROWS = [(1, "a", 3), (2, "b", 7), (2, "a", 1), (5, "a", None), (4, "b", 9), (31, "a", 0)]


@pytest.mark.parametrize("cuts", [[6], [1, 1, 1, 1, 1, 1], [2, 4]])
def test_tuples_come_in_order_and_state_stays(run, cuts):
    trains, at = [], 0
    for size in cuts:
        trains.append(ROWS[at : at + size])
        at += size
    result = run(
        lambda s: s.group_by("k").column_latch(TuplesPerKey, produces=PRODUCES), *trains, lateness="2 seconds"
    )
    assert values(result.outputs["out"], "time", "k", "n") == [
        (1, "a", 1),
        (2, "a", 2),
        (2, "b", 1),
        (4, "b", 2),
        (5, "a", 3),
        (31, "a", 4),
    ]


def test_what_may_still_be_preceded_waits(run):
    result = run(
        lambda s: s.column_latch(TuplesPerKey, produces=PRODUCES),
        ROWS[:3],
        ROWS[3:5],
        final=False,
        lateness="2 seconds",
    )
    assert [row[0] for row in values(result.outputs["out"], "time")] == [1, 2, 2][
        : len(result.outputs["out"])
    ]
    assert len(result.outputs["out"]) in (1, 3)


def test_several_streams_are_as_far_as_the_slowest(run_two):
    def build(left, right):
        both = [left.group_by("k"), right.group_by("k")]
        return column_latch(both, TuplesPerKey, produces=PRODUCES)

    trains = [([(1, "a", 0), (9, "a", 0)], [(2, "a", 0)]), ([], [(10, "b", 0)])]
    early = run_two(build, trains[0], final=False)
    assert [row[0] for row in values(early.outputs["out"], "time")] in ([1], [1, 2])
    late = run_two(build, *trains)
    assert sorted(row[2] for row in values(late.outputs["out"], "time", "k", "n")) == [1, 1, 2, 3]


def test_rows_without_a_time_are_refused(run):
    with pytest.raises(Exception, match="1 rows without 'time'"):
        run(lambda s: s.column_latch(TuplesWithoutTime, produces=PRODUCES), ROWS[:1])


def test_it_must_produce_the_timestamp(run):
    with pytest.raises(NetworkError, match="does not produce the timestamp column 'time'"):
        run(lambda s: s.column_latch(TuplesPerKey, produces="k STRING, n BIGINT"), ROWS)
