"""`penstock dead-letters`: by reason, with file and line, within its limit, and safe on a terminal."""

from __future__ import annotations

import csv
import io
import json

import pyarrow as pa
import pytest

from cli.test_look import call
from penstock.cli.dead_letters import lateness_advice
from penstock.store.dead_letters import DeadLetters, reason_shape

LATE = "late: timestamp {} us is behind the horizon {} us of earlier trains"


@pytest.fixture
def checkpoint(tmp_path):
    """A thousand letters that differ in their values only, some late ones, and one that is hostile."""
    letters = [
        {"raw": f"{n},x{n}", "reason": f"malformed: 'x{n}' is no INT", "file": "in/a.csv", "line": n + 1}
        for n in range(1000)
    ]
    letters += [{"raw": "5", "reason": LATE.format(n * 1_000_000, 60_000_000)} for n in range(10)]
    letters += [{"raw": "\x1b]0;owned\x07\x1b[2J", "reason": "malformed: '\x1b[31m' is no INT at all"}]
    rows = [{"box": "cars", "source": "cars", "offset": 1, **letter} for letter in letters]
    DeadLetters(tmp_path).append(
        "out",
        0,
        pa.Table.from_pylist(
            rows,
            schema=pa.schema(
                [
                    ("raw", pa.string()),
                    ("reason", pa.string()),
                    ("file", pa.string()),
                    ("line", pa.int64()),
                    ("box", pa.string()),
                    ("source", pa.string()),
                    ("offset", pa.int64()),
                ]
            ),
        ),
    )
    return tmp_path


def test_by_reason_with_file_and_line(checkpoint):
    result = call("dead-letters", checkpoint)
    assert result.exit_code == 0
    assert "1,000  cars: malformed: '…' is no INT" in result.stdout
    assert "in/a.csv:1  0,x0" in result.stdout
    assert "1970-01-01 00:00:00, 60 s behind 1970-01-01 00:01:00" in result.stdout
    assert len(result.stdout.splitlines()) == 3 + 3 + 3 + 1


def test_a_limit_is_not_negative(checkpoint):
    assert call("dead-letters", checkpoint, "--limit", -3).exit_code == 2


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_the_limit_limits(checkpoint, limit):
    result = call("dead-letters", checkpoint, "--limit", limit)
    assert len(result.stdout.splitlines()) <= limit * (1 + limit)


def test_nothing_reaches_the_terminal(checkpoint):
    result = call("dead-letters", checkpoint, "--limit", 0)
    assert "\\x1b]0;owned\\x07\\x1b[2J" in result.stdout
    assert not set(result.stdout) & {"\x1b", "\x07"}


def test_json_and_csv(checkpoint):
    lines = call("dead-letters", checkpoint, "--format", "json", "--limit", 7).stdout.splitlines()
    assert [json.loads(line)["line"] for line in lines] == [1, 2, 3, 4, 5, 6, 7]
    rows = list(
        csv.DictReader(io.StringIO(call("dead-letters", checkpoint, "--format", "csv", "--limit", 0).stdout))
    )
    assert len(rows) == 1011
    assert (rows[3]["file"], rows[3]["line"], rows[3]["raw"]) == ("in/a.csv", "4", "3,x3")


def test_a_wrong_format_and_a_wrong_folder(checkpoint):
    assert call("dead-letters", checkpoint, "--format", "xml").exit_code == 2
    result = call("dead-letters", checkpoint / "missing")
    assert result.exit_code == 2
    assert "is no checkpoint" in result.stderr


def test_which_lateness_would_have_kept_them(checkpoint):
    (line,) = lateness_advice(DeadLetters(checkpoint), [("cars", 10, 500)])
    assert line == "cars: 10 tuples (2.0 %) were late; a lateness 60 seconds longer would have kept all"
    assert lateness_advice(DeadLetters(checkpoint), [("cars", 10, 1000)]) == []


@pytest.mark.parametrize(
    ("reason", "shape"),
    [
        ("malformed: 'it''s 5' is no INT", "malformed: '…''…' is no INT"),
        ("late: timestamp -5 us", "late: timestamp # us"),
        ("2026-01-01 10:00:00.5 is out of range", "# # is out of range"),
        ("function f2 failed: division by zero", "function f2 failed: division by zero"),
    ],
)
def test_shapes(reason, shape):
    assert reason_shape(reason) == shape
