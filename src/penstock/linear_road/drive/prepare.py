"""`drive --prepare`: cut an input into time slices once, so that driving it costs next to nothing.

Idea: one pass over the input in blocks of whole seconds. Each second of each group is appended to that
group's packed file. After every block, the lengths written so far go to a progress file. A run that resumes
after a kill truncates the packed files to these lengths. The manifest is written last, and a directory counts
as prepared only when it has one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

import numpy as np

from penstock.linear_road.drive.slices import (
    KIND,
    REFUSED,
    PlanFigures,
    Slice,
    Slices,
    SlicesManifest,
    assemble,
    encode,
    group_plan,
    open_slices,
    stored_groups,
)
from penstock.linear_road.errors import InputError
from penstock.linear_road.rows import csv_rows
from penstock.linear_road.rows.arrays import Bytes, Int32s, Int64s, Ints
from penstock.linear_road.rows.copies import Copies, Span
from penstock.linear_road.rows.csv_rows import DIR_FIELD, TYPE_FIELD, VID_FIELD, XWAY_FIELD
from penstock.linear_road.rows.fields import POSITION_REPORT
from penstock.linear_road.rows.inputs import MANIFEST, Format, Input
from penstock.linear_road.rows.progress import Progress, silent
from penstock.linear_road.rows.read_blocks import Rows, refused_error, seconds_of, size_of
from penstock.store.durable import make_directory, open_file, sync_file, whole_file, write_text

VERSION = 1
_PROGRESS = ".progress.json"
_INDEX_SO_FAR = ".index.npy"
_REFUSED_SO_FAR = ".refused.npy"


@dataclass(frozen=True)
class PreparePlan:
    """What to prepare: everything that determines the bytes of the slices."""

    source: Input
    groups: int = 1
    format: Format = "csv"
    copies: Copies = field(default_factory=Copies)
    span: Span | None = None
    begin: int | None = None
    end: int | None = None
    lenient: bool = False
    halves: bool = False
    """Store each direction of each expressway separately, so that any number of halves can be driven."""

    def as_json(self) -> PlanFigures:
        """The plan as the progress file and the manifest keep it."""
        span = None if self.span is None else self.span.times(self.copies.count).as_json()
        stats = [(file.name, file.stat()) for file in self.source.files]
        files: list[list[str | int]] = [[name, facts.st_size, facts.st_mtime_ns] for name, facts in stats]
        figures: PlanFigures = {
            "kind": KIND,
            "version": VERSION,
            "source": str(self.source.path.resolve()),
            "source_files": files,
            "groups": self.groups,
            "format": self.format,
            "copies": self.copies.as_json(),
            "span": span,
            "begin": self.begin,
            "end": self.end,
            "lenient": self.lenient,
        }
        if self.halves:
            figures["halves"] = True
        return figures


def prepare(plan: PreparePlan, out: Path, progress: Progress = silent) -> Slices:
    """Write the slices of `plan` to `out`, or resume an interrupted attempt.

    Finished slices are left as they are.
    """
    if plan.groups > 1 and plan.span is None:
        raise InputError(
            "groups of expressways need the span of the input", hint="measure it with span_of first"
        )
    finished = _finished(plan, out)
    if finished is not None:
        return finished
    make_directory(out)
    packer = _Packer.restored(plan, out)
    try:
        _pack(plan, packer, progress)
    except InputError:
        # A later attempt would stop at the same row again, so keep nothing.
        packer.discard()
        raise
    return open_slices(out)


def _pack(plan: PreparePlan, packer: _Packer, progress: Progress) -> None:
    total = size_of(plan.source)
    for rows in seconds_of(plan.source, origin=packer.origin, last=packer.last):
        _check(plan, rows)
        packer.add(rows)
        progress(packer.origin, total)
        if plan.end is not None and packer.last >= plan.end:
            break
    packer.finish()
    progress(total, total)


def _finished(plan: PreparePlan, out: Path) -> Slices | None:
    if not out.exists() or not any(out.iterdir()):
        return None
    if (out / MANIFEST).is_file():
        slices = open_slices(out)
        if {key: slices.manifest.get(key) for key in plan.as_json()} == plan.as_json():
            return slices
        raise InputError(
            f"{out} holds slices of another input or other options", hint="choose another directory"
        )
    # Until `finish` names the packed files, an attempt has only names with a dot. Its other names are ours
    # only beside the progress file, which stays until the manifest is there.
    ours = _final_names(plan.groups) if (out / _PROGRESS).is_file() else set()
    if any(not entry.name.startswith(".") and entry.name not in ours for entry in out.iterdir()):
        raise InputError(f"{out} is not empty and holds no slices", hint="choose another directory")
    return None


def _names(groups: int) -> list[str]:
    return [f"g{group:03d}.slices" for group in range(groups)]


def _indexes(groups: int) -> list[str]:
    return [f"{name}.npy" for name in _names(groups)]


def _final_names(groups: int) -> set[str]:
    """The files that `finish` names before it writes the manifest."""
    return {*_names(groups), *_indexes(groups), REFUSED}


def _check(plan: PreparePlan, rows: Rows) -> None:
    assert rows.reasons is not None
    if not plan.lenient and rows.reasons.any():
        raise refused_error(plan.source, rows, "--lenient passes such rows on")
    if not rows.whole.all() and ("parquet" in (plan.format, plan.source.format) or plan.copies.count > 1):
        limits = "such a row can neither be shifted nor go into or come out of parquet"
        raise refused_error(plan.source, rows, limits)


class _PackProgress(TypedDict):
    """How far the packed files are: what a resumed attempt may trust."""

    plan: PlanFigures
    written: list[int]
    origin: int
    last: int
    refused: int
    unparsed: int
    seconds: list[int]


@dataclass
class _Packer:
    """The packed files being written, and their progress."""

    plan: PreparePlan
    out: Path
    origin: int = 0
    last: int = -1
    refused: int = 0
    unparsed: int = 0
    seconds: list[int] = field(default_factory=list)
    sizes: list[list[tuple[int, int]]] = field(default_factory=list)
    """For each entry of `seconds`: (bytes, rows) of each group."""
    refused_at: list[list[int]] = field(default_factory=list)
    """Where each refused row lies: second, stored group, index in that group, offset in the input."""

    def __post_init__(self) -> None:
        plan = self.plan
        xways = 1 if plan.span is None else plan.span.xways
        self.stored = plan.groups if plan.halves else stored_groups(plan.groups, plan.copies.count, xways)
        self.units = group_plan(self.stored, plan.copies.count, plan.groups)
        self.xways = xways

    @classmethod
    def restored(cls, plan: PreparePlan, out: Path) -> _Packer:
        """A packer that resumes after the last recorded block, or a new one."""
        try:
            progress: _PackProgress = json.loads((out / _PROGRESS).read_text(encoding="utf-8"))
            # JSON makes lists of tuples, so the plan goes through it too before the two are compared.
            if progress["plan"] != json.loads(json.dumps(plan.as_json())):
                raise InputError(
                    f"{out} holds an unfinished preparation with other options",
                    hint="remove it or choose another",
                )
            # The two tables may hold more than the progress file knows of: they are written before it.
            table = np.load(out / _INDEX_SO_FAR)[: len(progress["seconds"])]
            refused_at = np.load(out / _REFUSED_SO_FAR)[: progress["refused"]].tolist()
        except OSError:
            packer, written = cls(plan, out), [0] * plan.groups
        else:
            sizes = [[(int(size), int(rows)) for size, rows in second] for second in table]
            packer = cls(
                plan=plan,
                out=out,
                origin=progress["origin"],
                last=progress["last"],
                refused=progress["refused"],
                unparsed=progress["unparsed"],
                seconds=progress["seconds"],
                sizes=sizes,
                refused_at=refused_at,
            )
            written = progress["written"]
        packer._take_names_back()
        if not packer._holds(written):
            # Cutting would fill up with zeros what a part has lost, so nothing of the attempt can be used.
            packer, written = cls(plan, out), [0] * plan.groups
        packer._cut_back(written)
        return packer

    def _take_names_back(self) -> None:
        """Undo what a killed `finish` has named."""
        for part, name in zip(self._parts(), self._names(), strict=True):
            if not part.exists() and (self.out / name).exists():
                (self.out / name).replace(part)

    def _holds(self, written: list[int]) -> bool:
        sizes = [part.stat().st_size if part.exists() else 0 for part in self._parts()]
        return all(size >= known for size, known in zip(sizes, written, strict=True))

    def _cut_back(self, written: list[int]) -> None:
        # What lies beyond was written after the last record. Its rows are read again.
        for file, size in zip(self._parts(), written, strict=True):
            with open_file(file, "ab") as stream:
                stream.truncate(size)

    def _parts(self) -> list[Path]:
        return [self.out / f".{name}.part" for name in self._names()]

    def _names(self) -> list[str]:
        return _names(self.plan.groups)

    def add(self, rows: Rows) -> None:
        """Append a block of whole seconds and record it."""
        assert rows.seconds is not None
        assert rows.reasons is not None
        self.origin, self.last = rows.following, int(rows.seconds[-1])
        chosen = self._window(rows)
        if len(chosen):
            assert chosen.reasons is not None
            self.refused += int(np.count_nonzero(chosen.reasons))
            self.unparsed += int(np.count_nonzero(~chosen.whole))
            self._note_refused(chosen)
            self._append(chosen)
            self._record()

    def _window(self, rows: Rows) -> Rows:
        assert rows.seconds is not None
        # A refused row has the second of the row before it, so seconds never go down.
        begin = 0 if self.plan.begin is None else int(np.searchsorted(rows.seconds, self.plan.begin))
        end = len(rows) if self.plan.end is None else int(np.searchsorted(rows.seconds, self.plan.end))
        return rows.cut(begin, max(begin, end))

    def _append(self, rows: Rows) -> None:
        streams = [open_file(file, "ab") for file in self._parts()]
        try:
            for second, stored in self._stored_slices(rows):
                delivered = [
                    assemble(stored, units, self.plan.copies, self.plan.format) for units in self.units
                ]
                for stream, piece in zip(streams, delivered, strict=True):
                    stream.write(piece.data.data)
                self.seconds.append(second)
                self.sizes.append([(len(piece.data), piece.rows) for piece in delivered])
        finally:
            # Closed after every block: `_record` asks for the sizes, and what is still buffered has none.
            for stream in streams:
                stream.close()

    def _stored_slices(self, rows: Rows) -> Iterator[tuple[int, list[Slice]]]:
        """Each second of a block as one slice for each stored group."""
        assert rows.seconds is not None
        home = self._home(rows.values)
        text, starts = rows.rendered() if self.plan.format == "csv" else _no_text(len(rows))
        chosen = [np.flatnonzero(home == b) for b in range(self.stored)]
        assert sum(map(len, chosen)) == len(rows), "every row has its group"
        groups = [_Group.of(rows, text, starts, rows_of_group) for rows_of_group in chosen]
        for second in np.unique(rows.seconds).tolist():
            yield second, [group.slice(second, self.plan.format) for group in groups]

    def _note_refused(self, rows: Rows) -> None:
        """Record where refused rows go, so that a dead letter can be traced to its line in the input."""
        assert rows.reasons is not None
        assert rows.seconds is not None
        refused = np.flatnonzero(rows.reasons)
        if len(refused):
            home = self._home(rows.values)
            index = index_within(rows.seconds.astype(np.int64) * self.stored + home)
            columns = (rows.seconds[refused], home[refused], index[refused], rows.origin[refused])
            self.refused_at += np.stack(columns, axis=1).tolist()

    def _home(self, values: Int32s) -> Int64s:
        """The stored group of each row."""
        if self.plan.halves:
            # A request may name an expressway beyond those that report. It goes to the last group.
            return np.minimum(half_of(values), self.stored - 1)
        # Use a wide type: an expressway may have any number that a field can hold.
        xway = np.clip(values[:, XWAY_FIELD].astype(np.int64), 0, self.xways - 1)
        return xway * self.stored // self.xways

    def _record(self) -> None:
        # The progress file comes last: it vouches for the packed files and tables written before it. It is
        # flushed, so they are flushed before: a power cut must not leave the record without the rows.
        for part in self._parts():
            sync_file(part)
        with whole_file(self.out / _INDEX_SO_FAR) as path, path.open("wb") as stream:
            np.save(stream, np.array(self.sizes, np.int64).reshape(-1, self.plan.groups, 2))
        self._save_refused(_REFUSED_SO_FAR)
        progress: _PackProgress = {
            "plan": self.plan.as_json(),
            "written": [file.stat().st_size for file in self._parts()],
            "origin": self.origin,
            "last": self.last,
            "refused": self.refused,
            "unparsed": self.unparsed,
            "seconds": self.seconds,
        }
        write_text(self.out / _PROGRESS, json.dumps(progress))

    def finish(self) -> None:
        """Give the packed files their names, write the indexes, and finally the manifest."""
        if not self.seconds:
            raise InputError(
                f"input {self.plan.source.path} has no rows to deliver in the asked range of seconds"
            )
        t0 = self.seconds[0] if self.plan.begin is None else self.plan.begin
        index = self._index(t0, self.seconds[-1] + 1)
        for group, (part, name) in enumerate(zip(self._parts(), self._names(), strict=True)):
            # On disk before the manifest that vouches for it.
            sync_file(part)
            part.replace(self.out / name)
            with whole_file(self.out / f"{name}.npy") as path, path.open("wb") as stream:
                np.save(stream, index[:, group])
        self._save_refused(REFUSED)
        write_text(self.out / MANIFEST, json.dumps(self._manifest(t0, index), indent=2) + "\n")
        (self.out / _PROGRESS).unlink(missing_ok=True)
        (self.out / _INDEX_SO_FAR).unlink(missing_ok=True)
        (self.out / _REFUSED_SO_FAR).unlink(missing_ok=True)

    def _save_refused(self, name: str) -> None:
        with whole_file(self.out / name) as path, path.open("wb") as stream:
            np.save(stream, np.array(self.refused_at, np.int64).reshape(-1, 4))

    def discard(self) -> None:
        """Remove what has been written so far."""
        notes = [self.out / name for name in (_PROGRESS, _INDEX_SO_FAR, _REFUSED_SO_FAR)]
        for file in [*self._parts(), *notes]:
            file.unlink(missing_ok=True)

    def _index(self, t0: int, t1: int) -> Int64s:
        """Running totals (seconds + 1, groups, 2): bytes and rows before each second."""
        index = np.zeros((t1 - t0 + 1, self.plan.groups, 2), np.int64)
        # Seconds without rows stay 0, so the running totals do not move there.
        index[np.array(self.seconds) - t0 + 1] = np.array(self.sizes, np.int64)
        return np.cumsum(index, axis=0)

    def _manifest(self, t0: int, index: Int64s) -> SlicesManifest:
        totals = index[-1].sum(axis=0)
        return {
            **self.plan.as_json(),
            "t0": t0,
            "t1": t0 + len(index) - 1,
            "rows": int(totals[1]),
            "bytes": int(totals[0]),
            "refused_rows_passed_on": self.refused,
            "unparsed_rows_passed_on": self.unparsed,
            "slices": self._names(),
            "indexes": _indexes(self.plan.groups),
        }


@dataclass(frozen=True)
class _Group:
    """The rows of one stored group in a block."""

    values: Int32s
    seconds: Int32s
    text: Bytes
    starts: Int64s

    @classmethod
    def of(cls, rows: Rows, text: Bytes, starts: Int64s, chosen: Int64s) -> _Group:
        assert rows.seconds is not None
        if len(chosen) < len(rows):
            text, starts = csv_rows.gather(text, starts, chosen)
        return cls(rows.values[chosen], rows.seconds[chosen], text, starts)

    def slice(self, second: int, form: Format) -> Slice:
        begin, end = np.searchsorted(self.seconds, (second, second + 1))
        if form == "parquet":
            data = encode(list(self.values[begin:end].T)) if end > begin else np.zeros(0, np.uint8)
        else:
            data = self.text[self.starts[begin] : self.starts[end]]
        return Slice(data, int(end - begin))


def half_of(values: Ints) -> Int64s:
    """The half expressway of each row: 2 XWay + Dir.

    A request belongs to the report directly before it, if that is its vehicle's.

    >>> rows = np.full((3, 15), -1)
    >>> rows[0, [0, 2, 4, 6]] = 0, 7, 3, 1
    >>> rows[1, [0, 2]] = 2, 7
    >>> rows[2, [0, 2, 4]] = 3, 8, 2
    >>> half_of(rows).tolist()
    [7, 7, 4]
    """
    kind, vid, xway, way = (values[:, j] for j in (TYPE_FIELD, VID_FIELD, XWAY_FIELD, DIR_FIELD))
    half = np.maximum(xway, 0).astype(np.int64) * 2 + np.where(kind == POSITION_REPORT, np.clip(way, 0, 1), 0)
    follows = (
        np.flatnonzero((kind[1:] != POSITION_REPORT) & (kind[:-1] == POSITION_REPORT) & (vid[1:] == vid[:-1]))
        + 1
    )
    # A request names no direction; the report that carries it does.
    half[follows] = half[follows - 1]
    return half


def index_within(keys: Int64s) -> Int64s:
    """How many rows before each one have the same key.

    >>> index_within(np.array([5, 7, 5, 5, 7])).tolist()
    [0, 0, 1, 2, 1]
    """
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    index = np.empty(len(keys), np.int64)
    # A stable sort puts equal keys side by side and keeps their order, so the place among them is the count.
    index[order] = np.arange(len(keys)) - np.searchsorted(ordered, ordered)
    return index


def _no_text(rows: int) -> tuple[Bytes, Int64s]:
    return np.zeros(0, np.uint8), np.zeros(rows + 1, np.int64)
