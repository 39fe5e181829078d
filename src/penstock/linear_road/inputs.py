"""What every `--input` option takes: a generated directory with its manifest, or one flat file.

Idea: the tools never guess which files belong to an input or in which order they come; the manifest says it,
and a single file needs no manifest.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

MANIFEST = "manifest.json"
Format = Literal["csv", "parquet"]


class InputError(ValueError):
    """An input that cannot be used; the message is one clear sentence."""


@dataclass(frozen=True)
class Input:
    """The row files of an input in time order; `manifest` is None for a flat file."""

    path: Path
    files: tuple[Path, ...]
    format: Format
    manifest: dict[str, Any] | None = None


def open_input(path: Path) -> Input:
    """Find the row files of `path`: a directory with a manifest.json, or one csv, dat or parquet file."""
    path = Path(path)
    if not path.exists():
        raise InputError(f"Input {path} does not exist.")
    return _open_directory(path) if path.is_dir() else _open_file(path)


def format_of(path: Path) -> Format:
    """The format a file's name tells: parquet by its suffix, anything else is comma-separated text.

    >>> format_of(Path("a.parquet")), format_of(Path("a.dat"))
    ('parquet', 'csv')
    """
    return "parquet" if path.suffix == ".parquet" else "csv"


def _open_file(path: Path) -> Input:
    if not path.is_file():
        raise InputError(f"Input {path} is neither a directory nor a regular file.")
    try:
        with path.open("rb") as file:
            head = file.read(4)
    except OSError as error:
        raise InputError(f"Input {path} cannot be read: {error.strerror}.") from error
    named = format_of(path)
    found: Format = "parquet" if head == b"PAR1" else "csv"
    if found != named:
        raise InputError(
            f"Input {path} is named as {named} but its content is {'not ' if named == 'parquet' else ''}parquet."
        )
    return Input(path=path, files=(path,), format=named)


def _open_directory(path: Path) -> Input:
    manifest = _manifest(path)
    files = tuple(_listed(path, name) for name in manifest["files"])
    formats = {format_of(file) for file in files} or {"csv"}
    if len(formats) > 1:
        raise InputError(f"The manifest of {path} mixes csv and parquet files; expected one format.")
    return Input(path=path, files=files, format=formats.pop(), manifest=manifest)


def _manifest(path: Path) -> dict[str, Any]:
    file = path / MANIFEST
    if not file.is_file():
        raise InputError(
            f"Directory {path} has no {MANIFEST}; expected the output of a finished `penstock lr generate`, or one flat file."
        )
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"The manifest {file} cannot be read: {error}.") from error
    if not isinstance(manifest, dict) or not _is_list_of_names(manifest.get("files")):
        raise InputError(f"The manifest {file} has no list `files` of the row files in time order.")
    return manifest


def _is_list_of_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _listed(path: Path, name: str) -> Path:
    file = path / name
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise InputError(f"The manifest of {path} lists {name!r}, which lies outside the directory.")
    if not file.is_file():
        raise InputError(f"The manifest of {path} lists {name!r}, but there is no such file.")
    return file
