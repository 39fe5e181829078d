"""Mangled files: nothing crashes, good rows come through exactly, and every other row is accounted for."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

import penstock as ps
from fuzz.bad_files import CSV_SCHEMA, MAX_LINE, SCHEMA, BadFile, Row, csv_file, json_file, parquet_file
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


@pytest.mark.parametrize("name", FORMATS)
def test_good_rows_come_through_and_the_rest_is_accounted_for(name, tmp_path, record_property):
    form, make = FORMATS[name]
    wanted, rows, files = count(int(__import__("os").environ.get("FZ", "4000")), soak=3_500_000), 0, 0
    while rows < wanted:
        dice = random.Random(files)
        case = make(dice, dice.choice([0, 1, 2, ROWS, ROWS, 5000 if wanted > 10**5 else ROWS]))
        rows += max(1, check(case, form, tmp_path / str(files)))
        files += 1
    record_property(f"fuzzed_rows_{name}", rows)
    record_property(f"fuzzed_files_{name}", files)
