"""Any name that a file system allows is that one file: in every format, as a source and as a sink."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from fuzz.files.odd_names import odd_names
from penstock.connectors.contract import Slice, Target
from penstock.connectors.files.sink import FilesSink, publish
from penstock.connectors.loading import input_for
from penstock.model.boxes import Source
from penstock.model.types import Schema
from soak import count

SCHEMA = "time TIMESTAMP, v INT"
FORMS = {"csv": ps.csv, "json": ps.json, "parquet": ps.parquet}


def write(form, path, numbers):
    stamps = pa.array([0] * len(numbers), pa.timestamp("us", tz="UTC"))
    with path.open("wb") as file:
        if form == "parquet":
            pq.write_table(pa.table({"time": stamps, "v": pa.array(numbers, pa.int32())}), file)
        else:
            line = "0,{}\n" if form == "csv" else '{{"time": 0, "v": {}}}\n'
            file.write("".join(line.format(n) for n in numbers).encode())


def folder_of(base, names, form):
    """A folder of that name with files of these names, each with its own number."""
    base.mkdir()
    for number, name in enumerate(names):
        write(form, base / name, [2 * number, 2 * number + 1])
    return base


def source(format_):
    return Source(name="s", where="", format=format_, schema=Schema.parse(SCHEMA), timestamp="time")


def numbers_of(src, place, limit=7):
    """All numbers that the source brings, through tickets as JSON."""
    taken_from, position, numbers = input_for(src, place), None, []
    while True:
        taken = taken_from.take(position, limit)
        assert not taken.refused
        if not taken.slices and not taken.more:
            return sorted(numbers)
        position = taken.position
        for piece in [Slice.of(json.loads(json.dumps(s.plain()))) for s in taken.slices]:
            decoded = piece.tuples(src)
            assert not decoded.refused.num_rows
            numbers += decoded.tuples.column("v").to_pylist()


@pytest.mark.parametrize("form", FORMS)
def test_odd_names_in_a_folder_of_an_odd_name(tmp_path, form, record_property):
    dice = random.Random(f"names {form}")
    names = odd_names(count(60, soak=3000), dice)
    for turn, folder in enumerate(odd_names(count(4, soak=100), dice)):
        here = tmp_path / str(turn)
        here.mkdir()
        base = folder_of(here / folder, names, form)
        numbers = numbers_of(source(FORMS[form](base, SCHEMA)), tmp_path / f"p{turn}")
        assert numbers == list(range(2 * len(names))), folder
    record_property(f"odd_names_{form}", len(names))


@pytest.mark.parametrize("form", FORMS)
def test_the_path_of_one_file_is_that_file(tmp_path, form):
    """Beside files that the name, read as a pattern, would match."""
    names = [name for name in odd_names(60, random.Random(3)) if not name.startswith("*") and name != "?"]
    base = folder_of(tmp_path / "in", [*names, "a1", "a", "b"], form)
    for number, name in enumerate(names):
        src = source(FORMS[form](base / name, SCHEMA))
        if "[*]" not in name and "?" not in name:
            assert numbers_of(src, tmp_path / f"p{number}") == [2 * number, 2 * number + 1], name


@pytest.mark.parametrize("form", FORMS)
def test_an_output_in_a_folder_of_an_odd_name_reads_back(tmp_path, form):
    rows = pa.table(
        {"time": pa.array([0, 0], pa.timestamp("us", tz="UTC")), "v": pa.array([1, 2], pa.int32())}
    )
    for number, name in enumerate(odd_names(60, random.Random(4))):
        path = tmp_path / f"{number}" / name
        sink = FilesSink(FORMS[form](path), Target("out", Schema.parse(SCHEMA), "run"))
        publish(sink.write(rows, 0, 0).moves)
        assert numbers_of(source(FORMS[form](path, SCHEMA)), tmp_path / f"p{number}") == [1, 2], name


@pytest.mark.slow
def test_odd_names_on_spark(spark, tmp_path):
    """Spark itself reads files with plain names; tasks read the others; both in one run."""
    names = [*odd_names(count(30, soak=300), random.Random(5)), "plain.parquet", "plain-2.parquet"]
    odd = tmp_path / "in [1] {a,b}"
    folder_of(odd, names, "parquet")
    plain = folder_of(tmp_path / "plain", ["1.parquet", "a:b", "2.parquet", "a[1]", "a1"], "parquet")
    text = folder_of(tmp_path / "t*?%41:\\", names, "csv")
    net = ps.Network("names")
    outs = {}
    for name, format_ in {
        "odd": ps.parquet(odd, SCHEMA),
        "plain": ps.parquet(plain, SCHEMA),
        "text": ps.csv(text, SCHEMA),
    }.items():
        outs[name] = tmp_path / f"out {name} [a] {{b}}:"
        kept = net.source(name, format_, timestamp="time").filter("v >= 0").connection_point(f"kept_{name}")
        kept.filter("v >= 0").output(f"{name}_out", to=ps.parquet(outs[name]))
    with ps.Runtime(net, spark, tmp_path / "check [1] {a,b}: c", once=True) as running:
        running.wait(timeout=120)
    assert running.checkpoint.stat().st_mode & 0o777 == 0o700
    for name, expected in {"odd": len(names), "plain": 5, "text": len(names)}.items():
        assert numbers_of(source(ps.parquet(outs[name], SCHEMA)), tmp_path / f"p {name}") == list(
            range(2 * expected)
        ), name
