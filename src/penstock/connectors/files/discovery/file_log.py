"""The log of a source's files: which came, in which order, and what became of them.

It makes a folder a stream that can be read again: a file keeps its number. Each line carries a checksum over
its own number and text, so a line that was changed, lost, doubled or moved is noticed. A line without its end
was being written when the process died; what it says is found again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from penstock.connectors.contract import Arrival, RefusedInput
from penstock.connectors.files.discovery.settling import Signature
from penstock.connectors.files.discovery.source_path import SourcePath
from penstock.connectors.paths import shown_path
from penstock.connectors.tables import first_seq
from penstock.store.durable import checksum, make_directory, open_text, write_bytes
from penstock.store.errors import CorruptFileError

_LOG = "files.jsonl"
Event = Mapping[str, str | int | float]


@dataclass(frozen=True)
class KnownFile:
    """A file of the stream. It is read as it was when its signature was taken."""

    name: str
    signature: Signature
    arrived: float


@dataclass(frozen=True)
class Change:
    """What was found about a file after it was read, with the number of tuples that are not read."""

    file: int
    reason: str
    tuples: int


class FileLog:
    """The files of a source in order of discovery. Everything is appended, nothing is ever taken back."""

    def __init__(self, directory: Path) -> None:
        make_directory(directory)
        self._path = directory / _LOG
        self.exists = self._path.exists()
        self.folder, self.spelt = "", ""  # the real folder, and how its path was written
        self.known: list[KnownFile] = []
        self.current: dict[str, int] = {}  # by name, the number of its newest version
        self.signatures: list[Signature] = []  # as last seen, by number
        self._ends: list[int] = []  # by number, the bytes up to its end and in all files before it
        self.content: dict[int, int] = {}  # by number, a checksum of what was read
        self.refused: set[int] = set()  # files of which nothing was read
        self.changes: list[Change] = []
        self._lines = 0
        self._unwritten: list[str] = []
        for event in self._remembered():
            self._apply(event)

    # -- what happens to files

    def in_folder(self, path: SourcePath, spelt: str, renamed: tuple[str, str] | None = None) -> None:
        """Note in which folder the files are from now on."""
        old, new = renamed or ("", "")
        self._note([{"is": "folder", "folder": path.folder, "spelt": spelt, "old": old, "new": new}])

    def add(self, files: list[KnownFile]) -> None:
        """Add files in this order."""
        self._note(
            [
                {
                    "is": "file",
                    "name": f.name,
                    "size": f.signature.size,
                    "mtime": f.signature.mtime,
                    "arrived": f.arrived,
                }
                for f in files
            ]
        )

    def was_read(self, number: int, content: int) -> None:
        """Note that a file was read to its end, and the checksum of what was read. Call `flush` later."""
        if self.content.get(number) != content:
            self._note([{"is": "read", "file": number, "content": content}], now=False)

    def flush(self) -> None:
        """Write what was noted so far. A ticket must not know more about files than the log does."""
        if self._unwritten:
            with open_text(self._path, "a") as log:
                log.write("".join(self._unwritten))
            self._unwritten.clear()
            self.exists = True

    def was_refused(self, number: int) -> None:
        """Note that nothing of a file was read: if it changes, it may be read then."""
        if number not in self.refused:
            self._note([{"is": "refused", "file": number}])

    def anew(self, name: str) -> None:
        """Note that a file of this name counts as a new one, when it is seen again."""
        if name in self.current:
            self._note([{"is": "anew", "name": name}])

    def has_changed(self, number: int, signature: Signature, reason: str = "", tuples: int = 0) -> None:
        """Note that a file looks different now; with a reason if tuples are lost by that."""
        seen: Event = {"is": "changed", "file": number, "size": signature.size, "mtime": signature.mtime}
        self._note([{**seen, "reason": reason, "tuples": tuples}])

    # -- what readers ask

    def path(self, number: int) -> str:
        """The absolute path of a file."""
        return f"{self.folder}/{self.known[number].name}"

    def arrived(self, numbers: set[int]) -> float | None:
        """When the first of these files came."""
        return min((self.known[number].arrived for number in numbers), default=None)

    def arrivals(self, rows: Iterable[tuple[int, int]]) -> list[Arrival]:
        """When tuples came, from (file, tuples)."""
        return [(self.known[number].arrived, tuples) for number, tuples in rows]

    def bytes_before(self, number: int) -> int:
        """The bytes in all files before one, by their sizes when they were first seen."""
        return self._ends[number - 1] if number else 0

    def letter(self, number: int, reason: str, tuples: int = 1) -> RefusedInput:
        """A dead letter about a file as a whole."""
        path = shown_path(self.path(number))
        return {"raw": path, "reason": reason, "offset": first_seq(number), "tuples": tuples, "file": path}

    def check(self, file: int) -> None:
        """Refuse a position beyond the end: the log that it was made with is not this one."""
        if file > len(self.known):
            raise CorruptFileError(
                f"{self._path}: the list of files that were read is lost, in part or as a whole",
                found=f"{len(self.known)} files",
                expected=f"at least {file}, which the last ticket has read",
                hint="restore it from a copy of the checkpoint; or start with a new checkpoint",
            )

    # -- the lines

    def _note(self, events: list[Event], *, now: bool = True) -> None:
        for event in events:
            text = json.dumps(event)
            self._unwritten.append(f"{_sum(self._lines, text)} {text}\n")
            self._lines += 1
            self._apply(event)
        if now:
            self.flush()

    def _remembered(self) -> list[Event]:
        if not self.exists:
            return []
        lines = self._path.read_bytes().splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):
            # The log is replaced as a whole, because the numbers of all files depend on it.
            lines.pop()
            write_bytes(self._path, b"".join(lines))
        self._lines = len(lines)
        return [self._event(number, line) for number, line in enumerate(lines)]

    def _event(self, number: int, line: bytes) -> Event:
        given, _, text = line.decode("utf-8", "replace").rstrip("\n").partition(" ")
        if given != _sum(number, text):
            raise CorruptFileError(
                f"{self._path}: line {number + 1} was changed, or lines are missing before it",
                found=repr(line[:60]),
                hint="restore the file from a copy of the checkpoint; or start with a new checkpoint",
            )
        return cast("Event", json.loads(text))

    def _apply(self, event: Event) -> None:
        number = int(event.get("file", 0))
        match event["is"]:
            case "folder":
                self.folder, self.spelt = str(event["folder"]), str(event["spelt"])
                self._rename(str(event["old"]), str(event["new"]))
            case "file":
                self._append(str(event["name"]), _signature(event), float(event["arrived"]))
            case "read":
                self.content[number] = int(event["content"])
            case "anew":
                self.current.pop(str(event["name"]), None)
            case "refused":
                self.refused.add(number)
            case "changed":
                self.signatures[number] = _signature(event)
                if event["reason"]:
                    self.changes.append(Change(number, str(event["reason"]), int(event["tuples"])))

    def _append(self, name: str, signature: Signature, arrived: float) -> None:
        self.current[name] = len(self.known)
        self.known.append(KnownFile(name, signature, arrived))
        self.signatures.append(signature)
        self._ends.append((self._ends[-1] if self._ends else 0) + signature.size)

    def _rename(self, old: str, new: str) -> None:
        """A source of one file, which has another name now."""
        if old in self.current and new:
            number = self.current[new] = self.current.pop(old)
            self.known[number] = KnownFile(new, self.known[number].signature, self.known[number].arrived)


def _sum(number: int, text: str) -> str:
    return f"{checksum(f'{number} {text}'.encode()):08x}"


def _signature(event: Event) -> Signature:
    return Signature(int(event["size"]), int(event["mtime"]))
