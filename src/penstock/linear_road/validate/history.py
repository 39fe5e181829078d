"""The historical tables the oracle reads: TollHistory and SegmentHistory, as csv or parquet, either may be absent."""

from __future__ import annotations

from pathlib import Path

import duckdb

from penstock.linear_road.inputs import InputError

TABLES: dict[str, tuple[str, tuple[str, ...]]] = {
    "toll_history": ("TollHistory", ("vid", "day", "xway", "tolls")),
    "segment_history": ("SegmentHistory", ("day", "min", "xway", "dir", "seg", "lav", "cnt", "toll")),
}


def open_history(con: duckdb.DuckDBPyConnection, directory: Path | None) -> None:
    """Make `toll_history` and `segment_history`, empty where there is no file."""
    if directory is not None and not directory.is_dir():
        raise InputError(f"History {directory} is not a directory with TollHistory and SegmentHistory files.")
    for table, (name, columns) in TABLES.items():
        _open(con, table, columns, _file(directory, name))


def _file(directory: Path | None, name: str) -> Path | None:
    if directory is None:
        return None
    found = [path for suffix in (".parquet", ".csv") if (path := directory / f"{name}{suffix}").exists()]
    if len(found) > 1:
        raise InputError(
            f"History {directory} holds both {found[0].name} and {found[1].name}; expected one of them."
        )
    return found[0] if found else None


def _open(con: duckdb.DuckDBPyConnection, table: str, columns: tuple[str, ...], file: Path | None) -> None:
    listed = ", ".join(columns)
    if file is None:
        con.execute(f"CREATE TABLE {table} ({', '.join(f'{column} INTEGER' for column in columns)})")
        return
    # csv text is read once into a table; parquet stays where it is and gives only the columns asked for.
    kind = "VIEW" if file.suffix == ".parquet" else "TABLE"
    try:
        con.execute(f"CREATE {kind} {table} AS SELECT {listed} FROM {_reader(file, columns)}")
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"History {file} cannot be read with the columns {listed}: {reason}") from error


def _reader(file: Path, columns: tuple[str, ...]) -> str:
    # A directory of parquet parts is as good as one file.
    path = str(file / "**/*.parquet" if file.is_dir() else file).replace("'", "''")
    if file.suffix == ".parquet":
        return f"read_parquet('{path}')"
    types = ", ".join(f"'{column}': 'INTEGER'" for column in columns)
    return f"read_csv('{path}', header=false, auto_detect=false, delim=',', columns={{{types}}})"
