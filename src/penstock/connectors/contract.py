"""The contract between an engine and a connector.

An engine asks an `Input` for a limited number of tuples beyond a `Position`. The answer, `Taken`, names
slices: pieces of input that never change, so a train can be read again. Slices and the new position go into
the train's ticket as plain JSON. Tasks then ask each slice for its bytes and its tuples. Tuples leave through
a `Sink`.

Nothing here depends on an engine, so a connector can be tested without one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, NamedTuple, NotRequired, Protocol, Self, TypeAlias, TypedDict, TypeVar

import numpy as np
import pyarrow as pa

from penstock.model.boxes import Source
from penstock.model.errors import PenstockError
from penstock.model.types import Schema

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"
_CLASS = "is"
MAX_TRAIN_BYTES = 256 << 20
"""The most bytes that a train takes of a source, unless its policy says otherwise."""


class TicketPart:
    """A frozen dataclass that goes into a ticket.

    Its fields are plain JSON; its class is written beside them.
    """

    def plain(self) -> dict[str, JSON]:
        """The form for the ticket."""
        return {_CLASS: _name_of(type(self)), **vars(self)}

    @classmethod
    def of(cls, plain: Mapping[str, JSON]) -> Self:
        """Read the ticket's form."""
        fields = dict(plain)
        part = _class_of(str(fields.pop(_CLASS)))(**fields)
        if not isinstance(part, cls):
            raise TypeError(f"{plain} is no {cls.__name__}")
        return part


def _name_of(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


@cache
def _class_of(name: str) -> type[Any]:
    return load_class(name)


def load_class(name: str) -> type[Any]:
    """Load the class that 'module:Class' names."""
    module, _, path = name.partition(":")
    kind: type[Any] = getattr(import_module(module), path)
    return kind


class Position(TicketPart):
    """How far an input has been read. Each input has its own class of position."""


@dataclass(frozen=True)
class Decoded:
    """The tuples of a slice, with `_seq`, and its refused rows: see `connectors.tables.REFUSED`."""

    tuples: pa.Table
    refused: pa.Table


@dataclass(frozen=True)
class Thinned:
    """What stays of a slice if blocks of its lines are left out before decoding.

    `offered` and `shed`: tuples, good or bad, counted without decoding. `last`: the last tuple of each block
    that was left out, to tell how far in time the slice goes.
    """

    decoded: Decoded
    offered: int
    shed: int
    last: pa.Table | None = None


@dataclass(frozen=True)
class Unread:
    """What is known of a slice without reading it: the `_seq` of its first tuple, and how many there are.

    `newest`: the largest time, in microseconds; None: it is not known.
    """

    first: int
    tuples: int
    newest: int | None = None


class Stays(Protocol):
    """Decides which blocks stay. A block's number is the `_seq` of its lines without the last `bits`."""

    @property
    def bits(self) -> int:
        """How many bits of `_seq` tell lines of a block apart."""

    def __call__(self, numbers: np.ndarray) -> np.ndarray:
        """True for each number that stays."""


class SliceLostError(PenstockError):
    """The input of a slice is not what its ticket says any more: its tuples are lost.

    `path`: the file. `tuples`: how many are lost, as the ticket knows. An engine leaves the slice out and
    writes a dead letter with `reason`.

    >>> SliceGoneError("in/a.csv", tuples=7).reason
    'the file was deleted before it was read'
    """

    def __init__(self, path: str, reason: str, *, tuples: int = 1) -> None:
        self.path, self.reason, self.tuples = path, reason, tuples
        super().__init__(f"{path}: {reason}", found=f"{tuples:,} tuples lost")


class SliceGoneError(SliceLostError):
    """The file of a slice was deleted before it was read."""

    def __init__(self, path: str, *, tuples: int = 1) -> None:
        super().__init__(path, "the file was deleted before it was read", tuples=tuples)


class SliceChangedError(SliceLostError):
    """The file of a slice was changed, truncated or replaced before it was read."""


class Location(NamedTuple):
    """The file and the line, or row, that a tuple comes from; lines count from 1."""

    file: str
    line: int


class Slice(TicketPart, ABC):
    """A piece of input that never changes. A task reads and decodes it without help from the driver.

    If its input has changed nevertheless, `read`, `tuples` and `check` raise SliceLostError.
    """

    @abstractmethod
    def read(self) -> bytes:
        """The bytes of the slice. They may travel to another task before they are decoded."""

    def check(self) -> None:
        """Raise SliceLostError if the input has changed since the ticket was written. Cheap: reads no data.

        For an engine that reads `whole_file` in its own way, before and after it does so.
        """

    @abstractmethod
    def decode(self, source: Source, data: bytes | memoryview) -> Decoded:
        """The source's columns with `_seq`, the place in arrival order, and the rows that are not tuples."""

    @abstractmethod
    def offered(self, source: Source, data: bytes | memoryview) -> int:
        """How many tuples the bytes offer, good or bad.

        Count them without decoding: the engine compares the number with what `decode` gives, and a train in
        which they differ fails.
        """

    def tuples(self, source: Source) -> Decoded:
        """Read and decode in one step."""
        return self.counted_tuples(source)[0]

    def counted_tuples(self, source: Source) -> tuple[Decoded, int]:
        """Read and decode, and the number of tuples offered."""
        data = self.read()
        return self.decode(source, data), self.offered(source, data)

    def thinned(self, source: Source, data: bytes | memoryview, stays: Stays) -> Thinned | None:
        """Decode only the blocks that stay; None: they cannot be told apart without decoding."""
        del source, data, stays
        return None

    def unread(self) -> Unread | None:
        """What an engine must know to leave the whole slice out unread; None: it must be read for that."""
        return None

    def location(self, seq: int) -> Location | None:
        """Where the tuple with this `_seq` comes from; None if it is not from this slice's file."""
        del seq
        return None

    @abstractmethod
    def weight(self) -> int:
        """The approximate number of bytes to read, so that tasks get even shares."""

    def key_group(self) -> int:
        """The group of keys it belongs to, if the writer partitions the source."""
        return 0

    def whole_file(self) -> str | None:
        """The path, if the slice is one whole file: an engine may then read it in its own way."""
        return None


class RefusedInput(TypedDict):
    """A piece of input that cannot be read at all, as a dead letter.

    `tuples`: how many tuples it stands for. A piece whose tuples cannot be counted stands for one. `file`:
    its path. `line`: its first line or row, from 1, if it is not the whole file.
    """

    raw: str
    reason: str
    offset: int
    tuples: NotRequired[int]
    file: NotRequired[str]
    line: NotRequired[int]


Arrival = tuple[float, int]
"""So many tuples came at this time, in seconds of wall time."""


@dataclass(frozen=True)
class Taken:
    """What an input gives to a train: slices of a source, or entries of a connection point.

    `newest`: its largest time in microseconds, if known without reading. `arrived`: when the oldest of its
    tuples entered the network, in seconds. `more`: more input is available now. `waiting`: there is input
    that may not be taken yet, such as a file still being written; the input is not used up. `horizon` and
    `idle`: what the input itself knows about later tuples. `arrivals`: when its tuples came, if the input
    can tell; otherwise all of them count as having come at `arrived`. `lost`: about so many tuples more would
    have come if nothing were shed further up. `oldest`: the least time of its tuples, if any may be older
    than promised: those of a connection point above which an idle input has woken up.
    """

    slices: Sequence[TicketPart]
    position: Position | None
    rows: int
    newest: int | None = None
    refused: Sequence[RefusedInput] = ()
    more: bool = False
    waiting: bool = False
    arrived: float | None = None
    horizon: int | None = None
    idle: bool = False
    arrivals: Sequence[Arrival] = ()
    lost: int = 0
    oldest: int | None = None


@dataclass(frozen=True)
class Waiting:
    """What an input has for later trains. `arrived`: when the oldest of it came, in seconds of wall time.

    None always means unknown, never zero. `lost`: as in `Taken`.
    """

    tuples: int | None = None
    bytes: int | None = None
    arrived: float | None = None
    lost: int = 0


_Position = TypeVar("_Position", bound=Position)


class Input(ABC, Generic[_Position]):
    """One source, seen from the driver. In `directory` it keeps what it must remember.

    `max_bytes`: what one `take` should not exceed. The engine sets it before each train. One line, row group
    or delivery may be larger.
    """

    max_bytes: int = MAX_TRAIN_BYTES

    @abstractmethod
    def __init__(self, source: Source, directory: Path) -> None: ...

    @abstractmethod
    def take(self, position: _Position | None, limit: int) -> Taken:
        """Take up to `limit` tuples beyond the position (None: the beginning). Must not wait for input.

        The position alone decides: it is asked for the same again if the ticket could not be written.
        """

    def waiting(self, position: _Position | None) -> Waiting:
        """Look at what lies beyond the position without taking it. Called a few times a second.

        It must cost little; an input that cannot tell leaves it as it is.
        """
        del position
        return Waiting()

    def here(self, piece: TicketPart) -> TicketPart:
        """A slice of an earlier ticket where it is now: its folder may have been moved since."""
        return piece

    def keep_from(self, position: _Position | None) -> None:
        """Learn, before the first `take`, that trains after this position may still be run again."""

    def committed(self, position: _Position | None) -> None:
        """Learn that no train will ask again for anything before the position. Most inputs ignore this."""

    def close(self) -> None:
        """Close connections and files."""


@dataclass(frozen=True)
class Target:
    """Which output a sink writes. `run` distinguishes the files of this run from those of any other.

    `sync`: what is written must survive a power cut.
    """

    output: str
    schema: Schema
    run: str
    sync: bool = False


@dataclass(frozen=True)
class Written:
    """What a task wrote: files to move into place at the commit, and files that are already visible."""

    moves: tuple[tuple[str, str], ...] = ()
    shown: tuple[str, ...] = ()


class Sink:
    """Where one output's tuples go: either a `TaskSink` or a `DriverSink`."""

    def start(self, moves: Sequence[Sequence[str]], last: int) -> None:
        """Prepare for the first train, or refuse what is there.

        `moves` of the last commit may still be pending. `last`: the newest train with a ticket.
        """


class TaskSink(Sink, ABC):
    """A sink written by the tasks that have the tuples.

    It is pickled and sent to them. A replayed train writes the same files.
    """

    @abstractmethod
    def write(self, table: pa.Table, train: int, partition: int) -> Written:
        """Write a partition's share of a train."""


class DriverSink(Sink, ABC):
    """A sink that gets each train's tuples in the driver, in order, once the train is committed.

    After a crash a train may come again, and after `deliver` has raised it does.
    """

    @abstractmethod
    def deliver(self, table: pa.Table) -> None:
        """Take the visible columns of a train's tuples."""
