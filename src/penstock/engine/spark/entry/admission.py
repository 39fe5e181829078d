"""How source tuples enter: Spark itself reads whole Parquet files, tasks decode everything else.

Each tuple is checked once, directly after the source, as in a hand-written job. The check finds tuples
without a time, late tuples, and tuples that the filters and the map next to the source would refuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from penstock.connectors.contract import Slice
from penstock.connectors.files.parquet import WholeParquet
from penstock.connectors.files.parquet_decode import FIRST_DAY, FIRST_MICRO, LAST_DAY, LAST_MICRO
from penstock.connectors.tables import first_seq
from penstock.engine.arrow.logic import DEAD_SCHEMA
from penstock.engine.contract.valve import Valve
from penstock.engine.spark.entry.bad_times import all_in_time, bad_times, footers_tell
from penstock.engine.spark.entry.by_reference import by_reference
from penstock.engine.spark.entry.early import NOTHING_EARLY, Early, only_reader
from penstock.engine.spark.entry.lateness import late_case
from penstock.engine.spark.entry.slice_entry import Entered, enter
from penstock.engine.spark.entry.slice_placement import spread
from penstock.engine.spark.entry.valve_sql import let_through
from penstock.engine.spark.layout.expressions import to_spark
from penstock.engine.spark.layout.plan import Layout
from penstock.engine.spark.watch import OFFERED, REMOVED, SHED, TOLD, LetterSql, Watch
from penstock.model.boxes import Filter, Map, Source
from penstock.model.types import SEQ, STAMP, Schema, arrow_schema
from penstock.model.writing.network import Network

DEAD = "_dead"
_BATCH_BYTES = 16 << 20
_SLICE_BITS = 20  # a task has fewer slices than 2**20
_DEAD_DDL = "STRUCT<raw: STRING, reason: STRING, offset: BIGINT, box: STRING, tuples: BIGINT>"


def ddl(schema: Schema, *, hidden: bool = True) -> str:
    """The Spark DDL of a batch on an arrow."""
    columns = [f"`{c.name}` {c.type}" for c in schema]
    if hidden:
        columns += [f"{STAMP} BIGINT", f"{SEQ} BIGINT"]
    return ", ".join(columns)


# -- what boxes next to a source would refuse


@dataclass(frozen=True)
class Guards:
    """Consecutive boxes after a source; what they would refuse is already found at the source."""

    chain: tuple[str, ...] = ()  # the boxes covered, in order
    cases: tuple[
        tuple[str, str, str], ...
    ] = ()  # box, when a tuple gets there, what is then wrong with it (SQL)

    @property
    def boxes(self) -> frozenset[str]:
        return frozenset(box for box, _, _ in self.cases)


def guards_of(net: Network, layout: Layout, source: str) -> Guards:
    """Collect the filters and the first map that are the source's only readers."""
    chain, cases, passed, at = [], [], ["true"], source
    while (node := only_reader(net, at)) is not None and node.name in layout.native:
        texts = [node.predicate] if isinstance(node, Filter) else [text for _, text in node.columns]
        sqls = [to_spark(text, net.types[source].schema) for text in texts]
        failures = [sql.failure for sql in sqls if sql.failure is not None]
        if failures:
            failure = f"coalesce({', '.join(failures)})" if len(failures) > 1 else failures[0]
            cases.append((node.name, " AND ".join(passed), failure))
        chain.append(node.name)
        if isinstance(node, Map):
            break  # it changes the columns
        passed.append(sqls[0].value)
        at = node.name
    return Guards(tuple(chain), tuple(cases))


# -- Parquet, by Spark


def admit_files(
    spark: SparkSession,
    source: Source,
    slices: Sequence[WholeParquet],
    horizon: int,
    guards: Guards,
    watch: Watch,
    *,
    valves: Sequence[Valve] = (),
) -> DataFrame:
    """Admit the tuples of whole Parquet files.

    If the footers give the number of null timestamps and their range, Spark checks no tuple. It counts them
    in every train: the account at entry compares that with the footers.
    """
    for piece in slices:
        piece.check()
    paths = [s.path for s in slices]
    # Old dates as the file has them: a file that does not name its calendar would otherwise be refused.
    options = {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"}
    frame = spark.read.schema(ddl(source.schema, hidden=False)).options(**options).parquet(*paths)
    # Use a map instead of plain numbers: it reaches the generated code by reference, so the code stays the
    # same.
    order = ", ".join(f"{_text(_name(s.path))}, {first_seq(s.file)}L" for s in slices)
    seq = f"map({order})[_metadata.file_name] + _metadata.row_index"
    time = f"unix_micros(`{source.timestamp}`)" if source.timestamp else "CAST(NULL AS BIGINT)"
    hidden: tuple[str, ...] = (f"{time} AS {STAMP}", f"{seq} AS {SEQ}")
    if valves:
        frame = let_through(frame.selectExpr("*", *hidden), source.name, valves, source.schema, watch)
        hidden = ()
    known = not valves and (source.timestamp is None or footers_tell(slices))
    in_range = all(s.in_range for s in slices)
    if known and in_range and not guards.cases:
        letters = bad_times(source, slices, horizon) if source.timestamp else DEAD_SCHEMA.empty_table()
        if letters is not None:
            watch.know(source.name, newest=_newest(slices, horizon))
            watch.tell(letters)
            plain = frame.selectExpr(*(f"`{c.name}`" for c in source.schema), *hidden)
            plain = watch.on(plain, source.name, rows="count(1)")
            return plain.where(f"NOT ({_bad(slices, horizon)})") if letters.num_rows else plain
    proven = source.timestamp is None or (known and all(all_in_time(s, horizon) for s in slices))
    own = [] if in_range else _out_of_range(source.schema)
    if not proven:
        own += [(f"{time} IS NULL", "'0:timestamp is null'"), late_case(time, horizon)]
    if not own and not guards.cases:
        return watch.on(frame, source.name, rows="count(1)")
    return _guarded(frame, source, own, guards, watch, more=hidden)


def _out_of_range(schema: Schema) -> list[tuple[str, str]]:
    """SQL: when a time or date is beyond the years 1 to 9999, and the reason."""
    limits = {
        "TIMESTAMP": f"unix_micros(`{{}}`) NOT BETWEEN {FIRST_MICRO}L AND {LAST_MICRO}L",
        "DATE": f"unix_date(`{{}}`) NOT BETWEEN {FIRST_DAY} AND {LAST_DAY}",
    }
    return [
        (limits[c.type].format(c.name), _text(f"0:malformed: column '{c.name}': beyond the years 1 to 9999"))
        for c in schema
        if c.type in limits
    ]


def _newest(slices: Sequence[WholeParquet], horizon: int) -> int | None:
    """The largest time of an admitted tuple; none if even the largest of all is late."""
    latest = max((s.latest for s in slices if s.latest is not None), default=None)
    return latest if latest is not None and latest >= horizon else None


def _bad(slices: Sequence[WholeParquet], horizon: int) -> str:
    """SQL: whether a tuple has no time or is late; checks only what the footers do not rule out."""
    late = any(s.least is not None and s.least < horizon for s in slices)
    return f"{STAMP} IS NULL" + (f" OR {STAMP} < {by_reference(horizon, STAMP)}" if late else "")


def _guarded(
    frame: DataFrame,
    source: Source,
    own: list[tuple[str, str]],
    guards: Guards,
    watch: Watch,
    *,
    packed: bool = False,
    more: Sequence[str] = (),
) -> DataFrame:
    cases = [
        *own,
        *(
            (f"{when} AND ({failure}) IS NOT NULL", f"concat('{i}:', {failure})")
            for i, (_, when, failure) in enumerate(guards.cases, 1)
        ),
    ]
    why = "CASE " + " ".join(f"WHEN {when} THEN {text}" for when, text in cases) + " END"
    raw = raw_text(source.schema)
    own_first = [
        # Tasks send the text of what they refuse. Without guards nobody else refuses: no column is needed.
        f"coalesce({DEAD}.raw, {raw})" if guards.cases else f"{DEAD}.raw",
        f"coalesce({DEAD}.offset, {SEQ})",
        f"coalesce({DEAD}.tuples, 1L)",
    ]
    letter = LetterSql(*own_first) if packed else LetterSql(raw, SEQ)
    # A tuple that a box refuses was admitted nevertheless.
    let_in = (
        STAMP
        if packed or not own
        else f"CASE WHEN {{why}} IS NULL OR NOT startswith({{why}}, '0:') THEN {STAMP} END"
    )
    boxes = (source.name, *(box for box, _, _ in guards.cases))
    told = ", ".join(map(_text, TOLD))
    rows = f"count_if({DEAD} IS NULL OR {DEAD}.reason NOT IN ({told}))" if packed else "count(1)"
    return watch.guard(frame, source.name, why, letter, boxes, more, rows=rows, newest=f"max({let_in})")


def raw_text(schema: Schema) -> str:
    """SQL for a tuple's visible columns as JSON."""
    columns = ", ".join(f"`{c.name}`" for c in schema)
    return f"to_json(struct({columns}), map('ignoreNullFields', 'false'))"


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


# -- packed, by tasks


def admit_packed(  # noqa: PLR0913 - a train's part at one source
    spark: SparkSession,
    source: Source,
    slices: Sequence[Slice],
    horizon: int,
    guards: Guards,
    watch: Watch,
    *,
    parallelism: int,
    valves: Sequence[Valve] = (),
    early: Early = NOTHING_EARLY,
) -> DataFrame:
    """Admit the tuples of packed slices, except those that a task has marked as dead, shed or removed."""
    parts = spread(slices, parallelism)
    tasks = spark.range(0, len(parts), 1, len(parts))
    frame = tasks.mapInArrow(
        Unpack(source, horizon, parts, valves, early),
        f"{ddl(early.narrow(source.schema))}, {DEAD} {_DEAD_DDL}",
    )
    if early.unread:
        # Nobody reads them, but every box behind knows its columns. Spark leaves such literals out.
        all_columns = [
            f"CAST(NULL AS {c.type}) AS `{c.name}`" if c.name in early.unread else f"`{c.name}`"
            for c in source.schema
        ]
        frame = frame.selectExpr(*all_columns, STAMP, SEQ, DEAD)
    own = [(f"{DEAD} IS NOT NULL", f"concat('0:', {DEAD}.reason)")]
    return _guarded(frame, source, own, guards, watch, packed=True)


class Unpack:
    """The task that reads slices and turns them into tuples.

    Refused rows and late tuples come along, marked as dead. The horizon is checked here and not in SQL: the
    bytes are at hand, and the check costs almost nothing.
    """

    def __init__(
        self,
        source: Source,
        horizon: int,
        parts: Sequence[Sequence[Slice]],
        valves: Sequence[Valve] = (),
        early: Early = NOTHING_EARLY,
    ) -> None:
        self.source, self.horizon, self.parts, self.valves = source, horizon, parts, valves
        self.early = early

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in batch.column(0).to_pylist():
                for i, slice_ in enumerate(self.parts[part]):
                    yield from self._tuples(slice_, (part << _SLICE_BITS) + i)

    def _tuples(self, slice_: Slice, number: int) -> Iterator[pa.RecordBatch]:
        types = arrow_schema(self.early.narrow(self.source.schema))
        dead_type = pa.struct(list(DEAD_SCHEMA))
        full = pa.schema([*types, pa.field(DEAD, dead_type)])
        entered = enter(self.source, slice_, self.horizon, self.valves)
        passed, removed = self.early.passed(entered.tuples)
        table = passed.select(types.names).cast(types)
        told = [_told(REMOVED, number, tuples, box) for box, tuples in removed.items()]
        told += [_told(SHED, number, entered.shed)] if entered.shed else []
        told += [_told(OFFERED, number, entered.offered)]
        dead = pa.concat_tables([entered.dead, *told])
        tuples = table.append_column(DEAD, pa.nulls(table.num_rows, dead_type)).cast(full)
        yield from tuples.to_batches(max_chunksize=_rows_of_a_batch(tuples))
        blank = [pa.nulls(dead.num_rows, f.type) for f in types]
        newest = _newest_of(entered) if removed else entered.newest
        if newest is not None:
            # The time of what was shed or removed counts as seen: the last row has it.
            times = pa.array([None] * (dead.num_rows - 1) + [newest], pa.int64())
            blank[types.get_field_index(STAMP)] = times
        yield pa.RecordBatch.from_arrays([*blank, dead.to_struct_array().combine_chunks()], schema=full)


def _rows_of_a_batch(table: pa.Table) -> int:
    """How many rows go to the JVM at once: it holds a batch as a whole."""
    return max(1, int(_BATCH_BYTES * table.num_rows / max(1, table.nbytes)))


def _newest_of(entered: Entered) -> int | None:
    """The largest time of all tuples that entered, shed ones included."""
    times = [entered.newest, pc.max(entered.tuples.column(STAMP)).as_py()]
    return max((time for time in times if time is not None), default=None)


def _told(what: str, number: int, tuples: int, box: str = "") -> pa.Table:
    """How many tuples a slice offers, how many of it are shed, or removed by a box; sent with its letters.

    The number of the slice makes the row unique: if a task ran twice, the row comes twice and shows it.
    """
    row = {"raw": box, "reason": what, "offset": number, "box": "", "tuples": tuples}
    return pa.Table.from_pylist([row], schema=DEAD_SCHEMA)
