"""Give refused lines to a network again: as a new file in the folder of their source, each line once.

A batch is written down first, with the letters that it takes. Then its files are made under hidden names,
which sources leave alone, and the batch is noted as ready. What gives the lines in is the rename of each
file, and it is also the mark that they were given in: a hidden name that is gone was renamed. So there is no
moment at which a crash loses lines or gives them in twice, whatever happens to the files meanwhile.

Only letters of trains with a commit are taken. A train without one runs again, and then perhaps lets in what
its first run refused: the lines would come twice.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa

from penstock.connectors.files.header import header_line
from penstock.connectors.files.text_file import Archive, BrokenArchiveError, TextFile, codec_of, plain_text
from penstock.connectors.tables import RAW_LIMIT
from penstock.model.boxes import Source
from penstock.model.formats.files import Csv, Files, Json
from penstock.model.json_types import JsonMapping, JsonObject
from penstock.store import durable
from penstock.store.crash import crash_point
from penstock.store.dead_letters import DeadLetters

_RECORD = "replayed.json"

LATE = "they are late, and their windows are closed"
WHOLE = "a whole file was refused; mend it and give it a new name"
CUT = "their text was too long to keep; give in the original lines"
NO_TEXT = "their bytes are no UTF-8; give in the original lines"
UNFINISHED = "their train has no commit yet; run the network, then give them in"
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
    """Letters that go in together: tables of letters by name, and the files they become.

    `ready`: the files exist, under hidden names or already under their own.
    """

    source: str
    letters: list[str]
    files: dict[str, str]  # path -> text; not kept once the file exists
    ready: bool = False


def replay_letters(
    checkpoint: Path, sources: Iterable[Source], committed: Mapping[str, int]
) -> Iterator[Replayed]:
    """Give in again what these sources refused, as far as nobody has done so yet.

    `committed`: the newest train with a commit, by sub-network.
    """
    sources = list(sources)
    with durable.locked(checkpoint / "dead_letters" / ".replay.lock"):
        _finish(checkpoint, sources)
        for source in sources:
            yield _replay(checkpoint, source, committed)


def _batches(checkpoint: Path) -> list[_Batch]:
    try:
        record = durable.read_record(checkpoint / "dead_letters" / _RECORD)
    except FileNotFoundError:
        return []
    return [_Batch(**plain) for plain in record["batches"]]


def _save(checkpoint: Path, batches: list[_Batch]) -> None:
    record = {"batches": [asdict(batch) for batch in batches]}
    durable.write_record(checkpoint / "dead_letters" / _RECORD, record)


def _replay(checkpoint: Path, source: Source, committed: Mapping[str, int]) -> Replayed:
    problem = _problem(source)
    batches, letters = _batches(checkpoint), DeadLetters(checkpoint)
    known = {name for batch in batches for name in batch.letters if batch.source == source.name}
    fresh = {name: letters.table(name) for name in letters.names(committed) if name not in known}
    unfinished = set(letters.names()) - set(letters.names(committed))
    rows = [row for table in fresh.values() for row in _of_source(table, source.name)]
    headers = {} if problem else _headers(source, {row["file"] for row in rows})
    why = [problem or _stays(row) or ("" if row["file"] in headers else NO_HEADER) for row in rows]
    left = Counter(filter(None, why))
    left[UNFINISHED] += sum(len(_of_source(letters.table(name), source.name)) for name in unfinished)
    lines = [row for row, reason in zip(rows, why, strict=True) if not reason]
    if not lines:
        return Replayed(source.name, left=+left)
    files = _files(source, lines, headers)
    _save(checkpoint, [*batches, _Batch(source.name, sorted(fresh), files)])
    crash_point("replay-intended")
    _finish(checkpoint, [source])
    return Replayed(source.name, ", ".join(files), len(lines), +left)


def _problem(source: Source) -> str:
    if not isinstance(source.format, Csv | Json):
        return f"a {source.format.name} source takes no lines"
    if not Path(source.format.path).is_dir():
        return f"the source reads one file, {source.format.path}; add the lines to it"
    return ""


def _of_source(table: pa.Table, source: str) -> list[JsonObject]:
    return [row for row in table.to_pylist() if row["box"] == source]


def _stays(letter: JsonMapping) -> str:
    """Why a letter cannot go in again; empty if it can."""
    if str(letter["reason"] or "").startswith("late: "):
        return LATE
    if letter["raw"] is None or letter["line"] is None or letter["tuples"] != 1:
        return WHOLE
    if len(letter["raw"]) > RAW_LIMIT:
        return CUT
    return NO_TEXT if "\ufffd" in letter["raw"] else ""


def _files(source: Source, letters: list[JsonObject], headers: Mapping[str | None, str]) -> dict[str, str]:
    """The files to make: one for each header that the letters' own files have."""
    assert isinstance(source.format, Files)
    suffix = "csv" if isinstance(source.format, Csv) else "json"
    texts: dict[str, list[str]] = {}
    for letter in letters:
        texts.setdefault(headers[letter["file"]], []).append(f"{letter['raw']}\n")
    folder, batch = Path(source.format.path).resolve(), uuid.uuid4().hex[:12]
    return {
        str(folder / f"replayed-{batch}-{part}.{suffix}"): header + "".join(lines)
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


def _finish(checkpoint: Path, sources: Iterable[Source]) -> None:
    """Give in the files of all batches that were begun, also if a source's folder was moved since."""
    begun = _batches(checkpoint)
    batches = [batch for batch in begun if batch.ready or _has_its_folders(batch)]
    if not all(batch.ready for batch in begun):
        for batch in batches:
            for path, text in batch.files.items() if not batch.ready else ():
                durable.write_bytes(_hidden(Path(path)), text.encode())
        crash_point("replay-written")
        batches = [_Batch(b.source, b.letters, dict.fromkeys(b.files, ""), ready=True) for b in batches]
        _save(checkpoint, batches)
    crash_point("replay-ready")
    today = {s.name: Path(s.format.path) for s in sources if isinstance(s.format, Files)}
    for batch in batches:
        for file in map(Path, batch.files):
            for folder in {file.parent, today.get(batch.source, file.parent)}:
                with suppress(FileNotFoundError, NotADirectoryError):  # renamed before
                    durable.layer.replace(folder / _hidden(file).name, folder / file.name)
                    durable.sync_directory(folder)
    crash_point("replay-given")


def _has_its_folders(batch: _Batch) -> bool:
    """Whether the folders that were to get the lines are still there. Without them the letters stay."""
    return all(Path(path).parent.is_dir() for path in batch.files)


def _hidden(path: Path) -> Path:
    return path.with_name(f".{path.name}")
