"""Give refused lines to a network again: as a new file in the folder of their source, each line once.

A batch is written down before its files appear, and marked as done after that. If a crash comes in between,
the next call finishes the batch: a file that is there, or that the source already knows, is not made again.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.connectors.files.header import header_line
from penstock.connectors.files.text_file import Archive, BrokenArchiveError, TextFile, codec_of, plain_text
from penstock.connectors.tables import RAW_LIMIT
from penstock.model.boxes import Source
from penstock.model.formats.files import Csv, Files, Json
from penstock.store.crash import crash_point
from penstock.store.dead_letters import DeadLetters
from penstock.store.durable import create, locked, read_record, write_record

_RECORD = "replayed.json"

LATE = "they are late, and their windows are closed"
WHOLE = "a whole file was refused; mend it and give it a new name"
CUT = "their text was too long to keep; give in the original lines"
NO_TEXT = "their bytes are no UTF-8; give in the original lines"
NO_HEADER = "the header of their file cannot be read any more, so nobody knows their columns"


@dataclass(frozen=True)
class Replayed:
    """What became of the letters of one source. `left`: how many stay, by reason."""

    source: str
    file: str = ""
    lines: int = 0
    left: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Batch:
    """Letters that go in together: tables of letters by name, and the files they become."""

    source: str
    letters: list[str]
    files: dict[str, str]  # path -> text
    done: bool = False


def replay_letters(checkpoint: Path, sources: Iterable[Source]) -> Iterator[Replayed]:
    """Give in again what these sources refused, as far as nobody has done so yet."""
    with locked(checkpoint / "dead_letters" / ".replay.lock"):
        _finish(checkpoint)
        for source in sources:
            yield _replay(checkpoint, source)


def _batches(checkpoint: Path) -> list[_Batch]:
    try:
        return [_Batch(**plain) for plain in read_record(checkpoint / "dead_letters" / _RECORD)["batches"]]
    except FileNotFoundError:
        return []


def _save(checkpoint: Path, batches: list[_Batch]) -> None:
    # The text of a batch that is done is in its files.
    plain = [
        asdict(b if not b.done else _Batch(b.source, b.letters, dict.fromkeys(b.files, ""), True))
        for b in batches
    ]
    write_record(checkpoint / "dead_letters" / _RECORD, {"batches": plain})


def _replay(checkpoint: Path, source: Source) -> Replayed:
    problem = _problem(source)
    batches, letters = _batches(checkpoint), DeadLetters(checkpoint)
    known = {name for batch in batches for name in batch.letters if batch.source == source.name}
    fresh = {name: letters.table(name) for name in letters.names() if name not in known}
    rows = [row for table in fresh.values() for row in _of_source(table, source.name)]
    headers = {} if problem else _headers(source, {row["file"] for row in rows})
    why = [problem or _stays(row) or ("" if row["file"] in headers else NO_HEADER) for row in rows]
    left = Counter(filter(None, why))
    lines = [row for row, reason in zip(rows, why, strict=True) if not reason]
    if not lines:
        return Replayed(source.name, left=left)
    files = _files(source, lines, headers, len(batches))
    _save(checkpoint, [*batches, _Batch(source.name, sorted(fresh), files)])
    crash_point("replay-intended")
    _finish(checkpoint)
    return Replayed(source.name, ", ".join(files), len(lines), left)


def _problem(source: Source) -> str:
    if not isinstance(source.format, Csv | Json):
        return f"a {source.format.name} source takes no lines"
    if not Path(source.format.path).is_dir():
        return f"the source reads one file, {source.format.path}; add the lines to it"
    return ""


def _of_source(table: pa.Table, source: str) -> list[dict[str, Any]]:
    return [row for row in table.to_pylist() if row["box"] == source]


def _stays(letter: Mapping[str, Any]) -> str:
    """Why a letter cannot go in again; empty if it can."""
    if str(letter["reason"] or "").startswith("late: "):
        return LATE
    if letter["raw"] is None or letter["line"] is None or letter["tuples"] != 1:
        return WHOLE
    if len(letter["raw"]) > RAW_LIMIT:
        return CUT
    return NO_TEXT if "\ufffd" in letter["raw"] else ""


def _files(
    source: Source, letters: list[dict[str, Any]], headers: Mapping[str | None, str], number: int
) -> dict[str, str]:
    """The files to make: one for each header that the letters' own files have."""
    assert isinstance(source.format, Files)
    suffix = "csv" if isinstance(source.format, Csv) else "json"
    texts: dict[str, list[str]] = {}
    for letter in letters:
        texts.setdefault(headers[letter["file"]], []).append(f"{letter['raw']}\n")
    folder = Path(source.format.path)
    return {
        str(folder / f"replayed-{os.getpid()}-{number:06d}-{part}.{suffix}"): header + "".join(lines)
        for part, (header, lines) in enumerate(texts.items())
    }


def _headers(source: Source, files: Iterable[str | None]) -> dict[str | None, str]:
    """The header of each file that lines come from; a file whose header cannot be read is left out.

    The order of columns is the file's own. To guess it would give in wrong values, not refused ones.
    """
    assert isinstance(source.format, Files)
    if not isinstance(source.format, Csv) or dict(source.format.options).get("header", "false") != "true":
        return dict.fromkeys(files, "")
    headers: dict[str | None, str] = {}
    for file in files:
        with suppress(OSError, UnicodeDecodeError, BrokenArchiveError), _text(file or "") as text:
            headers[file] = header_line(text, source.format.options) + "\n"
    return headers


def _text(path: str) -> AbstractContextManager[TextFile]:
    return nullcontext(Archive(path)) if codec_of(path) else plain_text(path)


def _finish(checkpoint: Path) -> None:
    """Make the files of batches that are not done, unless they were made before."""
    batches = _batches(checkpoint)
    for batch in batches:
        for path, text in batch.files.items() if not batch.done else ():
            if not _was_made(checkpoint, Path(path)):
                create(Path(path), text.encode())  # aside first, under a name that sources leave alone
    crash_point("replay-made")
    if not all(batch.done for batch in batches):
        _save(checkpoint, [_Batch(b.source, b.letters, b.files, done=True) for b in batches])


def _was_made(checkpoint: Path, path: Path) -> bool:
    """Whether the file is there, or was: sources remember the files they have taken."""
    if path.exists():
        return True
    name = json.dumps(path.name)[1:-1]
    return any(name in log.read_text() for log in checkpoint.glob("queries/*/sources/**/files.jsonl"))
