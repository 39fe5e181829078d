"""What a sink of files writes, a source of the same format reads as the same values."""

from __future__ import annotations

import json
import math
import random
import struct
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import penstock as ps
from penstock.connectors.contract import Target
from penstock.connectors.files.sink import FilesSink, publish
from penstock.connectors.loading import input_for
from penstock.model.boxes import Source
from penstock.model.types import Schema, arrow_schema
from soak import count

SCHEMA = Schema.parse(
    "b BOOLEAN, t TINYINT, s SMALLINT, i INT, l BIGINT, f FLOAT, d DOUBLE, k STRING, v BINARY, "
    "day DATE, at TIMESTAMP"
)
FORMS = {"csv": ps.csv, "json": ps.json, "parquet": ps.parquet}
_TEXT = "aZ09 ,;'\"\\/\t%#é日\u2028{}[]:\x01"


def number(dice):
    special = [0.0, -0.0, math.nan, math.inf, -math.inf, 1e-310, 1.7976931348623157e308, 0.1, 1 / 3]
    return dice.choice(
        [*special, dice.uniform(-1e6, 1e6), dice.gauss(0, 1) * 10.0 ** dice.randrange(-30, 30)]
    )


def single(value):
    """The nearest value of four bytes."""
    return (
        struct.unpack("<f", struct.pack("<f", value))[0] if abs(value) < 3e38 else math.copysign(3e38, value)
    )


def row(dice):
    values = {
        "b": dice.random() < 0.5,
        "t": dice.randrange(-128, 128),
        "s": dice.randrange(-(1 << 15), 1 << 15),
        "i": dice.randrange(-(1 << 31), 1 << 31),
        "l": dice.randrange(-(1 << 63), 1 << 63),
        "f": number(dice),
        "d": number(dice),
        "k": "".join(dice.choice(_TEXT) for _ in range(dice.randrange(6))),
        "v": dice.randbytes(dice.randrange(6)),
        "day": date(1970, 1, 1) + timedelta(days=dice.randrange(-100_000, 100_000)),
        "at": datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=dice.randrange(-(10**15), 10**15)),
    }
    values["f"] = values["f"] if not math.isfinite(values["f"]) else single(values["f"])
    return {name: None if dice.random() < 0.1 else value for name, value in values.items()}


@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_what_a_sink_writes_reads_back_equal(tmp_path, form, header, record_property):
    dice = random.Random(f"{form} {header}")
    rows = [row(dice) for _ in range(count(400, soak=100_000))]
    if header and form != "csv":
        pytest.skip("only CSV has headers")
    options = {"header": True} if header else {}
    table = pa.Table.from_pylist(rows, schema=arrow_schema(SCHEMA, hidden=False))
    sink = FilesSink(FORMS[form](tmp_path / "out", **options), Target("out", SCHEMA, "run"))
    for train in range(4):
        publish(sink.write(table.slice(train * 100, 100 if train < 3 else None), train, 0).moves)
    src = Source(name="s", where="", format=FORMS[form](tmp_path / "out", SCHEMA, **options), schema=SCHEMA)
    read = read_all(src, tmp_path / "p")
    assert list(map(repr, read)) == list(map(repr, table.to_pylist()))
    record_property(f"values_read_back_{form}", len(rows) * len(SCHEMA.names))


def read_all(src, place):
    taken_from, position, rows = input_for(src, place), None, []
    while (taken := taken_from.take(position, 10_000)).slices:
        position = taken.position
        for piece in taken.slices:
            decoded = piece.tuples(src)
            assert decoded.refused.to_pylist() == []
            rows += decoded.tuples.drop_columns(["_seq"]).to_pylist()
    return rows


def test_json_is_valid(tmp_path):
    schema = Schema.parse("d DOUBLE, v BINARY")
    table = pa.Table.from_pylist(
        [{"d": math.nan, "v": b"\x00\xff"}, {"d": -math.inf, "v": b""}],
        schema=arrow_schema(schema, hidden=False),
    )
    sink = FilesSink(ps.json(tmp_path / "out"), Target("out", schema, "run"))
    [(staged, _)] = sink.write(table, 0, 0).moves
    lines = Path(staged).read_text().splitlines()
    assert lines == ['{"d": "NaN", "v": "AP8="}', '{"d": "-Infinity", "v": ""}']

    def no_constant(name):
        raise AssertionError(name)

    assert [json.loads(line, parse_constant=no_constant) for line in lines]
