"""Files as source and sink: CSV, JSON lines, Parquet."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, ClassVar, TypeVar
from urllib.parse import unquote

from penstock.model.errors import ExpressionError, shown
from penstock.model.formats.description import (
    Options,
    Role,
    ShedBy,
    SinkFormat,
    SourceFormat,
    checked_path,
)
from penstock.model.formats.file_options import check_role, spelled
from penstock.model.types import Schema, parse_schema
from penstock.model.user_functions import Function, function_of

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Files(SourceFormat, SinkFormat):
    """Files of one format, or a directory that grows: a source, or a sink that adds files.

    Options: Spark's names.
    """

    sink: ClassVar[str] = "penstock.connectors.files.sink:FilesSink"

    path: str
    schema: Schema | None = None
    options: Options = ()
    # sinks only: called in the writing task with the rows right before they become visible, gives the rows to
    # write
    stamp: Function | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", checked_path(_local(self.path)))

    @property
    def at_once(self) -> bool:
        """True if a task shows its file when it is written, not when the train is committed."""
        return self.stamp is not None

    @property
    def append(self) -> bool:
        """True if the sink may write into a folder that holds the rows of another checkpoint."""
        return dict(self.options).get("append") == "true"

    @property
    def directory(self) -> str | None:
        return self.path

    def text(self) -> str:
        return f"{self.name} {self.path}"

    def check(self, role: Role) -> None:
        check_role(self.name, self.options, role)

    @classmethod
    def spell_options(cls, options: Iterable[tuple[str, object]]) -> Options:
        return spelled(cls.name, options)


@dataclass(frozen=True)
class Csv(Files):
    """CSV files."""

    name: ClassVar[str] = "csv"
    input: ClassVar[str] = "penstock.connectors.files.tail:text_input"
    shed_by: ClassVar[ShedBy] = "blocks"


@dataclass(frozen=True)
class Json(Files):
    """Files of JSON lines."""

    name: ClassVar[str] = "json"
    input: ClassVar[str] = "penstock.connectors.files.tail:text_input"
    shed_by: ClassVar[ShedBy] = "blocks"


@dataclass(frozen=True)
class Parquet(Files):
    """Parquet files."""

    name: ClassVar[str] = "parquet"
    input: ClassVar[str] = "penstock.connectors.files.parquet:ParquetFiles"
    shed_by: ClassVar[ShedBy] = "slices"


_Kind = TypeVar("_Kind", bound=Files)


def csv(path: str, schema: str | Schema | None = None, **options: object) -> Csv:
    """CSV files: `header` (columns go by their names), `sep`.

    Sinks also `append`, to add to a folder with another checkpoint's rows.

    Sources also `quote`, `comment`, `nullValue`, `timestampFormat`, as in Spark; and `max_line`, `settle`,
    `tail`, `wait`, `moved_from`: see the guide to files.
    """
    return _files(Csv, path, schema, options)


def json(path: str, schema: str | Schema | None = None, **options: object) -> Json:
    """JSON lines; sinks: `append`.

    Sources: `timestampFormat` as in Spark, `max_line`, `settle`, `tail`, `wait`, `moved_from`.
    """
    return _files(Json, path, schema, options)


def parquet(path: str, schema: str | Schema | None = None, **options: object) -> Parquet:
    """Parquet files; sinks: `compression`, `append`; sources: `settle`, `wait`, `moved_from`."""
    return _files(Parquet, path, schema, options)


def stamped(files: _Kind, stamp: Callable[[pa.Table], pa.Table] | str) -> _Kind:
    """The same sink, written at once: each task calls `stamp(rows)` and shows what it gives right away.

    Rows are seen before their train is committed. After a crash the train runs again, and a file that is
    complete is kept as it is: so the network must give the same rows again, only what `stamp` sets may
    differ.
    """
    return replace(files, stamp=function_of(stamp))


def _files(kind: type[_Kind], path: str, schema: str | Schema | None, options: Mapping[str, object]) -> _Kind:
    if not isinstance(path, str | PathLike):
        raise ExpressionError("not a path", found=shown(path), expected="a text", hint=f"{kind.name}('in/')")
    parsed = None if schema is None else parse_schema(schema)
    return kind(os.fsdecode(path), parsed, kind.spell_options(options.items()))


def _local(path: str) -> str:
    """The path of a `file:` URI; any other text is a path as it stands.

    >>> _local("file:///in/a%20b"), _local("in/a%20b")
    ('/in/a b', 'in/a%20b')
    """
    uri = re.fullmatch(r"file:(?://(?:localhost)?(?=/))?(/.*)", path, re.DOTALL)
    return path if uri is None else unquote(uri[1], errors="surrogateescape")
