"""From bytes to tuples: good rows are kept whatever their neighbours are.

Bad ones tell their text and why.
"""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from penstock.connectors.files import csv_decode
from penstock.connectors.files.csv_decode import _Csv
from penstock.connectors.files.parquet_decode import decode_table
from penstock.connectors.files.text import ByteRange
from penstock.engine.spark.entry.stamping import stamped
from penstock.model.boxes import Source
from penstock.model.formats.files import csv
from penstock.model.formats.files import json as json_lines
from penstock.model.types import Schema


def decoded(text, schema, *, form=csv, timestamp=None, header=False, **options):
    """(rows with their numbers, {line: (raw, reason)}) of one slice."""
    files = form("x", schema, **options)
    source = Source(name="cars", where="here", format=files, schema=Schema.parse(schema), timestamp=timestamp)
    data = text if isinstance(text, bytes) else text.encode()
    whole = ByteRange("x", 0, 0, len(data), 0, int(header))
    admitted = stamped(source, whole.decode(source, data))
    rows = [tuple(v for k, v in row.items() if k != "_ts") for row in admitted.tuples.to_pylist()]
    return rows, {d["offset"]: (d["raw"], d["reason"]) for d in admitted.dead.to_pylist()}


def test_a_bad_row_goes_its_good_neighbours_stay():
    rows, dead = decoded("1,a\nx,b\n3,c\n4\n5,e,f\n6,g\n", "v INT, k STRING")
    assert rows == [(1, "a", 0), (3, "c", 2), (6, "g", 5)]
    assert dead == {
        1: ("x,b", "malformed: column 'v': 'x' is no INT"),
        3: ("4", "malformed: 1 fields, expected 2"),
        4: ("5,e,f", "malformed: 3 fields, expected 2"),
    }


@pytest.mark.parametrize("far", [0, 4095, 4096, 9000])
def test_also_when_they_are_far_away(far):
    lines = [f"{n},a" for n in range(10_000)]
    lines[far] = "many,a"
    rows, dead = decoded("\n".join(lines), "v INT, k STRING")
    assert [r[0] for r in rows] == [r[2] for r in rows] == [n for n in range(10_000) if n != far]
    assert list(dead) == [far]


def test_quotes():
    rows, dead = decoded('1,"a, b"\n2,"say ""hi"""\n3,"open\n4,ab"c\n5,"x"y\n', "v INT, k STRING")
    assert rows == [(1, "a, b", 0), (2, 'say "hi"', 1), (4, 'ab"c', 3), (5, "xy", 4)]
    assert dead == {2: ('3,"open', "malformed: a quote is not closed")}


@pytest.mark.parametrize("last", ['2,"open', '2,"open\n', '2,"open\r\n', '2,"a""\n'])
def test_an_open_quote_on_the_last_line_is_refused_too(last):
    rows, dead = decoded(f"1,a\n{last}", "v INT, k STRING")
    assert [row[0] for row in rows] == [1]
    assert dead == {1: (last.strip(), "malformed: a quote is not closed")}


@pytest.mark.parametrize("neighbour", ["", "\nx"])
@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        ("v FLOAT", "1e39", []),  # out of range, not infinite
        ("v FLOAT", "Infinity", [(math.inf, 0)]),
        ("v DATE", "0000-01-01", []),
        ("v DATE", " 2026-01-31", [(date(2026, 1, 31), 0)]),
        ("k STRING, v STRING", '"x",', [("x", None, 0)]),  # also where the file ends
        ("k STRING, v INT", 'a,1\rb,"\nc",2', [('c"', 2, 1)]),  # a lone carriage return ends no line
    ],
)
def test_a_row_is_the_same_whatever_its_neighbours_are(schema, text, expected, neighbour):
    assert decoded(text + neighbour, schema)[0] == expected


def test_a_line_that_is_too_long_is_refused_unread():
    rows, dead = decoded("1,a\n2," + "b" * 9000 + "\n3,c\n", "v INT, k STRING", max_line=5000)
    assert [row[0] for row in rows] == [1, 3]
    ((raw, reason),) = dead.values()
    assert reason == "malformed: a line of 9,002 bytes, more than max_line=5000"
    assert raw.endswith("bbb... (4906 more)")


def test_a_parser_that_fails_loses_one_line(monkeypatch):
    """Whatever a parser raises: the line is found on which it fails."""

    def fails(text, type_):
        if text == "13":
            raise RuntimeError("a fault")
        return int(text)

    monkeypatch.setattr(csv_decode, "_parsed", fails)
    rows, dead = decoded("".join(f"{n}\n" for n in range(20)) + "\n20\n", "v INT")
    assert [row[0] for row in rows] == [n for n in range(21) if n != 13]
    assert dead == {13: ("13", "malformed: RuntimeError: a fault")}


def test_a_quoted_empty_text_is_no_null():
    for bad in ("", "x,y\n"):  # with and without a row that sends the block the slow way
        rows, _ = decoded('1,""\n2,\n' + bad, "v INT, k STRING")
        assert rows == [(1, "", 0), (2, None, 1)]


@pytest.mark.parametrize("more", ["", "x,y\n"])
def test_null_value(more):
    rows, _ = decoded("NA,NA\n1,\n" + more, "v INT, k STRING", nullValue="NA")
    assert rows == [(None, None, 0), (1, "", 1)]


def test_separator():
    rows, dead = decoded('1|a,b\n2|"c|d"\n3,4\n', "v INT, k STRING", sep="|")
    assert rows == [(1, "a,b", 0), (2, "c|d", 1)]
    assert list(dead) == [2]


@pytest.mark.parametrize("text", ["\n\n1,a\n\n2,b\n\n", "\r\n\r\n1,a\r\n\r\n2,b\r\n", "\n\n1,a\n\n2,b"])
def test_blank_lines_are_no_rows_but_count_as_lines(text):
    rows, dead = decoded(text, "v INT, k STRING")
    assert rows == [(1, "a", 2), (2, "b", 4)]
    assert dead == {}


def test_blank_lines_of_one_column():
    assert decoded("a\n\nb\n", "k STRING") == ([("a", 0), ("b", 2)], {})
    assert decoded("\n\n", "k STRING") == ([], {})
    assert decoded("", "k STRING") == ([], {})


def test_header_and_byte_order_mark():
    assert decoded("﻿v,k\n1,a", "v INT, k STRING", header=True) == ([(1, "a", 1)], {})
    for more in ("", "\nx,y"):
        assert decoded("﻿1,a" + more, "v INT, k STRING")[0] == [(1, "a", 0)]
    assert decoded("v,k", "v INT, k STRING", header=True) == ([], {})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0), ("1767225600", 1767225600), ("-1", -1), ("1.5", 1.5), ("2026-01-01", 1767225600),
        ("2026-01-01 00:00:01", 1767225601),
        ("2026-01-01T00:00:00.250", 1767225600.25), ("2026-01-01T00:00:00Z", 1767225600),
        ("2026-01-01T01:00:00+01:00", 1767225600),
    ],
)  # fmt: skip
@pytest.mark.parametrize("more", ["", "\nnever,0"])
def test_times(text, seconds, more):
    rows, _ = decoded(f"{text},7{more}", "time TIMESTAMP, v INT", timestamp="time")
    assert rows == [(datetime.fromtimestamp(seconds, UTC), 7, 0)]


@pytest.mark.parametrize(
    "text", ["99999999999999999999", "999999999999", "2026-13-01", "nan", "tomorrow", "0x10"]
)
@pytest.mark.parametrize("more", ["", "\n1,7"])
def test_no_times(text, more):
    rows, dead = decoded(f"{text},7{more}", "time TIMESTAMP, v INT", timestamp="time")
    assert [r[-1] for r in rows] == ([1] if more else [])
    assert dead[0][0] == f"{text},7"
    assert dead[0][1].startswith("malformed: column 'time': ")


def test_a_stamped_source_wants_times():
    rows, dead = decoded("1,a\n,b\n", "time TIMESTAMP, k STRING", timestamp="time")
    assert len(rows) == 1
    assert dead == {1: ('{"time": null, "k": "b"}', "timestamp is null")}
    assert len(decoded("1,a\n,b\n", "time TIMESTAMP, k STRING")[0]) == 2


def test_numbers_out_of_range():
    rows, dead = decoded("127\n128\n-129\n1e3\n1.0\n", "v TINYINT")
    assert rows == [(127, 0)]
    assert sorted(dead) == [1, 2, 3, 4]
    assert "range" in dead[1][1]


def test_bytes_that_are_no_text():
    rows, dead = decoded(b"1,\xff\n2,a\n", "v INT, k STRING")
    assert rows == [(2, "a", 1)]
    assert dead == {0: ("1,�", "malformed: not UTF-8")}
    for more in (b"", b"x,y\n"):
        rows, dead = decoded(b"1,/w==\n2,\n3,\xff\n4,/w\n" + more, "v INT, k BINARY")
        assert rows == [(1, b"\xff", 0), (2, None, 1)]
        assert dead[2] == ("3,�", "malformed: not UTF-8")
        assert dead[3] == ("4,/w", "malformed: column 'k': '/w' is no BINARY")


FIELDS = [
    "", "1", "-1", "+1", " 1", "1 ", "\t1", "0x1F", "0X1f", "007", "1_0", "1.5", ".5", "5.", "1e3",
    "1e400", "-0", "nan", "NaN", "inf", "-Infinity", "true",
    "TRUE", " false", "tRuE", "yes", '""', '"1"', '" 1"', '"a""b"', '"a"b', 'a"b', '"open', "2026-01-01",
    "2026-01-01T00:00:00Z", "2026-1-1", "2147483648", "128",
    "ä", "a\rb", "\x00", "99999999999", "-62135596801", "253402300800", "1970-01-01 00:00",
    "1970-01-01T00", "NULL", "1.7976931348623157e309", "1e-400", "٣",
]  # fmt: skip
TYPES = ["STRING", "INT", "TINYINT", "BIGINT", "DOUBLE", "FLOAT", "BOOLEAN", "TIMESTAMP", "BINARY"]


@pytest.mark.parametrize("type_", TYPES)
def test_the_quick_way_and_the_slow_way_agree(type_):
    """What the block parser takes, the line parser takes as the same.

    Otherwise a row's neighbours would matter.
    """
    schema = f"a {type_}, b STRING"
    reader = _Csv.of(Schema.parse(schema), ())
    for field in FIELDS:
        line = f"{field},z".encode()
        quick = reader.quick(line + b"\n", 0)
        slow = reader.slow([line], 0)
        if quick is not None:
            assert repr(slow.tuples.to_pylist()) == repr(quick.tuples.to_pylist()), (
                field,
                slow.refused.to_pylist(),
            )


def test_random_texts_agree_too():
    dice = random.Random(7)
    schema = "a STRING, b INT, c TIMESTAMP"
    reader = _Csv.of(Schema.parse(schema), ())
    taken = 0
    for _ in range(3000):
        line = ",".join(
            "".join(dice.choice('019a" \t\r-:.,') for _ in range(dice.randrange(4))) for _ in range(3)
        ).encode()
        quick = reader.quick(line + b"\n", 0)
        slow = reader.slow([line], 0)
        if quick is not None:
            taken += 1
            assert repr(slow.tuples.to_pylist()) == repr(quick.tuples.to_pylist()), line
    assert taken > 50


def test_json_rows():
    lines = [
        '{"v": 1, "k": "a", "more": {"x": 1}}', '{"v": 2}', "", "{", "[1]", '{"v": "x"}',
        '{"v": 3.0, "k": null}', '{"v": 3.5}', '{"v": 9999999999}', "null",
    ]  # fmt: skip
    rows, dead = decoded("\n".join(lines), "v INT, k STRING", form=json_lines)
    assert rows == [(1, "a", 0), (2, None, 1), (3, None, 6)]
    assert sorted(dead) == [3, 4, 5, 7, 8, 9]
    assert dead[4] == ("[1]", "malformed: not a JSON object")
    assert dead[5] == ('{"v": "x"}', "malformed: column 'v': 'x' (str) is no INT")


def test_json_whole_numbers_that_lost_a_digit_are_refused():
    lines = [
        '{"v": 9007199254740993}',
        '{"v": 9007199254740991.0}',
        '{"v": 9007199254740993.0}',
        '{"v": 1e300}',
    ]
    rows, dead = decoded("\n".join(lines), "v BIGINT", form=json_lines)
    assert rows == [(9007199254740993, 0), (9007199254740991, 1)]
    assert sorted(dead) == [2, 3]


def test_json_bytes_that_are_no_text():
    rows, dead = decoded(b'{"v": 1, "k": "\xff"}\n{"v": 2}', "v INT, k STRING", form=json_lines)
    assert rows == [(2, None, 1)]
    assert dead[0][1] == "malformed: not UTF-8"
    _, dead = decoded(r'{"v": 1, "k": "\ud800"}', "v INT, k STRING", form=json_lines)
    assert dead[0][1] == "malformed: not UTF-8"


SLOW = ["", "x,y\n"]  # without and with a row that sends the block the slow way


@pytest.mark.parametrize("bad", SLOW)
def test_times_by_a_pattern(bad):
    text = "31/01/2024 10:00:00,1\n,2\n31/01/2024 10:00:00,3\n" + bad
    rows, dead = decoded(text, "time TIMESTAMP, v INT", timestampFormat="dd/MM/yyyy HH:mm:ss")
    ten = datetime(2024, 1, 31, 10, tzinfo=UTC)
    assert rows == [(ten, 1, 0), (None, 2, 1), (ten, 3, 2)]
    assert dead == (
        {3: ("x,y", "malformed: column 'time': 'x' does not fit 'dd/MM/yyyy HH:mm:ss'")} if bad else {}
    )


def test_a_date_that_never_was_is_a_dead_letter():
    rows, dead = decoded("30/02/2024\n29/02/2024\n", "time TIMESTAMP", timestampFormat="dd/MM/yyyy")
    assert rows == [(datetime(2024, 2, 29, tzinfo=UTC), 1)]
    assert dead[0][1] == "malformed: column 'time': '30/02/2024' is no time: day is out of range for month"


def test_times_of_json_by_a_pattern():
    rows, dead = decoded(
        '{"t": "1.2.2024 3:04 PM"}\n{"t": "2024-02-01"}\n{"t": 5}\n',
        "t TIMESTAMP",
        form=json_lines,
        timestampFormat="d.M.yyyy h:mm a",
    )
    assert rows == [
        (datetime(2024, 2, 1, 15, 4, tzinfo=UTC), 0),
        (datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC), 2),
    ]
    assert list(dead) == [1]


@pytest.mark.parametrize("bad", SLOW)
def test_another_quote_and_none(bad):
    rows, _ = decoded("1,'a,''b'\n2,\"c\n" + bad, "v INT, k STRING", quote="'")
    assert rows == [(1, "a,'b", 0), (2, '"c', 1)]
    rows, _ = decoded('1,"c\n' + bad, "v INT, k STRING", quote="")
    assert rows == [(1, '"c', 0)]


@pytest.mark.parametrize("bad", SLOW)
def test_comments_are_no_rows_but_count_as_lines(bad):
    rows, _ = decoded("# one, two\n1,a\n#\n2,# b\n" + bad, "v INT, k STRING", comment="#")
    assert rows == [(1, "a", 1), (2, "# b", 3)]


def test_a_parquet_time_that_no_column_can_hold_is_refused():
    far = 18_446_744_073_770_167  # milliseconds, which 64 bits of microseconds would take for 1970-01-01
    times = pa.table({"t": pa.array([1500, far], pa.int64()).view(pa.timestamp("ms"))})
    decoded = decode_table(times, Schema.parse("t TIMESTAMP"), 0)
    assert decoded.tuples.column("t").cast(pa.int64()).to_pylist() == [1_500_000]
    assert decoded.refused.column("offset").to_pylist() == [1]
