"""The historical tables the oracle reads: TollHistory and SegmentHistory, as csv or parquet.

Either may be absent. Shifted copies of an input may share one history by reference; the history's manifest
then has `copies`. Copy k has the rows of the files with k times `vid` added to VID and k times `xway` to
XWay. The macros `home_xway` and `home_vid` lead from a request to the row it shares.
"""

from __future__ import annotations

import json
from pathlib import Path

import duckdb

from penstock.linear_road.errors import InputError
from penstock.linear_road.rows.inputs import MANIFEST, history_file

TABLES: dict[str, tuple[str, tuple[str, ...]]] = {
    "toll_history": ("TollHistory", ("vid", "day", "xway", "tolls")),
    "segment_history": ("SegmentHistory", ("day", "min", "xway", "dir", "seg", "lav", "cnt", "toll")),
}

# Beyond the last copy an expressway stands for itself: a foreign input may use any number.
HOME = """
CREATE OR REPLACE MACRO copy_of(x) AS CASE WHEN x // {xway} < {count} THEN x // {xway} ELSE 0 END;
CREATE OR REPLACE MACRO home_xway(x) AS x - copy_of(x) * {xway};
CREATE OR REPLACE MACRO home_vid(v, x) AS v - copy_of(x) * {vid}"""


def open_history(con: duckdb.DuckDBPyConnection, directory: Path | None) -> None:
    """Make `toll_history` and `segment_history`, empty where there is no file."""
    if directory is not None and not directory.is_dir():
        raise InputError(
            f"history {directory} is not a directory",
            expected="one with TollHistory and SegmentHistory files",
        )
    con.execute(HOME.format(**_copies(directory)))
    for table, (name, columns) in TABLES.items():
        file = None if directory is None else history_file(directory, name)
        _open(con, table, columns, file)


def history_files(directory: Path | None) -> list[Path]:
    """The files a history consists of."""
    if directory is None or not directory.is_dir():
        return []
    names = [file for name, _ in TABLES.values() if (file := history_file(directory, name))]
    parts = [
        part for name in names for part in ([name] if name.is_file() else sorted(name.rglob("*.parquet")))
    ]
    manifest = directory / MANIFEST
    return [*parts, manifest] if manifest.is_file() else parts


def _copies(directory: Path | None) -> dict[str, int]:
    """How many copies share the files, and what each adds to VID and XWay."""
    alone = {"count": 1, "vid": 0, "xway": 1}
    manifest = directory / MANIFEST if directory else None
    if manifest is None or not manifest.is_file():
        return alone
    try:
        copies = json.loads(manifest.read_text(encoding="utf-8")).get("copies") or alone
        numbers = {name: int(copies[name]) for name in alone}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the manifest {manifest} of the history cannot be read: {error!r}") from error
    if min(numbers["count"], numbers["xway"]) < 1:
        raise InputError(
            f"the manifest {manifest} of the history has copies {numbers}", expected="count and xway above 0"
        )
    return numbers


def _open(con: duckdb.DuckDBPyConnection, table: str, columns: tuple[str, ...], file: Path | None) -> None:
    listed = ", ".join(columns)
    if file is None:
        con.execute(f"CREATE TABLE {table} ({', '.join(f'{column} INTEGER' for column in columns)})")
        return
    # Read csv text once into a table. Parquet stays in its file and gives only the columns asked for.
    kind = "VIEW" if file.suffix == ".parquet" else "TABLE"
    try:
        con.execute(f"CREATE {kind} {table} AS SELECT {listed} FROM {_reader(file, columns)}")
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"history {file} cannot be read with the columns {listed}: {reason}") from error


def _reader(file: Path, columns: tuple[str, ...]) -> str:
    # Accept a directory of parquet parts like one file.
    path = str(file.resolve() / "**/*.parquet" if file.is_dir() else file.resolve()).replace("'", "''")
    if file.suffix == ".parquet":
        return f"read_parquet('{path}')"
    types = ", ".join(f"'{column}': 'INTEGER'" for column in columns)
    return f"read_csv('{path}', header=false, auto_detect=false, delim=',', columns={{{types}}})"
