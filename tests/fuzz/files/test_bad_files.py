"""Mangled files: nothing crashes, good rows come through exactly, and every other row is accounted for."""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import penstock as ps
from fuzz.files.bad_files import CSV_SCHEMA, MAX_LINE, SCHEMA, BadFile, Row, csv_file, json_file, parquet_file
from penstock.connectors.contract import Slice
from penstock.connectors.loading import input_for
from penstock.engine.spark.entry.lateness import in_time
from penstock.engine.spark.entry.stamping import stamped
from penstock.model.boxes import Source
from penstock.model.formats.files import Files
from soak import count

FORMATS: dict[str, tuple[Callable[[str], Files], Callable[[random.Random, int], BadFile]]] = {
    "csv": (lambda path: ps.csv(path, CSV_SCHEMA, max_line=MAX_LINE), csv_file),
    "json": (lambda path: ps.json(path, SCHEMA, max_line=MAX_LINE), json_file),
    "parquet": (lambda path: ps.parquet(path, SCHEMA), parquet_file),
}
ROWS = 300


def read_all(source: Source, directory: Path) -> tuple[dict[int, Row], int, int]:
    """Tuples by their line, how many were offered, and how many were refused."""
    taken_from, position = input_for(source, directory), None
    tuples: dict[int, Row] = {}
    offered = refused = 0
    while True:
        taken = taken_from.take(position, random.Random(1).choice([50, 1000]))
        if not taken.slices and not taken.more and not taken.refused:
            return tuples, offered, refused
        position = taken.position
        for letter in taken.refused:
            offered, refused = offered + letter.get("tuples", 1), refused + letter.get("tuples", 1)
        for piece in taken.slices:
            assert isinstance(piece, Slice)
            decoded, here = piece.counted_tuples(source)
            admitted = in_time(source, stamped(source, decoded), -(2**63) + 1)
            letters = admitted.dead.to_pylist()
            assert all(letter["reason"] and len(letter["raw"]) < 5000 for letter in letters)
            offered, refused = offered + here, refused + sum(letter["tuples"] for letter in letters)
            for row in admitted.tuples.to_pylist():
                seq = row.pop("_seq")
                row.pop("_ts")
                location = piece.location(seq)
                assert location is not None
                tuples[location.line - 1] = tuple(row.values())


def check(case: BadFile, form: Callable[[str], Files], folder: Path) -> int:
    """One file through the connector; returns how many rows it offered."""
    folder.mkdir()
    path = folder / case.name
    path.write_bytes(case.data)
    os.utime(path, (1, 1))  # settled long ago
    files = form(str(path))
    source = Source(name="s", where="here", format=files, schema=files.schema, timestamp="time")
    tuples, offered, refused = read_all(source, folder / "memory")
    assert offered == len(tuples) + refused
    assert case.rows is None or offered == case.rows
    assert {line: tuples.get(line) for line in case.good} == case.good
    return offered


def check_many(name: str, folder: Path, wanted: int, seed: int = 0) -> tuple[int, int]:
    """Files of one format until there are enough rows; returns how many files and rows there were."""
    form, make = FORMATS[name]
    rows = files = 0
    while rows < wanted:
        dice = random.Random(f"{seed} {files}")
        case = make(dice, dice.choice([0, 1, 2, ROWS, ROWS, 10 * ROWS if wanted > 10**5 else ROWS]))
        rows += max(1, check(case, form, folder / str(files)))
        shutil.rmtree(folder / str(files))
        files += 1
    return files, rows


@pytest.mark.parametrize("name", FORMATS)
def test_good_rows_come_through_and_the_rest_is_accounted_for(name, tmp_path):
    check_many(name, tmp_path, 4_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_the_same_with_many(name, tmp_path, record_property):
    files, rows = check_many(name, tmp_path, count(40_000, soak=3_400_000), seed=1)
    record_property(f"fuzzed_rows_{name}", rows)
    record_property(f"fuzzed_files_{name}", files)


@pytest.mark.slow
def test_a_run_over_mangled_files(spark, tmp_path, record_property):
    """One source for each format. None has a timestamp, so no row is late."""
    net, cases = ps.Network("mangled"), {}
    for name, (form, make) in FORMATS.items():
        cases[name] = [make(random.Random(f"run {n}"), ROWS) for n in range(count(25, soak=200))]
        (tmp_path / name).mkdir()
        for number, case in enumerate(cases[name]):
            path = tmp_path / name / f"{number:04d}-{case.name}"
            path.write_bytes(case.data)
            os.utime(path, (number + 1, number + 1))
        source = net.source(name, form(str(tmp_path / name)))
        source.filter("v IS NOT NULL OR v IS NULL").output(
            f"out_{name}", to=ps.parquet(f"{tmp_path}/out_{name}")
        )
    with ps.Runtime(net, spark, tmp_path / "ck", once=True, close=True, partitions=2) as running:
        running.wait(600)
        accounts = running.status().accounts
    for name, files in cases.items():
        account = accounts[name]
        rows = pq.read_table(tmp_path / f"out_{name}").to_pylist()
        left = Counter(tuple(row.values()) for row in rows)
        good = Counter(row for case in files for row in case.good.values())
        assert not good - left, f"{name}: {list((good - left).elements())[:3]}"
        assert len(rows) == account.let_in
        assert account.offered >= sum(case.rows or 0 for case in files)
        record_property("fuzzed_rows_on_spark", account.offered)
