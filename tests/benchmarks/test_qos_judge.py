"""The judge of the overload benchmark, on cases made by hand."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.qos import judge
from benchmarks.qos.answers import WINDOWED, Due, delivered_in, due_in
from benchmarks.qos.judge import Answers, Second
from benchmarks.qos.traffic import PERIOD, Phase, TrafficPlan, arrivals_in, worst_lag, write_files
from benchmarks.qos.workload import OUTPUTS, START

import penstock as ps

QOS = ps.QoS(delay=[(0, 1), (2, 1), (6, 0)], loss=[(0, 0), (50, 0.9), (100, 1)], weight=2)
ARRIVALS = [100.0, 100.25, 101.0, 102.5]  # four files, in seconds 0, 0, 1 and 2
DUE = {0: 10.0, 1: 10.0, 2: 20.0, 3: 5.0}
NEVER = 1e9


def judged(*answers, due=DUE, deadline=NEVER, qos=QOS):
    return judge.judge(ARRIVALS, due, answers, qos, deadline)


def whole(at=1.0):
    return [Answers(file, amount, ARRIVALS[file] + at) for file, amount in DUE.items()]


def second(k, share=1.0, worst=1.0, utility=1.0):
    return Second(k, 10.0, share, 1.0, utility, worst)


def test_all_in_time_is_worth_one():
    assert [each.utility for each in judged(*whole())] == [1.0, 1.0, 1.0]


def test_a_second_is_that_of_arrival_not_of_appearance():
    seconds = judged(*whole(at=1.9))
    assert [(each.second, each.due) for each in seconds] == [(0, 20.0), (1, 20.0), (2, 5.0)]
    assert [each.share for each in seconds] == [1.0, 1.0, 1.0]


def test_late_answers_lose_by_the_delay_graph():
    assert [each.utility for each in judged(*whole(at=4.0))] == [0.5, 0.5, 0.5]


def test_the_mean_delay_utility_is_over_what_was_delivered():
    first = judged(Answers(0, 10, 101.0), Answers(1, 10, ARRIVALS[1] + 4.0))[0]
    assert (first.share, first.delay_utility, first.utility) == (1.0, 0.75, 0.75)
    assert first.worst == 4.0


def test_what_is_missing_loses_by_the_loss_graph():
    assert judged(Answers(0, 10, 101.0))[0].utility == pytest.approx(0.9)
    assert judged(Answers(0, 5, 101.0))[0].utility == pytest.approx(0.45)


def test_nothing_delivered_is_worth_nothing():
    (first, *_) = judged()
    assert (first.share, first.utility, first.worst) == (0.0, 0.0, None)
    assert not first.in_zone(1e9)


def test_what_is_seen_after_the_deadline_is_lost():
    assert [each.share for each in judged(*whole(), deadline=102.0)] == [1.0, 1.0, 0.0]


def test_an_output_without_a_loss_graph_has_all_or_nothing():
    strict = ps.QoS(delay=[(0, 1), (2, 1), (6, 0)])
    assert judged(Answers(0, 10, 101.0), Answers(1, 9, 101.0), qos=strict)[0].utility == 0.0
    assert judged(*whole(), qos=strict)[0].utility == 1.0


def test_files_that_never_came_are_not_due():
    assert [each.second for each in judged(*whole(), due={**DUE, 99: 7.0})] == [0, 1, 2]


def test_more_answers_than_are_due_are_found():
    assert judge.too_many(DUE, whole()) == []
    assert judge.too_many(DUE, [*whole(), Answers(2, 1, 105.0), Answers(7, 1, 105.0)]) == [2, 7]


def test_the_total_is_by_weight_and_leaves_out_what_was_never_due():
    qos = {"a": QOS, "b": ps.QoS(delay=[(0, 1), (2, 1), (6, 0)], weight=6), "c": QOS}
    assert judge.total_utility({"a": 1.0, "b": 0.5, "c": None}, qos) == pytest.approx((2 + 3) / 8)


def test_the_strict_output_is_judged_after_five_seconds():
    seconds = [second(k, worst=3.0 if k in (11, 12) else 1.0) for k in range(10, 30)]
    figures = judge.strict_figures(seconds, QOS, begin=10, end=30)
    assert (figures.in_time, figures.complete, figures.last_late) == (1.0, 1.0, 3.0)


def test_a_second_without_any_strict_answer_is_late_and_not_complete():
    seconds = [
        second(k, share=0.0 if k == 29 else 1.0, worst=None if k == 29 else 1.0) for k in range(10, 30)
    ]
    figures = judge.strict_figures(seconds, QOS, begin=10, end=30)
    assert figures.in_time == pytest.approx(14 / 15)
    assert figures.complete == pytest.approx(19 / 20)
    assert figures.last_late == 20.0


def test_whole_again_is_the_last_gap_after_the_end():
    seconds = [second(k, share=0.5 if k in (31, 33) else 1.0) for k in range(10, 40)]
    assert judge.whole_again({"a": seconds, "b": [second(k) for k in range(10, 40)]}, end=30) == 4.0
    assert judge.whole_again({"a": [*seconds, second(40, share=0.9)]}, end=30) is None
    assert judge.whole_again({"b": [second(k) for k in range(40)]}, end=30) == 0.0


def test_turns_ignore_small_moves():
    assert judge.turns([1, 0.5, 0.54, 0.5, 0.53]) == 0
    assert judge.turns([1, 0.5, 0.6, 0.5, 0.6]) == 3
    assert judge.turns([]) == 0


# -- reading answers


def write_tuples(path, files):
    times = [round(START.timestamp() * 1e6) + round(file * PERIOD * 1e6) for file in files]
    pq.write_table(pa.table({"time": pa.array(times, pa.timestamp("us", "UTC"))}), path)


def write_windows(path, rows):
    """(window, segment, n)"""
    since = [round(START.timestamp() * 1e6) + round((window * 10 + 0.25) * 1e6) for window, _, _ in rows]
    columns = {
        "since": pa.array(since, pa.timestamp("us", "UTC")),
        "seg": pa.array([segment for _, segment, _ in rows], pa.int32()),
        "n": pa.array([n for _, _, n in rows], pa.int64()),
    }
    pq.write_table(pa.table(columns), path)


def test_answers_go_back_to_their_files_and_windows_to_what_closed_them(tmp_path):
    for name in OUTPUTS:
        (tmp_path / name).mkdir()
    write_tuples(tmp_path / "alarms" / "a.parquet", [0, 0, 3])
    write_windows(tmp_path / WINDOWED / "a.parquet", [(0, 7, 100), (0, 8, 50), (1, 7, 30)])
    due = due_in(tmp_path, files=60)
    assert due.by_output["alarms"] == {0: 2.0, 3: 1.0}
    assert due.by_output[WINDOWED] == {40: 2.0}  # the second window is closed by nothing but the end
    seen = [("alarms", "a.parquet", 5.0), (WINDOWED, "a.parquet", 6.0)]
    delivered = delivered_in(tmp_path, seen, due, files=60)
    assert sorted(delivered.by_output["alarms"], key=lambda each: each.file) == [
        Answers(0, 2.0, 5.0),
        Answers(3, 1.0, 5.0),
    ]
    assert delivered.wrong == 0


def test_a_window_of_a_part_of_its_tuples_is_delivered_in_part_and_wrong(tmp_path):
    (tmp_path / WINDOWED).mkdir()
    write_windows(tmp_path / WINDOWED / "a.parquet", [(0, 7, 25), (0, 8, 50)])
    due = Due({WINDOWED: {40: 2.0}}, {(0, 7): 100, (0, 8): 50})
    delivered = delivered_in(tmp_path, [(WINDOWED, "a.parquet", 6.0)], due, files=60)
    assert [each.amount for each in delivered.by_output[WINDOWED]] == [0.25, 1.0]
    assert delivered.wrong == 1


# -- input


def test_the_same_seed_writes_the_same_files(tmp_path):
    plan = TrafficPlan((Phase("calm", 0.5, 40), Phase("overload", 0.5, 80)))
    one, two = write_files(plan, tmp_path / "one", 3), write_files(plan, tmp_path / "two", 3)
    names = sorted(path.name for path in one.glob("*.csv"))
    assert [len((one / name).read_text().splitlines()) for name in names] == [10, 10, 20, 20]
    assert all((one / name).read_text() == (two / name).read_text() for name in names)
    assert (one / names[1]).read_text().startswith("2026-01-01 00:00:00.250,10,")


def test_the_lag_of_the_driver_is_told(tmp_path):
    (tmp_path / "log").write_text("0 100.0\n1 100.25\n2 101.5\n")
    assert worst_lag(arrivals_in(tmp_path / "log")) == pytest.approx(1.0)
