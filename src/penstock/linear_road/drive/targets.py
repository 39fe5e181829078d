"""Where a driver delivers to: a directory, a TCP connection, standard output.

Idea: delivery has two steps. `stage` does the work that may be done early: it writes the files of a second
under temporary names, or collects its bytes. `deliver` makes it visible when the second is due, and does as
little as possible: a rename, or one send. So the time between due and delivered stays small, however large
the second is.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol
from urllib.parse import urlsplit

from penstock.linear_road.drive.slices import Slice
from penstock.linear_road.errors import TargetError
from penstock.model.formats.feed import LISTING
from penstock.store.durable import FILE_MODE, make_directory, open_file, opener, sync_directory, sync_file
from penstock.store.file_names import delivered_file, delivery_of


class Target(Protocol):
    """What a driver needs from a place to deliver to."""

    def stage(self, second: int, slices: Sequence[Slice]) -> None:
        """Take the slices of a second, one for each group, without showing them."""

    def deliver(self) -> None:
        """Make the staged second visible."""

    def close(self) -> None:
        """Close the target; a second that was staged and not delivered vanishes."""


@dataclass
class DirectoryTarget:
    """A directory that a stream reader follows: one file for each second and group, renamed when due.

    A second without rows makes no file. `_delivered.jsonl` lists the seconds in order, one line each. Names
    that start with a dot or an underscore are not rows. `sync`: a power cut loses nothing that was delivered.
    """

    path: Path
    format: str = "csv"
    sync: bool = False
    _staged: list[tuple[Path, Path]] = field(default_factory=list)
    _line: bytes = b""

    def stage(self, second: int, slices: Sequence[Slice]) -> None:
        self._line = _listed(second, slices, self.format)
        for group, piece in enumerate(slices):
            final = self.path / delivered_file(second, group, self.format)
            # After a resume, some groups of a second may already exist.
            if piece.rows and not final.exists():
                aside = final.with_name(f".{final.name}.tmp")
                # Noted before it is written: after a failed write, `close` removes it.
                self._staged.append((aside, final))
                _write(aside, piece)
                if self.sync:
                    sync_file(aside)

    def deliver(self) -> None:
        for aside, final in self._staged:
            aside.replace(final)
        self._staged.clear()
        if self.sync:
            sync_directory(self.path)  # the names before the list that vouches for them
        # One write at the end: whoever follows the list sees the second as a whole, and need not scan the
        # directory.
        with open_file(self.path / LISTING, "ab") as listing:
            listing.write(self._line)
        if self.sync:
            sync_file(self.path / LISTING)

    def close(self) -> None:
        for aside, _ in self._staged:
            aside.unlink(missing_ok=True)
        self._staged.clear()

    def delivered(self) -> list[int]:
        """The seconds that have files here, in order."""
        deliveries = (delivery_of(entry.name) for entry in self.path.iterdir())
        return sorted({delivery.second for delivery in deliveries if delivery is not None})


def _listed(second: int, slices: Sequence[Slice], form: str) -> bytes:
    """The line that lists a second: its time, and name, group, bytes and rows of each file."""
    files = [
        [delivered_file(second, group, form), group, len(piece.data), piece.rows]
        for group, piece in enumerate(slices)
        if piece.rows
    ]
    return json.dumps({"at": second, "files": files}).encode() + b"\n"


def _write(file: Path, piece: Slice) -> None:
    descriptor = opener(str(file), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        rest = piece.data.data
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    finally:
        os.close(descriptor)


@dataclass
class TcpTarget:
    """A connection the driver opens: the rows as lines of text, in order.

    A slow receiver makes the driver late, never lossy.
    """

    connection: socket.socket
    _staged: list[Slice] = field(default_factory=list)

    @classmethod
    def connect(cls, host: str, port: int) -> TcpTarget:
        try:
            connection = socket.create_connection((host, port), timeout=10)
        except OSError as error:
            raise TargetError(
                f"nothing takes the connection at tcp://{host}:{port} ({error.strerror or error})",
                hint="start the receiver first",
            ) from error
        connection.settimeout(None)
        # A second goes out in one burst. Waiting for more bytes would only make it late.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return cls(connection)

    def stage(self, second: int, slices: Sequence[Slice]) -> None:  # noqa: ARG002 - lines carry their time
        self._staged = [piece for piece in slices if piece.rows]

    def deliver(self) -> None:
        for piece in self._staged:
            self.connection.sendall(piece.data.data)
        self._staged = []

    def close(self) -> None:
        try:
            # Let the receiver see the end of the stream after the last byte, not a reset.
            self.connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        finally:
            self.connection.close()


@dataclass
class StreamTarget:
    """Standard output, or any open binary stream."""

    stream: BinaryIO
    _staged: list[Slice] = field(default_factory=list)

    def stage(self, second: int, slices: Sequence[Slice]) -> None:  # noqa: ARG002 - lines carry their time
        self._staged = [piece for piece in slices if piece.rows]

    def deliver(self) -> None:
        for piece in self._staged:
            self.stream.write(piece.data.data)
        self.stream.flush()
        self._staged = []

    def close(self) -> None:
        self._staged = []


def open_target(name: str, form: str, *, resume: bool = False, sync: bool = False) -> Target:
    """Open what `--to` names: a directory path, tcp://HOST:PORT, or - for standard output."""
    if name.startswith("kafka:"):
        raise TargetError(
            f"--to {name}: Kafka targets come later", expected="a directory, tcp://HOST:PORT or -"
        )
    if "://" not in name and name != "-":
        return _open_directory(Path(name), form, resume=resume, sync=sync)
    if form != "csv":
        raise TargetError(f"--to {name} takes text only", hint=f"{form} can be driven to a directory")
    if resume:
        raise TargetError(
            f"--resume cannot go on with {name}, which does not tell what it has received",
            expected="a directory",
        )
    return StreamTarget(sys.stdout.buffer) if name == "-" else _connect(name)


def _connect(name: str) -> TcpTarget:
    parts = urlsplit(name)
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme != "tcp" or not parts.hostname or port is None:
        raise TargetError(f"--to {name} is no target", expected="a directory, tcp://HOST:PORT or -")
    return TcpTarget.connect(parts.hostname, port)


def _open_directory(path: Path, form: str, *, resume: bool, sync: bool) -> DirectoryTarget:
    if path.exists() and not path.is_dir():
        raise TargetError(f"--to {path} is a file", expected="a directory, tcp://HOST:PORT or -")
    try:
        make_directory(path)
    except OSError as error:
        raise TargetError(f"--to {path} cannot be made: {error.strerror}") from error
    target = DirectoryTarget(path, form, sync)
    delivered = target.delivered()
    if delivered and not resume:
        raise TargetError(
            f"--to {path} already holds {len(delivered)} delivered seconds",
            hint="choose an empty directory, or --resume to go on",
        )
    for leftover in path.glob(".t*.tmp"):
        leftover.unlink()
    _cut_listing(path / LISTING)
    if sync:
        (path / LISTING).touch(mode=FILE_MODE)  # its name is flushed with those of the first second
    return target


def _cut_listing(listing: Path) -> None:
    """Remove a last line that a full disk or a power cut has left without its end."""
    if listing.is_file():
        whole = listing.read_bytes().rfind(b"\n") + 1
        with listing.open("r+b") as file:
            file.truncate(whole)
