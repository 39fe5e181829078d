"""Dead letters: tuples that could not be read or whose expression failed, with the reason and the place.

Each train and partition has one file, named after both. A replayed train writes the same file again, so each
letter is kept once. Nothing else in the run depends on this table.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.store import durable
from penstock.store.errors import CorruptFileError, StoreError
from penstock.store.file_names import number_of, numbered_part

# In this order: what stands in quotes may hold numbers.
_VALUES = ((re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`"), "'…'"), (re.compile(r"-?\b\d[\d.,:-]*\b"), "#"))

_TUPLES = b"tuples"

SCHEMA = pa.schema(
    [
        ("raw", pa.string()),
        ("reason", pa.string()),
        ("source", pa.string()),
        ("offset", pa.string()),
        ("box", pa.string()),
        ("train", pa.int64()),
        ("tuples", pa.int64()),  # 1, or what a refused piece of a file holds
        ("file", pa.string()),
        ("line", pa.int64()),  # of the file, from 1; the row of a Parquet file
    ]
)


def reason_shape(reason: str) -> str:
    """A reason without the values in it, so that letters of one kind count together.

    >>> reason_shape("line 7: 'x1' is no INT"), reason_shape("late: timestamp 5 us is behind 7 us")
    ("line #: '…' is no INT", 'late: timestamp # us is behind # us')
    """
    for values, sign in _VALUES:
        reason = values.sub(sign, reason)
    return reason


class DeadLetters:
    """The dead-letter table of a checkpoint.

    Any process may read it. It can be pickled, so tasks may write.
    """

    def __init__(self, root: Path | str, *, sync: bool = True) -> None:
        self.path, self._sync = Path(root) / "dead_letters", sync

    def append(self, subnetwork: str, train: int, letters: pa.Table, *, part: int | str = 0) -> int:
        """Write the letters of one partition of a train; returns how many tuples they stand for.

        Columns: raw, reason, source, offset, box, tuples, file, line. A missing one is null, `tuples` is then
        1, and `train` is filled in.
        """
        path = self._file(subnetwork, train, part)
        if letters.num_rows == 0:
            self._forget(path)  # a replay without letters must not keep those of the first attempt
            return 0
        durable.make_directory(self.path, sync=self._sync)  # letters hold raw input
        durable.make_directory(path.parent, sync=self._sync)
        sink = pa.BufferOutputStream()
        table = _conform(letters, train)
        tuples = int(pc.sum(table.column("tuples")).as_py())
        pq.write_table(table.replace_schema_metadata({_TUPLES: str(tuples)}), sink, write_page_checksum=True)
        durable.write_bytes(path, memoryview(sink.getvalue()), sync=self._sync)
        return tuples

    def _forget(self, path: Path) -> None:
        if path.exists():
            path.unlink(missing_ok=True)
            if self._sync:
                durable.sync_directory(path.parent)

    def read(self, subnetwork: str | None = None, *, after: int = -1, through: int | None = None) -> pa.Table:
        """Letters of the trains after `after`, up to `through` if given, by sub-network, train and part."""
        tables = [_read(path) for path in self._files(subnetwork, after, through)]
        return pa.concat_tables([SCHEMA.empty_table(), *tables])

    def names(self, through: Mapping[str, int] | None = None) -> list[str]:
        """The tables of letters by name, one for each train and part of a sub-network.

        `through`: only those of trains up to this one, by sub-network.
        """
        files = self._files(None, -1, None)
        if through is not None:
            last = {_quoted(name): train for name, train in through.items()}
            files = [path for path in files if number_of(path.name) <= last.get(path.parent.name, -1)]
        return [str(path.relative_to(self.path)) for path in files]

    def table(self, name: str) -> pa.Table:
        """The letters of one of `names()`."""
        return _read(self.path / name)

    def tables(self) -> Iterator[pa.Table]:
        """The letters of one train and part after the other: there may be millions."""
        return (_read(path) for path in self._files(None, -1, None))

    def counts(self, column: str = "reason", subnetwork: str | None = None) -> dict[str, int]:
        """Count refused tuples by 'reason', 'box' or 'source', most frequent first.

        Reasons count without the values in them: late tuples under one, whatever their times.
        """
        if column not in SCHEMA.names:
            raise StoreError(
                f"dead letters have no column '{column}'", expected=f"one of: {', '.join(SCHEMA.names)}"
            )
        counted: Counter[str] = Counter()
        for path in self._files(subnetwork, -1, None):
            letters = _read(path)
            for value, tuples in zip(letters[column].to_pylist(), letters["tuples"].to_pylist(), strict=True):
                counted[reason_shape(str(value or "")) if column == "reason" else str(value or "")] += tuples
        return dict(counted.most_common())

    def count(self, subnetwork: str | None = None) -> int:
        """How many tuples were refused, from the files' footers alone. The run's limit uses this."""
        return sum(_tuples(path) for path in self._files(subnetwork, -1, None))

    def _file(self, subnetwork: str, train: int, part: int | str) -> Path:
        name = part if isinstance(part, int) else quote(part, safe="")
        return self.path / _quoted(subnetwork) / f"{numbered_part(train, name)}.parquet"

    def _files(self, subnetwork: str | None, after: int, through: int | None) -> list[Path]:
        folder = "*" if subnetwork is None else _quoted(subnetwork)
        files = sorted(path for path in self.path.glob(f"{folder}/*.parquet") if path.name[0] != ".")
        return [
            path
            for path in files
            if after < number_of(path.name) <= (through if through is not None else 10**12)
        ]

    def subnetworks(self) -> list[str]:
        """The sub-networks that have letters."""
        return sorted({unquote(path.parent.name) for path in self._files(None, -1, None)})


def _quoted(name: str) -> str:
    # A name is at most 120 bytes, and stays shorter than a file name may be: letters are left as they are.
    # Escape a leading dot too, so that '..' does not lead out of the table.
    return re.sub(r"[%/\x00-\x1f]|^\.", lambda match: f"%{ord(match[0]):02X}", name)


def _conform(letters: pa.Table, train: int) -> pa.Table:
    unknown = set(letters.column_names) - set(SCHEMA.names)
    if unknown:
        raise StoreError(
            f"a dead letter has no column '{min(unknown)}'", expected=f"some of: {', '.join(SCHEMA.names)}"
        )
    columns = [
        letters[f.name].cast(f.type) if f.name in letters.column_names else pa.nulls(letters.num_rows, f.type)
        for f in SCHEMA
    ]
    table = pa.table(columns, schema=SCHEMA)
    at, tuples = SCHEMA.get_field_index("train"), SCHEMA.get_field_index("tuples")
    table = table.set_column(at, SCHEMA.field(at), pa.repeat(pa.scalar(train, pa.int64()), table.num_rows))
    return table.set_column(tuples, SCHEMA.field(tuples), pc.fill_null(table.column(tuples), 1))


def _read(path: Path) -> pa.Table:
    try:
        data = pa.BufferReader(path.read_bytes())
        letters = pq.read_table(data, use_threads=False, page_checksum_verification=True).cast(SCHEMA)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _torn(path, str(error)) from None
    if pc.unique(letters["train"]).to_pylist() != [number_of(path.name)]:
        raise _torn(path, "the letters of another train")
    return letters


def _tuples(path: Path) -> int:
    try:
        return int((pq.read_metadata(path).metadata or {})[_TUPLES])
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise _torn(path, str(error)) from None


def _torn(path: Path, problem: str) -> CorruptFileError:
    return CorruptFileError(
        f"{path}: this file of dead letters cannot be read",
        found=problem,
        hint="delete it; nothing else depends on it",
    )
