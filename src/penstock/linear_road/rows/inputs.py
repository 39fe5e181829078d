"""What `--input` options take: a generated directory with its manifest, one flat file, or a folder with one.

Idea: the tools never guess which files belong to an input or their order. The manifest says so, and a single
file needs no manifest. History beside a flat file belongs to it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypedDict

from penstock.linear_road.errors import InputError

MANIFEST = "manifest.json"
HISTORY_NAMES: tuple[str, ...] = ("TollHistory", "SegmentHistory")
Format = Literal["csv", "parquet"]
Delivery = Literal["text", "packed"]
"""How a driver passes stored text on: as it is, or as packed columns (`packed_rows`)."""
_SUFFIXES = (".dat", ".csv", ".parquet")
_GENERATED = re.compile(r"rows-\d+-\d+")


def history_file(directory: Path, name: str) -> Path | None:
    """One of the `HISTORY_NAMES` in a history, as parquet or csv; None if it has none."""
    files = [file for suffix in (".parquet", ".csv") if (file := directory / f"{name}{suffix}").exists()]
    if len(files) > 1:
        raise InputError(
            f"history {directory} holds both {files[0].name} and {files[1].name}", expected="one of them"
        )
    return files[0] if files else None


def known_delivery(text: str) -> Delivery:
    """Check the name of a form of delivery.

    >>> known_delivery("packed")
    'packed'
    """
    if text not in ("text", "packed"):
        raise InputError(f"--format {text} is not known", expected="text or packed")
    return "packed" if text == "packed" else "text"


class Manifest(TypedDict, total=False):
    """What the manifest of a generated input says; any tool may write one that lists its `files` only."""

    kind: str
    version: str
    xways: float
    minutes: int
    seed: int
    format: Format
    model: int
    files: list[str]
    rows: int
    counts: dict[str, int]
    vehicles: int
    trips: int
    second_trips: int
    accidents: int
    vid_limit: int
    qid_limit: int
    hash_kind: str
    hash: str


@dataclass(frozen=True)
class Input:
    """The row files of an input in time order; `manifest` is None for a flat file."""

    path: Path
    files: tuple[Path, ...]
    format: Format
    manifest: Manifest | None = None


def open_input(path: Path) -> Input:
    """Find the row files of `path`: a directory with a manifest.json, or one csv, dat or parquet file.

    The single file may also lie in a directory.
    """
    path = Path(path)
    if not path.exists():
        raise InputError(f"input {path} does not exist")
    if not path.is_dir():
        return _open_file(path)
    only = None if (path / MANIFEST).is_file() else _only_file(path)
    return _open_directory(path) if only is None else replace(_open_file(only), path=path)


def history_beside(path: Path) -> Path | None:
    """The directory itself, if it holds one file of rows with history beside it, and no manifest.

    Otherwise None.
    """
    if not path.is_dir() or (path / MANIFEST).is_file() or _only_file(path) is None:
        return None
    return path if any(file.stem in HISTORY_NAMES for file in path.iterdir()) else None


def _only_file(path: Path) -> Path | None:
    """The only file of rows in a directory: named `rows`, or the only one that is not history."""
    files = [
        file
        for file in path.iterdir()
        if file.suffix in _SUFFIXES and file.stem not in HISTORY_NAMES and file.is_file()
    ]
    if any(_GENERATED.fullmatch(file.stem) for file in files):
        return None  # a generator has not finished it
    named = [file for file in files if file.stem == "rows"]
    candidates = named or files
    return candidates[0] if len(candidates) == 1 else None


def format_of(path: Path) -> Format:
    """The format that a file's name implies: parquet by its suffix, otherwise comma-separated text.

    >>> format_of(Path("a.parquet")), format_of(Path("a.dat"))
    ('parquet', 'csv')
    """
    return "parquet" if path.suffix == ".parquet" else "csv"


def _open_file(path: Path) -> Input:
    if not path.is_file():
        raise InputError(f"input {path} cannot be used", expected="a directory or a regular file")
    try:
        with path.open("rb") as file:
            head = file.read(4)
    except OSError as error:
        raise InputError(f"input {path} cannot be read: {error.strerror}") from error
    # A wrong suffix would otherwise show much later, as thousands of refused rows.
    named = format_of(path)
    content: Format = "parquet" if head == b"PAR1" else "csv"
    if content != named:
        raise InputError(
            f"input {path} is named as {named} but its content is "
            f"{'not ' if named == 'parquet' else ''}parquet",
        )
    return Input(path=path, files=(path,), format=named)


def _open_directory(path: Path) -> Input:
    manifest = _manifest(path)
    files = tuple(_listed(path, name) for name in manifest["files"])
    formats = {format_of(file) for file in files} or {"csv"}
    if len(formats) > 1:
        raise InputError(f"the manifest of {path} mixes csv and parquet files", expected="one format")
    return Input(path=path, files=files, format=formats.pop(), manifest=manifest)


def _manifest(path: Path) -> Manifest:
    file = path / MANIFEST
    if not file.is_file():
        raise InputError(
            f"directory {path} has no {MANIFEST}",
            expected=(
                "the output of a finished `penstock lr generate`, or one flat file "
                "(in a directory: the only one, or named rows.dat, rows.csv or rows.parquet)"
            ),
        )
    try:
        manifest: Manifest = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"the manifest {file} cannot be read: {error}") from error
    if not isinstance(manifest, dict) or not _is_list_of_names(manifest.get("files")):
        raise InputError(f"the manifest {file} has no list `files` of the row files in time order")
    return manifest


def _is_list_of_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _listed(path: Path, name: str) -> Path:
    file = path / name
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise InputError(f"the manifest of {path} lists {name!r}, which lies outside the directory")
    if not file.is_file():
        raise InputError(f"the manifest of {path} lists {name!r}, but there is no such file")
    return file
