"""Compaction: many small entries become few files sorted by the storage key (Aurora, Sect. 4.2: A70, A71).

Every row keeps its entry number, so a reader positioned in the middle of a merged range still reads exactly
the rest. Segments of similar size are merged, so a row is rewritten a logarithmic number of times.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from penstock.store import durable
from penstock.store.file_names import number_text, part_text
from penstock.store.points.generations import publish, sweep
from penstock.store.points.leases import Clock
from penstock.store.points.manifest import DataFile, Manifest, PointEntry, Segment, stamps_of
from penstock.store.points.point import PointReader, segment_entries
from penstock.store.points.tables import encode, read_files, stored_schema, write_files

_ALL = 2**63 - 1
Extent = tuple[int | None, int | None]  # least and greatest timestamp
_ENTRIES = pa.schema(
    [
        ("number", pa.int64()),
        ("rows", pa.int64()),
        ("horizon", pa.int64()),
        ("final", pa.bool_()),
        ("arrival", pa.float64()),
        ("min_ts", pa.int64()),
        ("max_ts", pa.int64()),
        ("previous", pa.int64()),
        ("idle", pa.bool_()),
        ("since", pa.float64()),
        ("offered", pa.int64()),
        ("kept", pa.float64()),
    ]
)


@dataclass(frozen=True)
class Sizes:
    """How much is merged at once, and how finely the result is cut."""

    min_entries: int = 32  # wait until the log holds this many
    file_rows: int = 1 << 17
    segment_rows: int = 1 << 21  # also what one pass holds in memory
    segment_entries: int = 100_000
    span: int | None = (
        None  # greatest distance of timestamps in a segment, so that retention can delete it in time
    )


@dataclass(frozen=True)
class Compaction:
    """The result of a pass."""

    generation: int
    entries: int
    rows: int
    files_before: int
    files_after: int


def compact(
    root: Path | str, name: str, sizes: Sizes | None = None, *, clock: Clock = time.monotonic
) -> Compaction | None:
    """Merge the log of a connection point; None if there is too little to do or another process is merging.

    The newest entry stays in the log, because a restarted producer may commit it again.
    """
    sizes = sizes or Sizes()
    reader = PointReader(root, name)
    with durable.locked(reader.manifest.maintenance_lock, wait=False) as mine:
        if not mine:
            return None
        reader.reload()
        entries = _prefix(reader.log[:-1], sizes)
        if len(reader.log) - 1 < max(1, sizes.min_entries):
            return None
        done = _merge(reader, entries, _neighbours(reader.base.segments, entries, sizes), sizes)
    sweep(reader.manifest, clock)
    return done


def _prefix(entries: Sequence[PointEntry], sizes: Sizes) -> list[PointEntry]:
    """The oldest entries: as many as fit in a segment, at least one."""
    taken: list[PointEntry] = []
    rows = 0
    extent: Extent = (None, None)
    for entry in entries:
        rows += entry.rows
        extent = _wider(extent, (entry.min_ts, entry.max_ts))
        if taken and (rows > sizes.segment_rows or len(taken) == sizes.segment_entries):
            break
        if taken and not _within(extent, sizes.span):
            break
        taken.append(entry)
    return taken


def _neighbours(segments: Sequence[Segment], entries: Sequence[PointEntry], sizes: Sizes) -> list[Segment]:
    """The newest segments that are not much larger than what is added to them."""
    rows = sum(entry.rows for entry in entries)
    files = [file for entry in entries for file in entry.files]
    count, taken = len(entries), list[Segment]()
    for segment in reversed(segments):
        total = rows + segment.rows
        count += segment.entries.rows
        if segment.rows > 2 * rows or total > sizes.segment_rows or count > sizes.segment_entries:
            break
        if not _within(stamps_of([*files, *segment.files]), sizes.span):
            break
        rows, files, taken = total, [*files, *segment.files], [segment, *taken]
    return taken


def _wider(one: Extent, other: Extent) -> Extent:
    least = [stamp for stamp in (one[0], other[0]) if stamp is not None]
    greatest = [stamp for stamp in (one[1], other[1]) if stamp is not None]
    return min(least, default=None), max(greatest, default=None)


def _within(extent: Extent, span: int | None) -> bool:
    least, greatest = extent
    return span is None or least is None or greatest is None or greatest - least <= span


def _merge(
    reader: PointReader, entries: list[PointEntry], merged: list[Segment], sizes: Sizes
) -> Compaction | None:
    manifest, base = reader.manifest, reader.base
    parts = [*(segment.files for segment in merged), *(entry.files for entry in entries)]
    files = [file for part in parts for file in part]
    summaries = [entry for segment in merged for entry in segment_entries(manifest, segment)] + entries
    written = _write_segment(reader, files, summaries, base.generation + 1, sizes)
    with manifest.switching() as held:
        head = manifest.head()
        if head is None or head.edition != reader.edition:
            # An entry was replaced while we merged its old content. Leave it to the next pass.
            _discard(manifest, written)
            return None
        segments = (*base.segments[: len(base.segments) - len(merged)], written)
        merged_base = replace(base, through=written.last, segments=segments)
        after = publish(manifest, base, merged_base, held, entries)
    return Compaction(after.generation, len(entries), written.rows, len(files), len(written.files))


def _write_segment(
    reader: PointReader, files: list[DataFile], entries: list[PointEntry], generation: int, sizes: Sizes
) -> Segment:
    manifest, schema = reader.manifest, stored_schema(reader.schema)
    table = pa.concat_tables([schema.empty_table(), *read_files(manifest.data, files, 0, _ALL, schema)])
    stem = f"c{number_text(generation)}"
    written = write_files(
        manifest.data, table, reader.key, lambda n: f"{stem}-{part_text(n)}", rows=sizes.file_rows
    )
    index = _write_entries(manifest, entries, stem)
    durable.sync_directory(manifest.data)
    return Segment(entries[0].number, entries[-1].number, table.num_rows, index, tuple(written))


def _write_entries(manifest: Manifest, entries: list[PointEntry], stem: str) -> DataFile:
    rows = [{name: getattr(entry, name) for name in _ENTRIES.names} for entry in entries]
    data = encode(pa.Table.from_pylist(rows, schema=_ENTRIES))
    crc = durable.checksum(data)
    name = f"{stem}-entries-{crc:08x}.parquet"
    durable.write_bytes(manifest.data / name, data, sync_parent=False)
    return DataFile(name, len(entries), len(data), crc, entries[0].number, entries[-1].number)


def _discard(manifest: Manifest, segment: Segment) -> None:
    for file in (segment.entries, *segment.files):
        (manifest.data / file.name).unlink(missing_ok=True)
