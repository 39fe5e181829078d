"""Outputs as files. They are staged beside their final place and moved there when the train is committed.

A file's final name identifies output, run, train and partition. A replayed train writes the same files.
Another checkpoint, or a query attached anew, would write others beside them, so it is refused unless the sink
says `append`. Staged names are unique, so an orphan of a killed driver that still writes does no harm.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from penstock.connectors.contract import Target, TaskSink, Written
from penstock.connectors.files.int_csv import int_csv
from penstock.model.formats.files import Files
from penstock.store import durable
from penstock.store.errors import MissingFileError, StoreError
from penstock.store.file_names import (
    STAGING,
    final_file,
    output_file_of,
    staged_by,
    staged_file,
    staged_nameless,
)

Choices = Mapping[str, str]


@dataclass(frozen=True)
class FilesSink(TaskSink):
    """Writes a train's share of an output to a staged file or, if the output is stamped, into place."""

    to: Files
    target: Target

    def start(self, moves: Sequence[Sequence[str]], last: int) -> None:
        files = [file for file in map(output_file_of, _names(self.to.path)) if file is not None]
        mine = [file.train for file in files if file.owner == self.owner]
        if max(mine, default=-1) > last:
            raise _ahead(self.to.path, max(mine), last)
        others = {file.owner for file in files} - {self.owner}
        # Whoever has begun here goes on. Names tell whose a file is, so no marker of our own is needed.
        if others and not mine and not self.to.append:
            raise _taken(self.target.output, self.to.path, min(others))
        remove_litter(self.to.path, self.owner, moves)

    def write(self, table: pa.Table, train: int, partition: int) -> Written:
        if not table.num_rows:
            return Written()
        visible = table.select(list(self.target.schema.names))
        final = self.final(train, partition)
        if self.to.at_once:
            self._show(visible, final)
            return Written(shown=(final,))
        staged = staged_file(self.to.path, self.owner, train, partition, self.to.name)
        self._write(visible, staged)
        return Written(moves=((str(staged), final),))

    def _show(self, table: pa.Table, final: str) -> None:
        """Write a file and make it visible at once; an existing one is complete and stays."""
        if os.path.exists(final):  # noqa: PTH110 - once for each file, in the hot path
            return
        aside = staged_nameless(self.to.path, self.owner)
        self._write(table if self.to.stamp is None else self.to.stamp.call(table), aside)
        with contextlib.suppress(FileExistsError):
            durable.layer.link(aside, Path(final))
        aside.unlink()
        if self.target.sync:
            durable.sync_directory(Path(final).parent)

    def _write(self, table: pa.Table, path: Path) -> None:
        durable.make_directory(path.parent, sync=self.target.sync)
        _WRITERS[self.to.name](table, path, dict(self.to.options))
        if self.target.sync:
            durable.sync_file(path)
            durable.sync_directory(path.parent)

    def final(self, train: int, part: int) -> str:
        """The final path of a file of this output."""
        return final_file(self.to.path, self.owner, train, part, self.to.name)

    @property
    def owner(self) -> str:
        return f"{self.target.output}-{self.target.run}"


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - it may hold a million files
    except (FileNotFoundError, NotADirectoryError):
        return []


def _ahead(folder: str, newest: int, last: int) -> MissingFileError:
    return MissingFileError(
        f"{folder} holds rows of train {newest}, but the last train that the checkpoint knows is {last}: "
        "records are lost",
        hint="restore the checkpoint from a copy, or start with a new one and a new output folder",
    )


def _taken(output: str, folder: str, other: str) -> StoreError:
    return StoreError(
        f"output '{output}': {folder} holds the rows of another checkpoint or output",
        found=f"files named 'part-{other}-...'",
        expected="a new or empty folder",
        hint="choose another folder, delete what is there, or let the sink add to it with append=True",
    )


def publish(moves: Iterable[Iterable[str]], *, sync: bool = False) -> None:
    """Move staged files into place; files already moved stay there. `sync`: they survive a power cut."""
    emptied, filled = set(), set()
    for staged, final in moves:
        folder = Path(staged).parent
        if folder.parent.name == STAGING:
            emptied.add(folder)  # Spark's writer has its own folder
        durable.make_directory(Path(final).parent, sync=sync)
        _move(Path(staged), Path(final))
        filled.add(Path(final).parent)
    for folder in filled if sync else ():
        durable.sync_directory(folder)
    for folder in emptied:
        shutil.rmtree(folder, ignore_errors=True)


def _move(staged: Path, final: Path) -> None:
    try:
        durable.layer.replace(staged, final)  # a replay overwrites with the same rows
    except FileNotFoundError:
        # It was moved before, maybe at this moment by another owner of the checkpoint.
        if not final.exists():
            raise MissingFileError(
                f"{final}: committed, but neither it nor its staged file {staged} is there",
                hint="restore the output folder, or start with a new checkpoint and new folders",
            ) from None


def remove_litter(
    path: str, owner: str, moves: Iterable[Iterable[str]] = (), *, seconds: float = 3600.0
) -> None:
    """Delete an owner's staged files of attempts that never committed, once nobody can still write them.

    `moves` are those of the last commit. A crash may have prevented their publishing, so they stay, however
    old.
    """
    needed = {path for staged, _ in moves for path in (Path(staged), Path(staged).parent)}
    for entry in staged_by(path, owner):
        if entry in needed:
            continue
        with contextlib.suppress(FileNotFoundError):  # an owner that was followed may still publish it
            if time.time() - entry.stat().st_mtime > seconds:
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


# -- one writer a format


def _parquet(table: pa.Table, path: Path, choices: Choices) -> None:
    with durable.open_file(path, "wb") as file:
        pq.write_table(table, file, compression=choices.get("compression", "snappy"))


def _csv(table: pa.Table, path: Path, choices: Choices) -> None:
    header, sep = choices.get("header", "false") == "true", choices.get("sep", ",")
    text = None if header else int_csv(table, sep)
    if text is not None:
        with durable.open_file(path) as file:
            file.write(text)
        return
    table = _without_empty_chunks(_numbers_as_text(_as_texts(_without_blank_lines(table))))
    # Arrow quotes either every text or none. None reads better, but only works if no text needs quotes.
    if not _has_empty_text(table):
        with contextlib.suppress(pa.ArrowInvalid), durable.open_file(path, "wb") as file:
            pacsv.write_csv(table, file, _csv_options(header, sep, "none"))
            return
    with durable.open_file(path, "wb") as file:
        pacsv.write_csv(table, file, _csv_options(header, sep, "needed"))


def _without_empty_chunks(table: pa.Table) -> pa.Table:
    """Arrow's CSV writer answers an empty first chunk with 24 kB of memory that nobody has written to."""
    return pa.Table.from_batches([batch for batch in table.to_batches() if batch.num_rows], table.schema)


def _without_blank_lines(table: pa.Table) -> pa.Table:
    """Null in quotes where it is alone in its row: an empty line is no row.

    For a text there is no such form. Quotes are an empty text there.
    """
    lone = table.num_columns == 1 and table.column(0).null_count > 0
    if not lone or pa.types.is_string(table.schema.types[0]) or pa.types.is_binary(table.schema.types[0]):
        return table
    texts = pc.cast(_numbers_as_text(_as_texts(table)).column(0), pa.string())
    return table.set_column(0, table.column_names[0], pc.fill_null(texts, ""))


def _csv_options(header: bool, sep: str, quoting: str) -> pacsv.WriteOptions:
    return pacsv.WriteOptions(include_header=header, delimiter=sep, quoting_style=quoting)


def _has_empty_text(table: pa.Table) -> bool:
    """Whether a text is empty: without quotes it would look like null."""
    texts = [c for c in table.columns if pa.types.is_string(c.type)]
    return any(pc.any(pc.equal(column, "")).as_py() for column in texts)


def _json(table: pa.Table, path: Path, _choices: Choices) -> None:
    with durable.open_text(path) as file:
        for row in _as_texts(table).to_pylist():
            present = {name: _finite(value) for name, value in row.items() if value is not None}
            file.write(json.dumps(present, default=str, allow_nan=False) + "\n")


def _as_texts(table: pa.Table) -> pa.Table:
    """Times as ISO text in UTC, bytes in base64: the forms that the CSV and JSON sources read back."""
    for i, field in enumerate(table.schema):
        column = table.column(i)
        if pa.types.is_timestamp(field.type):
            table = table.set_column(i, field.name, pc.strftime(column, "%Y-%m-%dT%H:%M:%SZ"))
        elif pa.types.is_binary(field.type):
            texts = [None if value is None else b64encode(value).decode() for value in column.to_pylist()]
            table = table.set_column(i, field.name, pa.array(texts, pa.string()))
    return table


def _numbers_as_text(table: pa.Table) -> pa.Table:
    """Columns with numbers that are not finite as text: NaN, Infinity, -Infinity."""
    for i, field in enumerate(table.schema):
        column = table.column(i)
        if pa.types.is_floating(field.type) and pc.all(pc.is_finite(column)).as_py() not in (True, None):
            texts = pc.cast(column, pa.string())
            for number, text in (("nan", "NaN"), ("inf", "Infinity"), ("-inf", "-Infinity")):
                texts = pc.if_else(pc.equal(texts, number), text, texts)
            table = table.set_column(i, field.name, texts)
    return table


def _finite(value: object) -> object:
    """JSON has no NaN and no infinity: they are texts, as Spark writes them."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


_WRITERS: Mapping[str, Callable[[pa.Table, Path, Choices], None]] = {
    "parquet": _parquet,
    "csv": _csv,
    "json": _json,
}
