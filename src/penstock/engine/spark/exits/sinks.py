"""Where outputs go. Files are staged beside their final place and moved there when the train is committed.

A file's final name tells output, run, train and partition: a train that is run again writes the same files, and another
checkpoint (or a query that was attached anew) writes others beside them. Staged names are unique, so what an orphan of a
killed driver still writes harms nobody.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from penstock.model.formats.callback import Callback
from penstock.model.formats.console import Console
from penstock.model.formats.description import SinkFormat
from penstock.model.formats.files import Files
from penstock.model.formats.memory import Memory
from penstock.model.types import Schema
from penstock.model.user_functions import Function
from penstock.store.file_names import STAGING, final_file, staged_file, staged_nameless


@dataclass(frozen=True)
class StagedFiles:
    """Writes an output's share of a train to a staged file; tells where it lies and where it belongs.

    `at_once`: it is shown right away, so it lies where it belongs, and there is nothing to be moved.
    """

    path: str
    format: str
    options: tuple[tuple[str, str], ...]
    schema: Schema
    owner: str  # output and run, in the files' names
    stamp: Function | None = None
    at_once: bool = False

    def write(self, table: Any, train: int, partition: int) -> list[list[str]]:
        if not table.num_rows:
            return []
        visible = table.select(list(self.schema.names))
        if self.at_once:
            return self._show(visible, self.final(train, partition))
        staged = staged_file(self.path, train, partition, self.format)
        staged.parent.mkdir(parents=True, exist_ok=True)
        _WRITERS[self.format](visible, staged, dict(self.options))
        return [[str(staged), self.final(train, partition)]]

    def _show(self, table: Any, final: str) -> list[list[str]]:
        """Write and show a file right here; one that is there already was complete, and stays."""
        if os.path.exists(final):  # noqa: PTH110 - once for each file, in the hot path
            return [[final, final]]
        aside = staged_nameless(self.path)
        aside.parent.mkdir(parents=True, exist_ok=True)
        stamped = table if self.stamp is None else self.stamp.call(table)
        _WRITERS[self.format](stamped, aside, dict(self.options))
        with contextlib.suppress(FileExistsError):
            os.link(aside, final)
        aside.unlink()
        return [[final, final]]

    @property
    def told_as(self) -> str:
        """What a task calls the files it tells of: those to be moved at the commit, or those shown already."""
        return "shown" if self.at_once else "moves"

    def final(self, train: int, part: int) -> str:
        return final_file(self.path, self.owner, train, part, self.format)


def _parquet(table: Any, path: Path, options: dict[str, str]) -> None:
    pq.write_table(table, path, compression=options.get("compression", "snappy"))


def _csv(table: Any, path: Path, options: dict[str, str]) -> None:
    if options.get("header", "false") != "true":
        from penstock.engine.spark.exits.int_csv import int_csv

        text = int_csv(table, options.get("sep", ","))
        if text is not None:
            path.write_bytes(text)
            return
    table = _times_as_text(table)
    # Arrow quotes either every text or none; none reads better, but only where no text needs it
    for quoting in ("none", "needed"):
        choices = pacsv.WriteOptions(
            include_header=options.get("header", "false") == "true",
            delimiter=options.get("sep", ","),
            quoting_style=quoting,
        )
        try:
            if quoting == "needed" or not _has_empty_text(table):
                pacsv.write_csv(table, path, choices)
                return
        except pa.ArrowInvalid:
            if quoting == "needed":
                raise


def _has_empty_text(table: Any) -> bool:
    """An empty text and a null would look the same without quotes."""
    texts = [c for c in table.columns if pa.types.is_string(c.type)]
    return any(pc.any(pc.equal(column, "")).as_py() for column in texts)


def _json(table: Any, path: Path, _options: dict[str, str]) -> None:
    rows = _times_as_text(table).to_pylist()
    path.write_text(
        "".join(
            json.dumps({k: v for k, v in row.items() if v is not None}, default=str) + "\n" for row in rows
        )
    )


_WRITERS = {"parquet": _parquet, "csv": _csv, "json": _json}


def _times_as_text(table: Any) -> Any:
    """Times as ISO text in UTC, the form that the CSV and JSON sources read back."""
    for i, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            text = pc.strftime(table.column(i), "%Y-%m-%dT%H:%M:%SZ")
            table = table.set_column(i, field.name, text)
    return table


def publish(moves: Iterable[Iterable[str]]) -> None:
    """Move staged files to their places; what is moved already stays moved."""
    emptied = set()
    for staged, final in moves:
        folder = Path(staged).parent
        if folder.parent.name == STAGING:
            emptied.add(folder)  # Spark's writer had a folder of its own
        if Path(staged).exists():
            Path(final).parent.mkdir(parents=True, exist_ok=True)
            os.replace(staged, final)  # noqa: PTH105 - replace on purpose: a replay overwrites with the same rows
        elif not Path(final).exists():
            raise FileNotFoundError(
                f"{final}: committed, but neither it nor its staged file {staged} is there"
            )
    for folder in emptied:
        shutil.rmtree(folder, ignore_errors=True)


def remove_litter(path: str, moves: Iterable[Iterable[str]] = (), *, seconds: float = 3600.0) -> None:
    """Delete staged files of attempts that never committed, once they are so old that nobody can still be writing.

    `moves`: of the last commit, which a crash may have kept from being published; they stay, however old.
    """
    needed = {place for staged, _ in moves for place in (Path(staged), Path(staged).parent)}
    for entry in Path(path).glob(f"{STAGING}/*"):
        if entry not in needed and time.time() - entry.stat().st_mtime > seconds:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink(missing_ok=True)


def deliver(sink: SinkFormat, name: str, table: Any) -> None:
    """Hand a train's tuples to a sink in this process."""
    match sink:
        case Memory():
            sink.rows.extend(table.to_pylist())
        case Callback():
            sink.function(table)
        case Console():
            _print(name, table, sink.limit)
        case Files():
            raise TypeError("files are written by the tasks")


def _print(name: str, table: Any, limit: int) -> None:
    for row in table.slice(0, limit).to_pylist():
        print(
            f"{name}: "
            + ", ".join(
                f"{k}={v:%Y-%m-%d %H:%M:%S}" if hasattr(v, "hour") else f"{k}={v}" for k, v in row.items()
            )
        )
    if table.num_rows > limit:
        print(f"{name}: ... and {table.num_rows - limit} more")
