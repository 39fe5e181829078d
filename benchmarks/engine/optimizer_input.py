"""Input for the networks of the optimizer's benchmark: CSV files, and networks that read and write there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

import penstock as ps
from penstock.model.boxes import Output, Source
from penstock.model.types import Schema
from penstock.store.points.point import PointReader

FILES = 4
START = np.datetime64("2026-01-01T00:00:00", "us")
STEP = 20_000  # microseconds between two tuples: joins of ten seconds meet few partners
WORDS = {"region": ("coast", *(f"inland {n}" for n in range(9))), "item": ("own", "a", "b", "c", "d")}


def column(name: str, kind: str, rows: int, dice: np.random.Generator) -> pa.Array:
    """Whole numbers below a thousand, words of a few, and fractions."""
    if kind == "STRING":
        return pa.array(dice.choice(WORDS.get(name, ("plain", "words", "here")), rows))
    if kind == "DOUBLE":
        return pa.array(np.round(dice.random(rows) * 100, 2))
    return pa.array(dice.integers(0, 100 if name == "spd" else 1_000, rows))


def write_source(folder: Path, schema: Schema, rows: int, seed: int, files: int = FILES) -> None:
    """The tuples of one source in order of time, in a few files."""
    folder.mkdir(parents=True, exist_ok=True)
    dice = np.random.default_rng(seed)
    each = rows // files
    for number in range(files):
        times = START + (np.arange(each) + number * each) * np.timedelta64(STEP, "us")
        columns = {
            c.name: pa.array(times) if c.type == "TIMESTAMP" else column(c.name, c.type, each, dice)
            for c in schema
        }
        options = pc.WriteOptions(include_header=False, quoting_style="none")
        pc.write_csv(pa.table(columns), folder / f"{number:05}.csv", options)


def write_input(network: ps.Network, root: Path, rows: int, seed: int) -> int:
    """The input of all sources; returns the tuples in all."""
    for number, (name, source) in enumerate(network.sources.items()):
        write_source(root / "in" / name, source.schema, rows, seed + number)
    return rows * len(network.sources)


def placed(network: ps.Network, inputs: Path, out: Path) -> ps.Network:
    """The network with its files in these folders."""

    def moved(node: Any) -> Any:
        if isinstance(node, Source):
            file_format: Any = node.format
            options = (*file_format.options, ("settle", "0 seconds"))  # the files are whole
            path = str(inputs / "in" / node.name)
            return replace(node, format=replace(file_format, path=path, options=options))
        if isinstance(node, Output):
            sink: Any = node.to
            return replace(node, to=replace(sink, path=str(out / node.name)))
        return node

    return ps.Network.of(network.name, [moved(node) for node in network.nodes.values()])


def answers(network: ps.Network, out: Path, checkpoint: Path) -> dict[str, list[tuple[object, ...]]]:
    """The rows of each output and connection point, sorted: trains may cut them anywhere."""
    tables = {name: pq.read_table(out / name) for name in network.outputs if (out / name).exists()}
    for name in network.points:
        shown = list(network.types[name].schema.names)
        tables[name] = PointReader(checkpoint, name).read().select(shown)
    return {
        name: sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)
        for name, table in tables.items()
    }
