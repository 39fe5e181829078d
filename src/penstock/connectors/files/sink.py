"""Outputs as files. They are staged beside their final place and moved there when the train is committed.

A file's final name identifies output, run, train and partition. A replayed train writes the same files.
Another checkpoint, or a query attached anew, writes others beside them. Staged names are unique, so an orphan
of a killed driver that still writes does no harm.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
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
from penstock.store.errors import MissingFileError
from penstock.store.file_names import STAGING, final_file, staged_file, staged_nameless

Choices = Mapping[str, str]


@dataclass(frozen=True)
class FilesSink(TaskSink):
    """Writes a train's share of an output to a staged file or, if the output is stamped, into place."""

    to: Files
    target: Target

    def start(self, moves: Sequence[Sequence[str]]) -> None:
        remove_litter(self.to.path, moves)

    def write(self, table: pa.Table, train: int, partition: int) -> Written:
        if not table.num_rows:
            return Written()
        visible = table.select(list(self.target.schema.names))
        final = self.final(train, partition)
        if self.to.at_once:
            self._show(visible, final)
            return Written(shown=(final,))
        staged = staged_file(self.to.path, train, partition, self.to.name)
        self._write(visible, staged)
        return Written(moves=((str(staged), final),))

    def _show(self, table: pa.Table, final: str) -> None:
        """Write a file and make it visible at once; an existing one is complete and stays."""
        if os.path.exists(final):  # noqa: PTH110 - once for each file, in the hot path
            return
        aside = staged_nameless(self.to.path)
        self._write(table if self.to.stamp is None else self.to.stamp.call(table), aside)
        with contextlib.suppress(FileExistsError):
            durable.layer.link(aside, Path(final))
        aside.unlink()
        if self.target.sync:
            durable.sync_directory(Path(final).parent)

    def _write(self, table: pa.Table, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        _WRITERS[self.to.name](table, path, dict(self.to.options))
        if self.target.sync:
            durable.sync_file(path)
            durable.sync_directory(path.parent)

    def final(self, train: int, part: int) -> str:
        """The final path of a file of this output."""
        owner = f"{self.target.output}-{self.target.run}"
        return final_file(self.to.path, owner, train, part, self.to.name)


def publish(moves: Iterable[Iterable[str]], *, sync: bool = False) -> None:
    """Move staged files into place; files already moved stay there. `sync`: they survive a power cut."""
    emptied, filled = set(), set()
    for staged, final in moves:
        folder = Path(staged).parent
        if folder.parent.name == STAGING:
            emptied.add(folder)  # Spark's writer has its own folder
        _move(Path(staged), Path(final))
        filled.add(Path(final).parent)
    for folder in filled if sync else ():
        durable.sync_directory(folder)
    for folder in emptied:
        shutil.rmtree(folder, ignore_errors=True)


def _move(staged: Path, final: Path) -> None:
    final.parent.mkdir(parents=True, exist_ok=True)
    try:
        durable.layer.replace(staged, final)  # a replay overwrites with the same rows
    except FileNotFoundError:
        # It was moved before, maybe at this moment by another owner of the checkpoint.
        if not final.exists():
            raise MissingFileError(
                f"{final}: committed, but neither it nor its staged file {staged} is there",
                hint="restore the output folder, or start with a new checkpoint and new folders",
            ) from None


def remove_litter(path: str, moves: Iterable[Iterable[str]] = (), *, seconds: float = 3600.0) -> None:
    """Delete staged files of attempts that never committed, once nobody can still be writing them.

    `moves` are those of the last commit. A crash may have prevented their publishing, so they stay, however
    old.
    """
    needed = {path for staged, _ in moves for path in (Path(staged), Path(staged).parent)}
    for entry in Path(path).glob(f"{STAGING}/*"):
        if entry not in needed and time.time() - entry.stat().st_mtime > seconds:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink(missing_ok=True)


# -- one writer a format


def _parquet(table: pa.Table, path: Path, choices: Choices) -> None:
    pq.write_table(table, path, compression=choices.get("compression", "snappy"))


def _csv(table: pa.Table, path: Path, choices: Choices) -> None:
    header, sep = choices.get("header", "false") == "true", choices.get("sep", ",")
    text = None if header else int_csv(table, sep)
    if text is not None:
        path.write_bytes(text)
        return
    table = _times_as_text(table)
    # Arrow quotes either every text or none. None reads better, but only works if no text needs quotes.
    if not _has_empty_text(table):
        with contextlib.suppress(pa.ArrowInvalid):
            pacsv.write_csv(table, path, _csv_options(header, sep, "none"))
            return
    pacsv.write_csv(table, path, _csv_options(header, sep, "needed"))


def _csv_options(header: bool, sep: str, quoting: str) -> pacsv.WriteOptions:
    return pacsv.WriteOptions(include_header=header, delimiter=sep, quoting_style=quoting)


def _has_empty_text(table: pa.Table) -> bool:
    """Whether a text is empty: without quotes it would look like null."""
    texts = [c for c in table.columns if pa.types.is_string(c.type)]
    return any(pc.any(pc.equal(column, "")).as_py() for column in texts)


def _json(table: pa.Table, path: Path, _choices: Choices) -> None:
    with path.open("w") as file:
        for row in _times_as_text(table).to_pylist():
            present = {name: value for name, value in row.items() if value is not None}
            file.write(json.dumps(present, default=str) + "\n")


def _times_as_text(table: pa.Table) -> pa.Table:
    """Times as ISO text in UTC, the form that the CSV and JSON sources read back."""
    for i, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            text = pc.strftime(table.column(i), "%Y-%m-%dT%H:%M:%SZ")
            table = table.set_column(i, field.name, text)
    return table


_WRITERS: Mapping[str, Callable[[pa.Table, Path, Choices], None]] = {
    "parquet": _parquet,
    "csv": _csv,
    "json": _json,
}
