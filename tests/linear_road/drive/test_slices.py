"""Reading rows: the compiled passes against plain Python, the refusals against the golden data."""

import csv
import re
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linear_road.golden_input import SHARED, needs_data
from penstock.linear_road.drive.prepare import PreparePlan, prepare
from penstock.linear_road.errors import InputError
from penstock.linear_road.rows import csv_rows
from penstock.linear_road.rows import read_blocks as reading
from penstock.linear_road.rows.fields import COLUMNS, PARQUET_SCHEMA
from penstock.linear_road.rows.inputs import open_input
from penstock.linear_road.rows.refusals import REASONS

# The data lies beside the repository; LINEAR_ROAD_SHARED names another place.
REPORT = [0, 30, 7, 55, 0, 1, 0, 3, 16000, -1, -1, -1, -1, -1, -1]


def line(values):
    return ",".join(map(str, values))


def changed(**fields):
    row = list(REPORT)
    for name, value in fields.items():
        row[COLUMNS.index(name)] = value
    return row


def write(tmp_path, rows, name="rows.dat"):
    file = tmp_path / name
    file.write_text("".join(f"{row if isinstance(row, str) else line(row)}\n" for row in rows))
    return open_input(file)


def reasons(source):
    return [REASONS[code] for block in reading.seconds_of(source) for code in block.reasons]


numbers = st.integers(-(2**31) + 1, 2**31 - 1)
odd_numbers = st.from_regex(r"[ \t]{0,2}[+-]?[0-9]{1,13}[ \t\r]{0,2}", fullmatch=True)
good_lines = st.lists(numbers | odd_numbers, min_size=15, max_size=15).map(line)
any_lines = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40)


def expected(text):
    """Fifteen integers or nothing, in plain Python."""
    fields = text.split(",")
    if len(fields) != 15 or not all(re.fullmatch(r"[ \t]*[+-]?[0-9]+[ \t\r]*", found) for found in fields):
        return None
    return [int(found) if abs(int(found)) < 2**31 else csv_rows.TOO_LARGE for found in fields]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.one_of(good_lines, any_lines, st.just(line(REPORT) + ",1")), min_size=1, max_size=6))
def test_parse_agrees_with_plain_python(lines):
    text = np.frombuffer("".join(f"{found}\n" for found in lines).encode(), np.uint8)
    values, whole, starts = csv_rows.parse(text)
    assert whole.tolist() == [expected(found) is not None for found in lines]
    assert [row.tolist() for row in values[whole]] == [expected(found) for found in lines if expected(found)]
    pieces = [text[a:b].tobytes().decode() for a, b in pairwise(starts)]
    assert pieces == [f"{found}\n" for found in lines]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(numbers, min_size=15, max_size=15), min_size=1, max_size=5))
def test_render_is_the_inverse_of_parse(rows):
    text, _ = csv_rows.render(np.array(rows, np.int32))
    assert text.tobytes().decode() == "".join(f"{line(row)}\n" for row in rows)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.lists(st.integers(-1, 10**6), min_size=15, max_size=15), min_size=1, max_size=5),
    st.integers(0, 10**6),
)
def test_shift_moves_three_fields_and_leaves_unused_ones(rows, by):
    text, _ = csv_rows.render(np.array(rows, np.int32))
    moved, _, _ = csv_rows.parse(csv_rows.shift(text, len(rows), by, 2 * by, 3))
    for before, after in zip(rows, moved.tolist(), strict=True):
        for j, name in enumerate(COLUMNS):
            offset = {"VID": by, "QID": 2 * by, "XWay": 3}.get(name, 0) if before[j] >= 0 else 0
            assert after[j] == before[j] + offset


def test_shift_moves_numbers_with_blanks_and_signs_too():
    row = (
        b"3,10, +231 ,-1,\t0,-1,-1,-1,-1,-0,-1,-1,-1,-1,60\r\n2,1,x,-1,99999999999,-1,-1,-1,-1,-5,1,1,1,1,1\n"
    )
    assert csv_rows.shift(np.frombuffer(row, np.uint8), 2, 1000, 100, 2).tobytes() == (
        b"3,10,1231,-1,2,-1,-1,-1,-1,100,-1,-1,-1,-1,60\r\n2,1,x,-1,99999999999,-1,-1,-1,-1,-5,1,1,1,1,1\n"
    )


def test_windows_line_ends_and_a_missing_last_newline_are_rows(tmp_path):
    (tmp_path / "rows.dat").write_bytes(f"{line(REPORT)}\r\n{line(changed(VID=8))}".encode())
    source = open_input(tmp_path / "rows.dat")
    (block,) = reading.seconds_of(source)
    assert block.values[:, 2].tolist() == [7, 8]
    assert not block.reasons.any()


@needs_data
@pytest.mark.parametrize("chunk", [1 << 25, 4096, 300])
def test_golden_rows_are_refused_as_listed_whatever_the_chunk(monkeypatch, chunk):
    monkeypatch.setattr(reading, "CHUNK_BYTES", chunk)
    source = open_input(SHARED / "golden/rows.dat")
    found, text, seconds = [], b"", []
    number = 0
    for block in reading.seconds_of(source):
        text += block.text.tobytes()
        seconds.append(set(block.seconds.tolist()))
        found += [number + 1 + int(i) for i in np.flatnonzero(block.reasons)]
        number += len(block)
    with (SHARED / "golden/refused.csv").open() as stream:
        assert found == [int(row["line"]) for row in csv.DictReader(stream)]
    assert text == (SHARED / "golden/rows.dat").read_bytes()
    assert sum(map(len, seconds)) == len(set.union(*seconds)), "a second is in two blocks"


@needs_data
@pytest.mark.parametrize("name", ["reports_t0-323.dat", "positions_t0-450.dat"])
def test_the_official_data_is_accepted_whole(name):
    assert set(reasons(open_input(SHARED / "mitsim" / name))) == {"accepted"}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("1,2,3", "not 15 integers"),
        (line(REPORT) + ".5", "not 15 integers"),
        ("", "not 15 integers"),
        (changed(Type=1), "unknown type"),
        (changed(Time=-1), "time out of range"),
        (changed(Time=10800), "time out of range"),
        (changed(VID=-1), "vehicle out of range"),
        (changed(Spd=101), "speed out of range"),
        (changed(XWay=-1), "expressway out of range"),
        (changed(Lane=5), "lane out of range"),
        (changed(Dir=2), "direction out of range"),
        (changed(Seg=100), "segment out of range"),
        (changed(Pos=528000), "position out of range"),
        (changed(Seg=4), "Seg is not Pos div 5280"),
        (changed(Type=2), "query out of range"),
        (changed(Type=3, QID=1, Day=70), "day out of range"),
        (changed(Type=4, QID=1, Sinit=100, Send=1), "start segment out of range"),
        (changed(Type=4, QID=1, Sinit=1, Send=-1), "end segment out of range"),
        (changed(Type=4, QID=1, Sinit=1, Send=2, DOW=8), "day of week out of range"),
        (changed(Type=4, QID=1, Sinit=1, Send=2, DOW=7, TOD=0), "time of day out of range"),
        (changed(Time=29, VID=9), "time goes back"),
        (changed(Time=91, VID=9), "time leaps ahead"),
        (changed(), "report repeated"),
    ],
)
def test_each_rule_refuses_its_row_and_no_other(tmp_path, row, reason):
    source = write(tmp_path, [REPORT, row, changed(VID=8)])
    assert reasons(source) == ["accepted", reason, "accepted"]


@pytest.mark.parametrize(
    "row",
    [
        changed(Type=2, QID=1, XWay=-1, Spd=-1, Lane=-1, Dir=-1, Seg=-1, Pos=-1),
        changed(Type=4, QID=1, Sinit=0, Send=0, DOW=0, TOD=0),
        changed(VID=7, Dir=1),
        changed(VID=7, XWay=1),
        changed(Time=90, VID=9),
    ],
)
def test_only_used_fields_are_looked_at(tmp_path, row):
    assert reasons(write(tmp_path, [REPORT, row])) == ["accepted", "accepted"]


@pytest.mark.parametrize("rows", [[changed(Time=500), REPORT], [REPORT, changed(Time=500)]])
def test_without_a_row_before_and_after_there_is_no_leap(tmp_path, rows):
    assert "time leaps ahead" not in reasons(write(tmp_path, rows))


def test_a_gap_in_the_stream_is_no_leap(tmp_path):
    assert reasons(write(tmp_path, [REPORT, changed(Time=500), changed(Time=501)])) == ["accepted"] * 3


def test_a_refused_row_stands_in_the_second_it_came_in(tmp_path):
    source = write(tmp_path, ["junk", REPORT, "junk", changed(Time=31), changed(Time=12, VID=3)])
    seconds = [second for block in reading.seconds_of(source) for second in block.seconds.tolist()]
    assert seconds == [30, 30, 30, 31, 31]


def test_parquet_gives_the_same_rows(tmp_path):
    rows = [changed(VID=v, Time=30 + v // 3) for v in range(20)]
    columns = [pa.array([row[j] for row in rows], pa.int32()) for j in range(15)]
    pq.write_table(pa.Table.from_arrays(columns, schema=PARQUET_SCHEMA), tmp_path / "rows.parquet")
    found = [
        row
        for block in reading.seconds_of(open_input(tmp_path / "rows.parquet"))
        for row in block.values.tolist()
    ]
    assert found == rows


def test_parquet_without_a_column_is_refused_by_name(tmp_path):
    pq.write_table(pa.table({"Type": pa.array([0], pa.int32())}), tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="lacks the column Time\n  expected: Type, Time"):
        list(reading.seconds_of(open_input(tmp_path / "rows.parquet")))


def test_a_parquet_row_with_an_empty_value_is_no_row_and_cannot_be_passed_on(tmp_path):
    columns = {name: pa.array([0, None if name == "Spd" else 0, 0], pa.int32()) for name in COLUMNS}
    columns["VID"] = pa.array([1, 2, 3], pa.int32())
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    source = open_input(tmp_path / "rows.parquet")
    assert reasons(source) == ["accepted", "not 15 integers", "accepted"]
    with pytest.raises(
        InputError,
        match=r"row 2 of rows.parquet .*\n  found:    'a row with empty values'\n  hint:     --lenient",
    ):
        prepare(PreparePlan(source), tmp_path / "slices")
    with pytest.raises(
        InputError, match=r"such a row can neither be shifted nor go into or come out of parquet"
    ):
        prepare(PreparePlan(source, lenient=True), tmp_path / "slices")


def test_the_driver_says_what_it_expected(tmp_path):
    with pytest.raises(
        InputError,
        match=r"row 2 of rows.dat breaks the format: speed out of range\n"
        r"  found:    '0,30,7,101,.*\n  expected: Spd 0..100\n  hint:     --lenient",
    ):
        prepare(PreparePlan(write(tmp_path, [REPORT, changed(Spd=101)])), tmp_path / "slices")


def test_a_reading_goes_on_where_another_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "CHUNK_BYTES", 200)
    source = write(tmp_path, [changed(VID=v, Time=30 + v // 4) for v in range(40)])
    blocks = list(reading.seconds_of(source))
    assert len(blocks) > 3
    rest = list(reading.seconds_of(source, origin=blocks[1].following, last=int(blocks[1].seconds[-1])))
    assert (
        np.concatenate([b.values for b in rest]).tolist()
        == np.concatenate([b.values for b in blocks[2:]]).tolist()
    )
