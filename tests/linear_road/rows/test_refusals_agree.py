"""Rows refused by the tools and by the validator: two implementations, and the page's sentence in plain
Python.

Idea: what `drive` and `describe` refuse must be what the validator leaves out, row by row and in the same
words, or a system under test is judged on other rows than it was given. Dirty inputs are made at random from
sound rows: fields out of range, times that leap and go back, repetitions, text that is no row, odd but right
spellings of a number.
"""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linear_road.golden_input import GOLDEN, balance, daily, needs_data, report, travel
from penstock.linear_road.describe.describe import describe
from penstock.linear_road.rows import read_blocks as reading
from penstock.linear_road.rows import refusals
from penstock.linear_road.rows.arrays import Int32s
from penstock.linear_road.rows.inputs import open_input
from penstock.linear_road.rows.refusals import REASONS, Seen, refuse, refuse_alone
from penstock.linear_road.validate import lines as line_reader
from penstock.linear_road.validate.refused import sieve

Refusals = list[tuple[int, str, str]]

times = st.integers(0, 12) | st.sampled_from([59, 60, 61, 70, 71, 72, 73, 120, 131, 132, 133, 400, 10_799])
vids = st.integers(0, 3)
sound_rows = st.one_of(
    st.builds(
        lambda t, v, xway, way, seg: report(t, v, seg * 5280 + 7, xway=xway, direction=way),
        times,
        vids,
        st.sampled_from([0, 1, 1 << 17, 2**31 - 1]),
        st.integers(0, 1),
        st.sampled_from([0, 1, 99]),
    ),
    st.builds(balance, times, vids, st.integers(0, 5)),
    st.builds(daily, times, vids, st.integers(0, 5), st.sampled_from([1, 69])),
    st.builds(
        travel,
        times,
        vids,
        st.integers(0, 5),
        st.sampled_from([0, 99]),
        st.just(99),
        st.just(7),
        st.just(1440),
    ),
)
odd_values = st.sampled_from(
    [
        "-1",
        "-2",
        "0",
        "1",
        "2",
        "5",
        "4",
        "7",
        "8",
        "69",
        "70",
        "99",
        "100",
        "101",
        "1440",
        "1441",
        "5280",
        "10799",
        "10800",
        "528000",
        "2147483647",
        "2147483648",
        "-2147483648",
        "99999999999999999999",
        "-0",
        "+1",
        "007",
        "0000000000000001",
        "1.0",
        "1e2",
        "0x1",
        "1_0",
        "x",
        "-",
        "+",
        "-+1",
        "--1",
        "½",
        "\x00",
    ]
) | st.sampled_from(["", " ", " 1", "1 ", "\t1\t", "1\r", "\r1", "1 1", "- 1", "\u0661", '"1"'])
no_rows = st.sampled_from(
    ["", " ", "\r", ",", "," * 14, "x", "0,1,2,3", "\ufeff0", "Type,Time,VID", "0," * 15]
)


@st.composite
def spoilt_rows(draw: st.DrawFn) -> str:
    fields = draw(sound_rows).split(",")
    for place in draw(st.lists(st.integers(0, 14), min_size=1, max_size=3)):
        fields[place] = draw(odd_values)
    return ",".join(fields) + draw(st.sampled_from(["", "", "", "\r", ",", ",1", " "]))


@st.composite
def dirty_inputs(draw: st.DrawFn) -> list[str]:
    rows = draw(st.lists(sound_rows, min_size=1, max_size=25))
    if draw(st.booleans()):
        rows.sort(key=lambda row: int(row.split(",")[1]))
    for dirt in draw(st.lists(spoilt_rows() | no_rows | st.sampled_from(rows), max_size=8)):
        rows.insert(draw(st.integers(0, len(rows))), dirt)
    return rows


def by_the_driver(file: Path) -> Refusals:
    source, found, line = open_input(file), [], 0
    for rows in reading.seconds_of(source):
        found += [
            (line + 1 + i, REASONS[code], rows.raw(i)) for i, code in enumerate(rows.reasons.tolist()) if code
        ]
        line += len(rows)
    return found


def by_the_validator(file: Path) -> Refusals:
    with duckdb.connect(":memory:") as con:
        judged = sieve(con, line_reader.chunks(open_input(file)))
        return [(row.line, row.why, row.raw) for _, _, refused in judged for row in refused]


RANGES = {
    1: (0, 10_799, "time", "0234"),
    2: (0, 2**31 - 1, "vehicle", "0234"),
    3: (0, 100, "speed", "0"),
    4: (0, 2**31 - 1, "expressway", "034"),
    5: (0, 4, "lane", "0"),
    6: (0, 1, "direction", "0"),
    7: (0, 99, "segment", "0"),
    8: (0, 527_999, "position", "0"),
    9: (0, 2**31 - 1, "query", "234"),
    10: (0, 99, "start segment", "4"),
    11: (0, 99, "end segment", "4"),
    14: (1, 69, "day", "3"),
    12: (1, 7, "day of week", "4"),
    13: (1, 1440, "time of day", "4"),
}


def alone(row: str) -> str | None:
    """What is wrong with a row by itself."""
    fields = row.split(",")
    if len(fields) != 15 or not all(re.fullmatch(r"[ \t]*[+-]?[0-9]+[ \t\r]*", field) for field in fields):
        return "not 15 integers"
    values = [int(field) for field in fields]
    if values[0] not in (0, 2, 3, 4):
        return "unknown type"
    for place, (least, largest, name, types) in RANGES.items():
        idle = place in (12, 13) and values[10] == values[11]
        if str(values[0]) in types and not idle and not least <= values[place] <= largest:
            return f"{name} out of range"
    return "Seg is not Pos div 5280" if values[0] == 0 and values[7] != values[8] // 5280 else None


def by_the_page(rows: list[str]) -> Refusals:
    """The page's paragraph, row by row."""
    sound = [alone(row) for row in rows]
    last, reported, found = None, set(), []
    for i, row in enumerate(rows):
        why = sound[i]
        if why is None:
            kind, t, vid, _, xway, _, way, *_ = map(int, row.split(","))
            after = next(
                (int(rows[k].split(",")[1]) for k in range(i + 1, len(rows)) if sound[k] is None), None
            )
            key = (vid, xway, way, t)
            if last is not None and t < last:
                why = "time goes back"
            elif last is not None and after is not None and t > last + 60 and t > after + 60:
                why = "time leaps ahead"
            elif kind == 0 and key in reported:
                why = "report repeated"
            else:
                last = t
                reported |= {key} if kind == 0 else set()
        if why is not None:
            found.append((i + 1, why, row.rstrip("\r\n")))
    return found


def check(rows: list[str], directory: Path, *, last_newline: bool = True) -> None:
    file = directory / "rows.dat"
    file.write_bytes(("\n".join(rows) + "\n" * last_newline).encode())
    expected = by_the_page(rows)
    assert by_the_validator(file) == expected
    assert by_the_driver(file) == expected
    described = describe(file)
    assert [(row.line, row.why, row.raw) for row in described.first_dirt] == expected[:10]
    assert sum(described.dirt.values()) == len(expected)
    assert sum(described.counts.values()) == len(rows) - len(expected)


@pytest.mark.slow
@settings(deadline=None, max_examples=250)
@given(dirty_inputs())
def test_all_refuse_the_same_rows_for_the_same_reasons(rows):
    with TemporaryDirectory() as directory:
        check(rows, Path(directory), last_newline=True)


@settings(deadline=None, max_examples=15)
@given(dirty_inputs(), st.integers(1, 300))
def test_whatever_the_blocks(rows, size):
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "CHUNK_BYTES", size)
        patch.setattr(line_reader, "BLOCK_BYTES", size)
        check(rows, Path(directory))


@pytest.mark.parametrize(
    "rows",
    [
        # A next row with a Time that is no time must not make the leap look right: all later rows would go
        # back.
        [report(10, 1, 7), report(500, 2, 7), report(99_999, 3, 7), report(11, 4, 7)],
        [report(10, 1, 7), report(500, 2, 7), report(500, 3, 7, spd=101), report(11, 4, 7)],
        [report(10, 1, 7), report(500, 2, 7), "x", "", report(11, 4, 7)],
        # Several faults: the first field of the row is named.
        [report(10, 1, 7, spd=101, xway=-1)],
        # A number too large harms only where its field is used.
        [
            balance(10, 1, 5).replace(",-1,-1,-1,-1,-1", ",99999999999,-1,-1,-1,-1", 1),
            report(10, 99_999_999_999, 7),
        ],
        [report(10, 1, 7, xway=1 << 17), report(10, 1, 7, xway=1 << 17), report(10, 1, 7, xway=1 << 18)],
        [f" {report(10, 1, 7)} \r", report(10, 1, 7).replace(",7,", ",\t+7 ,", 1)],
        [report(10, 1, 7), report(11, 1, 7)],
    ],
)
def test_points_where_they_once_differed(tmp_path, rows):
    check(rows, tmp_path)
    if rows[-1]:
        check(rows, tmp_path, last_newline=False)


@needs_data
def test_the_golden_rows(tmp_path):
    check((GOLDEN / "rows.dat").read_text().splitlines(), tmp_path)


def judged(vids: Int32s, seen: Seen, time: int = 7) -> list[str]:
    """Reports of one second; the last row only follows them."""
    values = np.full((len(vids) + 1, 15), 0, np.int32)
    values[:, 1], values[:-1, 2], values[-1, 2] = time, vids, -1
    alone = refuse_alone(values, np.ones(len(values), np.bool_))
    reasons, _ = refuse(values, alone, len(vids), seen)
    return [REASONS[code] for code in reasons]


@pytest.mark.parametrize("step", [1, 1 << 20])
def test_a_second_may_have_more_reports_than_the_table_first_holds(monkeypatch, step):
    monkeypatch.setattr(refusals, "_SLOTS", 16)
    seen, vids = Seen(), np.arange(100) * step
    for some in np.split(vids, 10):
        assert set(judged(some, seen)) == {"accepted"}
    assert set(judged(vids, seen)) == {"report repeated"}
    assert set(judged(vids, seen, time=8)) == {"accepted"}
    assert set(judged(vids, seen, time=8)) == {"report repeated"}


def test_more_than_a_million_reports_in_one_second():
    vids = np.arange(1_200_000)
    found = judged(np.concatenate([vids, vids[::1000]]), Seen())
    assert set(found[: len(vids)]) == {"accepted"}
    assert set(found[len(vids) :]) == {"report repeated"}
