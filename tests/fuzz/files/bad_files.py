"""Files that somebody mangled: CSV, JSON and Parquet, with the good rows that must come through.

A case is a file and what is known about it: the rows that are certainly good, by their line, and how many
rows there are in all. What became of the others only has to be said.
"""

from __future__ import annotations

import base64
import io
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = "time TIMESTAMP, k STRING, v INT, x DOUBLE, b BINARY, d DATE"
CSV_SCHEMA = "time TIMESTAMP, k STRING, v INT, x DOUBLE, d DATE"
MAX_LINE = 3000
Row = tuple[object, ...]
_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
_TEXTS = ["", "a", "x, y", 'say "hi"', "ä€😀", " ", "NULL", "0x1F", "\t", "#", "-", "true"]


@dataclass
class BadFile:
    """`good`: rows by their line from 0. `rows`: how many lines or rows are offered, None if unknown."""

    name: str
    data: bytes
    good: dict[int, Row] = field(default_factory=dict)
    rows: int | None = None


def random_row(dice: random.Random) -> Row:
    """A row without oddities but for its texts."""
    time = _EPOCH + timedelta(microseconds=dice.randrange(10**13))
    day = (_EPOCH + timedelta(days=dice.randrange(-3000, 3000))).date()
    number = dice.choice([0, 1, -1, 2**31 - 1, -(2**31), dice.randrange(10**6)])
    return (
        time,
        dice.choice(_TEXTS) or None,
        number,
        dice.choice([0.5, -1e300, dice.random()]),
        dice.randbytes(dice.randrange(1, 5)),
        day,
    )


# -- CSV


def csv_line(row: Row) -> bytes:
    time, k, v, x, _, d = row
    assert isinstance(time, datetime)
    quoted = "" if k is None else '"' + str(k).replace('"', '""') + '"'
    text = f"{time.strftime('%Y-%m-%d %H:%M:%S.%f')},{quoted},{v},{x!r},{d}"
    return text.encode()


def _flip(line: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(line))
    return line[:at] + bytes([dice.randrange(256)]) + line[at + 1 :]


_MANGLE: list[Callable[[bytes, random.Random], bytes]] = [
    _flip,
    lambda line, dice: line[: dice.randrange(len(line))],
    lambda line, dice: line + line,
    lambda line, dice: line.replace(b",", b"", dice.randrange(1, 4)),
    lambda line, dice: dice.randbytes(dice.randrange(1, 60)),
    lambda line, dice: b"\x00" * dice.randrange(1, 9),
    lambda line, dice: b"\xff\xfe" + line.decode("utf-8", "replace").encode("utf-16-le"),
    lambda line, dice: line + b"A" * dice.choice([MAX_LINE, 2 * MAX_LINE, 50]),
    lambda line, dice: b'"' + line,
    lambda line, dice: line + b'"',
    lambda line, dice: line.replace(b'"', b'""', 1),
    lambda line, dice: b'"' * dice.randrange(1, 9),
    lambda line, dice: b"," * dice.randrange(0, 9),
    lambda line, dice: line.replace(b"2026", dice.choice([b"0000", b"-001", b"10000", b"99999", b"0x1"])),
    lambda line, dice: line.replace(b".", dice.choice([b",", b"..", b"e999", b"nan", b"-inf"]), 1),
    lambda line, dice: b"[" * dice.choice([5, 1000]),
    lambda line, dice: b'{"a":' * dice.choice([5, 500]),
]  # fmt: skip


def _mangled(line: bytes, dice: random.Random) -> bytes:
    for _ in range(dice.choice([1, 1, 1, 2, 3])):
        line = dice.choice(_MANGLE)(line, dice) or b","
    return line.replace(b"\n", b" ")


def _text_file(
    name: str,
    write: Callable[[Row], bytes],
    mangle: Callable[[bytes, random.Random], bytes],
    dice: random.Random,
    rows: int,
) -> BadFile:
    """Lines of which some are mangled; empty ones between them; perhaps a byte order mark and CRLF."""
    share = dice.choice([0.0, 0.02, 0.3, 1.0])
    lines, good = [], {}
    for number in range(rows):
        row = random_row(dice)
        line = write(row)
        if dice.random() < share:
            line = b"" if dice.random() < 0.1 else mangle(line, dice)
        else:
            good[number] = row
        lines.append(line)
    end = dice.choice([b"\n", b"\n", b"\r\n"])
    data = end.join(lines) + dice.choice([end, b""])
    whole = data.split(b"\n")
    if whole and not whole[-1]:
        whole.pop()
    offered = sum(1 for line in whole if line not in (b"", b"\r"))
    return BadFile(name, dice.choice([b"", b"", b"\xef\xbb\xbf"]) + data, good, offered)


def csv_file(dice: random.Random, rows: int) -> BadFile:
    case = _text_file("bad.csv", csv_line, _mangled, dice, rows)
    case.good = {line: (*row[:4], row[5]) for line, row in case.good.items()}
    return case


# -- JSON


def json_line(row: Row) -> bytes:
    time, k, v, x, b, d = row
    assert isinstance(time, datetime)
    assert isinstance(b, bytes)
    values = {"time": time.isoformat(), "k": k, "v": v, "x": x, "d": str(d)}
    return json.dumps({**values, "b": {"base64": base64.b64encode(b).decode()}}).encode()


_WRONG = [
    None, True, 5, -1, 2**70, 1e400, 0.5, "", "text", "\ud800", [], [1], {}, {"base64": 5}, {"base64": "?"},
    {"base64": None}, {"base64": ["x"]}, "0000-01-01", "99999-01-01", 10**18, -(10**18), {"a": {"b": []}},
]  # fmt: skip


def _mangled_json(line: bytes, dice: random.Random) -> bytes:
    if dice.random() < 0.4:
        return _mangled(line, dice)
    values = json.loads(line)
    for name in dice.sample(sorted(values), dice.randrange(1, 4)):
        if dice.random() < 0.2:
            del values[name]
        else:
            values[name] = dice.choice(_WRONG)
    return json.dumps(values).encode() if dice.random() < 0.9 else json.dumps(list(values.values())).encode()


def json_file(dice: random.Random, rows: int) -> BadFile:
    return _text_file("bad.json", json_line, _mangled_json, dice, rows)


# -- Parquet


def parquet_file(dice: random.Random, rows: int) -> BadFile:
    """Good rows in odd types, columns that do not fit, and bytes that somebody flipped."""
    table = [random_row(dice) for _ in range(rows)]
    unit = dice.choice(["ms", "us", "us", "ns"])
    columns = _parquet_columns(table, unit)
    good = {i: _cut(row, unit) for i, row in enumerate(table)}
    kind = dice.choice(["good", "good", "times", "dates", "twice", "types", "flip", "cut", "footer"])
    if kind == "times" and unit != "ns" and rows:
        _out_of_range(columns, good, "time", [2**62, -(2**62), 2**60, -62_135_596_800_000_001], dice)
    if kind == "dates" and rows:
        _out_of_range(columns, good, "d", [2**31 - 1, -(2**31), 2_932_897, -719_163], dice)
    if kind == "types":
        columns[1] = ("k", pa.array(range(rows), pa.uint64()))
    if kind == "twice":
        columns.append(columns[2])
    if kind in ("types", "twice", "flip", "cut", "footer"):
        good = {}
    data = _written(columns, dice, rows)
    return BadFile(
        "bad.parquet", _damaged(data, kind, dice), good, None if kind in ("cut", "footer") else rows
    )


def _parquet_columns(rows: list[Row], unit: str) -> list[tuple[str, pa.Array]]:
    types = [pa.timestamp(unit, "UTC"), pa.string(), pa.int32(), pa.float64(), pa.binary(), pa.date32()]
    names = ["time", "k", "v", "x", "b", "d"]
    return [
        (name, pa.array([row[i] for row in rows], pa.timestamp("us", "UTC")).cast(type_, safe=False))
        if name == "time"
        else (name, pa.array([row[i] for row in rows], type_))
        for i, (name, type_) in enumerate(zip(names, types, strict=True))
    ]


def _cut(row: Row, unit: str) -> Row:
    """The row as the file holds it: milliseconds have fewer digits."""
    time = row[0]
    assert isinstance(time, datetime)
    return (time.replace(microsecond=time.microsecond // 1000 * 1000), *row[1:]) if unit == "ms" else row


def _out_of_range(
    columns: list[tuple[str, pa.Array]],
    good: dict[int, Row],
    name: str,
    numbers: list[int],
    dice: random.Random,
) -> None:
    at = [column for column, _ in columns].index(name)
    array = columns[at][1]
    plain = array.cast(pa.int64() if name == "time" else pa.int32()).to_numpy(zero_copy_only=False).copy()
    for row in dice.sample(range(len(array)), min(len(array), dice.choice([1, 3]))):
        plain[row] = dice.choice(numbers)
        good.pop(row, None)
    columns[at] = (name, pa.array(plain, pa.int64() if name == "time" else pa.int32()).cast(array.type))


def _written(columns: list[tuple[str, pa.Array]], dice: random.Random, rows: int) -> bytes:
    table = pa.Table.from_arrays([array for _, array in columns], names=[name for name, _ in columns])
    out = io.BytesIO()
    pq.write_table(
        table,
        out,
        row_group_size=max(1, rows // dice.choice([1, 3, 7])),
        version="2.6",
        compression=dice.choice(["none", "snappy", "zstd", "gzip"]),
        write_statistics=dice.random() < 0.7,
        use_dictionary=dice.random() < 0.5,
        write_page_checksum=dice.random() < 0.3,
    )
    return out.getvalue()


def _damaged(data: bytes, kind: str, dice: random.Random) -> bytes:
    length = int.from_bytes(data[-8:-4], "little")
    begin, end = (4, len(data) - 8 - length) if kind == "flip" else (len(data) - 8 - length, len(data))
    if kind == "cut":
        return data[: dice.randrange(len(data))]
    if kind not in ("flip", "footer") or end <= begin:
        return data
    damaged = np.frombuffer(data, np.uint8).copy()
    for _ in range(dice.choice([1, 3, 30])):
        damaged[dice.randrange(begin, end)] = dice.randrange(256)
    return damaged.tobytes()
