"""Rows refused: each rule of one row, the sequential rules against a plain reference, chunks that split a
second.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linear_road.golden_input import balance, daily, report, travel
from penstock.linear_road.errors import InputError
from penstock.linear_road.rows.fields import COLUMNS
from penstock.linear_road.rows.inputs import open_input
from penstock.linear_road.validate import lines as line_reader
from penstock.linear_road.validate import validate
from penstock.linear_road.validate.refused import out_of_order

GOOD = report(10, 1, 100)


def whys(tmp_path, rows: list[str]) -> list[tuple[int, str]]:
    source = tmp_path / "rows.dat"
    source.write_text("\n".join(rows) + "\n")
    return [(row.line, row.why) for row in validate(source).refused]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("", "not 15 integers"),
        ("0,1", "not 15 integers"),
        (GOOD + ",1", "not 15 integers"),
        (GOOD.replace(",100,", ",1e2,"), "not 15 integers"),
        (GOOD.replace(",100,", ",100.0,"), "not 15 integers"),
        (GOOD.replace(",100,", ",,"), "not 15 integers"),
        (GOOD.replace(",100,", ",99999999999,"), "position out of range"),
        ("1" + GOOD[1:], "unknown type"),
        (report(10800, 1, 100), "time out of range"),
        (report(10, -1, 100), "vehicle out of range"),
        (report(10, 1, 100, spd=101), "speed out of range"),
        (report(10, 1, 100, xway=-1), "expressway out of range"),
        (report(10, 1, 100, lane=5), "lane out of range"),
        (report(10, 1, 100, direction=2), "direction out of range"),
        (report(10, 1, 528000), "segment out of range"),
        (GOOD.replace(",0,100,", ",1,100,"), "Seg is not Pos div 5280"),
        (balance(10, 1, -1), "query out of range"),
        (daily(10, 1, 1, 0), "day out of range"),
        (daily(10, 1, 1, 70), "day out of range"),
        (daily(10, 1, 1, 5, xway=-1), "expressway out of range"),
        (travel(10, 1, 1, 100, 5, 1, 1), "start segment out of range"),
        (travel(10, 1, 1, 5, 100, 1, 1), "end segment out of range"),
        (travel(10, 1, 1, 5, 6, 8, 1), "day of week out of range"),
        (travel(10, 1, 1, 5, 6, 1, 1441), "time of day out of range"),
        (GOOD, "report repeated"),
        (report(9, 1, 100), "time goes back"),
    ],
)
def test_each_reason(tmp_path, row, why):
    assert whys(tmp_path, [GOOD, row, balance(11, 1, 1)]) == [(2, why)]


def test_unused_fields_are_not_looked_at(tmp_path):
    rows = [
        balance(0, 1, 1).replace("-1,-1,-1,-1,-1,-1,1", "999,-7,9,9,999,5,1"),
        travel(0, 1, 2, 4, 4, 0, 0),
    ]
    assert whys(tmp_path, rows) == []


def test_blanks_signs_and_windows_line_ends_are_integers(tmp_path):
    source = tmp_path / "rows.dat"
    source.write_bytes(GOOD.replace(",100,", ", +100 ,").encode() + b"\r\n")
    verdict = validate(source)
    assert (verdict.reports, verdict.refused) == (1, [])


def test_only_reports_can_repeat_and_only_on_one_road(tmp_path):
    rows = [
        balance(10, 1, 5),
        balance(10, 1, 5),
        GOOD,
        report(10, 1, 100, direction=1),
        report(10, 1, 100, xway=1),
    ]
    assert whys(tmp_path, rows) == []


def test_a_refused_row_does_not_move_the_clock(tmp_path):
    rows = [GOOD, report(500, 2, 100), "garbage", report(9, 3, 100), report(12, 4, 100)]
    assert whys(tmp_path, rows) == [(2, "time leaps ahead"), (3, "not 15 integers"), (4, "time goes back")]


def test_a_gap_is_no_leap(tmp_path):
    assert whys(tmp_path, [GOOD, report(500, 2, 100), report(501, 3, 100)]) == []


def reference(times: list[int]) -> list[int]:
    """The page's sentence, row by row."""
    last, found = None, []
    for i, time in enumerate(times):
        after = times[i + 1] if i + 1 < len(times) else None
        if last is not None and time < last:
            found.append(1)
        elif last is not None and after is not None and time > last + 60 and time > after + 60:
            found.append(2)
        else:
            found.append(0)
            last = time
    return found


@given(st.lists(st.integers(0, 400), max_size=60), st.integers(0, 60))
@settings(max_examples=300, deadline=None)
def test_sequential_rules_in_any_two_chunks(times, cut):
    head, tail = np.array(times[:cut], dtype=np.int32), np.array(times[cut:], dtype=np.int32)
    first = out_of_order(head, None, int(tail[0]) if len(tail) else None)
    kept = head[first == 0]
    second = out_of_order(tail, int(kept[-1]) if len(kept) else None, None)
    assert [*first.tolist(), *second.tolist()] == reference(times)


def test_small_blocks_give_the_same(tmp_path, monkeypatch):
    """A second, a leap and a repetition that lie across the border of two blocks."""
    rows = [report(n // 7, n, 100) for n in range(24)]
    rows[12:12] = [rows[11], rows[11], report(999, 1, 100), rows[5], "x"]
    whole = whys(tmp_path, rows)
    for size in (1, 100, 333):
        monkeypatch.setattr(line_reader, "BLOCK_BYTES", size)
        assert whys(tmp_path, rows) == whole
    assert [why for _, why in whole] == [
        *["report repeated"] * 2,
        "time leaps ahead",
        "time goes back",
        "not 15 integers",
    ]


def test_parquet_rows_are_the_same_rows(tmp_path):
    rows = [GOOD, report(10, 2, 100, spd=101), GOOD]
    columns = np.array([[int(v) for v in row.split(",")] for row in rows], dtype=np.int32).T
    source = tmp_path / "rows.parquet"
    pq.write_table(pa.table(dict(zip(COLUMNS, columns, strict=True))), source)
    found = validate(source).refused
    assert [(row.line, row.why, row.raw) for row in found] == [
        (2, "speed out of range", rows[1]),
        (3, "report repeated", rows[2]),
    ]


def test_parquet_without_a_column_is_refused_in_one_sentence(tmp_path):
    source = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"Type": [0]}), source)
    with pytest.raises(InputError, match="cannot be read as parquet with the columns"):
        list(line_reader.chunks(open_input(source)))
