"""`penstock query`: query a checkpoint's connection points, even while another process runs the network."""

from __future__ import annotations

import csv
import json
import os
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from penstock.cli.printable import printable_line
from penstock.cli.query_text import DEAD, Asked, parse
from penstock.cli.refusals import refusals
from penstock.model.errors import PenstockError
from penstock.store.dead_letters import DeadLetters
from penstock.store.points.leases import ReaderLease, take_lease
from penstock.store.points.point import PointReader
from penstock.store.points.predicates import key_ranges

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

Row = dict[str, object]

_POLL = 0.2  # seconds
_LIMIT = 100

Checkpoint = Annotated[
    Path, typer.Argument(metavar="CHECKPOINT", help="The directory given to `penstock run --checkpoint`.")
]


def query(
    checkpoint: Checkpoint,
    sql: Annotated[
        str, typer.Argument(metavar="SQL", help='For example "SELECT * FROM segment_minutes WHERE seg = 7".')
    ],
    follow: Annotated[
        bool, typer.Option("--follow", help="After what is retained, show new rows until Ctrl-C.")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(help="Show at most this many rows (0: all); default 100, with --follow all.", min=0),
    ] = None,
    form: Annotated[str, typer.Option("--format", help="table, csv or json (lines).")] = "table",
) -> None:
    """Query connection points in Spark SQL, over everything they retain.

    With --follow (one point only), then print new rows as they come, each once.
    """
    with refusals():
        if form not in _FORMS:
            raise PenstockError(f"no format '{form}'", expected="table, csv or json")
        try:
            _ask(checkpoint, parse(checkpoint, sql), follow=follow, limit=limit, form=form)
        except BrokenPipeError:
            # The reader of our output has closed the pipe. Whatever is still buffered has nowhere to go.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None


def _ask(checkpoint: Path, asked: Asked, *, follow: bool, limit: int | None, form: str) -> None:
    if follow and DEAD in asked.points:
        raise PenstockError("dead letters cannot be followed", hint="leave out --follow")
    if follow and asked.whole:
        raise PenstockError(
            f"--follow goes tuple by tuple, and {asked.whole} does not, or is not known to",
            hint="leave out GROUP BY, ORDER BY, LIMIT, DISTINCT, joins and aggregates, "
            "or put the windows into the network",
        )
    from penstock.engine.spark.session import local_session

    try:
        with ExitStack() as leases:
            if follow:
                _follow(checkpoint, asked, local_session(), Shown(limit or None, form), leases)
            else:
                _once(
                    checkpoint,
                    asked,
                    local_session(),
                    Shown(_LIMIT if limit is None else limit, form),
                    leases,
                )
    except KeyboardInterrupt:
        # Ctrl-C is how a user ends --follow, at any moment.
        if not follow:
            raise


def _once(checkpoint: Path, asked: Asked, spark: SparkSession, shown: Shown, leases: ExitStack) -> None:
    """Answer once, from everything that is retained."""
    for name in asked.points:
        if name == DEAD:
            spark.createDataFrame(DeadLetters(checkpoint).read()).createOrReplaceTempView(DEAD)
            continue
        reader, lease = _reader(checkpoint, name, leases)
        _view(spark, reader, asked, lease.position + 1, _newest(reader))
    shown.show(_answer(spark, asked.sql))


def _follow(checkpoint: Path, asked: Asked, spark: SparkSession, shown: Shown, leases: ExitStack) -> None:
    """Show retained rows, then new ones, until Ctrl-C or until the requested number of rows is shown."""
    reader, lease = _reader(checkpoint, asked.points[0], leases)
    first, begun = lease.position + 1, False
    while not shown.full:
        last = _newest(reader)
        if last >= first or not begun:
            _view(spark, reader, asked, first, last)
            shown.show(_answer(spark, asked.sql))
            first, begun = last + 1, True
        lease.renew(last)
        if not shown.full:
            _pause()


def _pause() -> None:
    time.sleep(_POLL)


def _reader(checkpoint: Path, name: str, leases: ExitStack) -> tuple[PointReader, ReaderLease]:
    """Open the point with a lease, so that the running network does not delete what we are about to read."""
    reader = PointReader(checkpoint, name)
    return reader, leases.enter_context(take_lease(reader, f"query-{time.time_ns()}", seconds=60.0))


def _newest(reader: PointReader) -> int:
    latest = reader.latest()
    return latest.number if latest is not None else -1


def _view(spark: SparkSession, reader: PointReader, asked: Asked, first: int, last: int) -> None:
    """Make the point's entries from `first` to `last` a Spark table.

    Only files that may hold matching rows are read.
    """
    from pyspark.sql import functions as F

    from penstock.engine.spark.entry.admission import ddl
    from penstock.engine.spark.exact_paths import read_parquet

    schema = reader.schema
    ranges = (
        key_ranges(asked.where, reader.key, schema.type_of(reader.key))
        if asked.where and reader.key in schema
        else None
    )
    plan = reader.plan(max(first, 0), last, ranges)
    total = len(plan.files) + plan.skipped_files
    rows = plan.rows + plan.skipped_rows
    typer.echo(f"reading {len(plan.files)} of {total} files, {plan.rows:,} of {rows:,} tuples", err=True)
    names = f"{ddl(schema)}, _entry BIGINT"
    if plan.files:
        frame = read_parquet(spark, names, [str(plan.directory / f.name) for f in plan.files])
        frame = frame.where(F.col("_entry").between(plan.first, plan.last))
    else:
        frame = spark.createDataFrame([], names)
    frame.select(*[f"`{c}`" for c in schema.names]).createOrReplaceTempView(reader.name)


def _answer(spark: SparkSession, sql: str) -> pa.Table:
    """Run the query; report Spark's objection, if any, in one sentence."""
    from pyspark.errors import PySparkException

    try:
        return spark.sql(sql).toArrow()
    except PySparkException as error:
        raise PenstockError(f"the query failed: {str(error).strip().splitlines()[0]}") from None


@dataclass
class Shown:
    """Shows answers as they come: the header of a CSV once, and at most `limit` rows in all.

    A limit of None or 0 means no limit.
    """

    limit: int | None
    form: str
    rows: int = 0
    begun: bool = False

    @property
    def full(self) -> bool:
        return bool(self.limit) and self.rows >= (self.limit or 0)

    def show(self, table: pa.Table) -> None:
        left = self.limit - self.rows if self.limit else table.num_rows
        rows = table.slice(0, left).to_pylist()
        if rows or not self.begun:
            _FORMS[self.form](table.column_names, rows, header=not self.begun)
            sys.stdout.flush()  # whoever reads the pipe wants each row at once
        self.begun, self.rows = True, self.rows + len(rows)
        if table.num_rows > left:
            typer.echo(f"... and {table.num_rows - left:,} more (--limit 0 shows all)", err=True)


def _json(_names: list[str], rows: list[Row], *, header: bool) -> None:
    del header
    for row in rows:
        typer.echo(json.dumps(row, default=str))


def _csv(names: list[str], rows: list[Row], *, header: bool) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if header:
        writer.writerow(names)
    # A pipe gets values as they are; a terminal must not act on them.
    shown = printable_line if sys.stdout.isatty() else str
    writer.writerows(["" if v is None else shown(str(v)) for v in row.values()] for row in rows)


def _table(names: list[str], rows: list[Row], *, header: bool) -> None:
    del header
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for name in names:
        table.add_column(name)
    for row in rows:
        table.add_row(*map(_cell, row.values()))
    Console().print(table)


def _cell(value: object) -> Text:
    """A value as text alone: control characters are shown, and nothing in it is markup."""
    if value is None:
        return Text("")
    return Text(f"{value:%Y-%m-%d %H:%M:%S}" if isinstance(value, datetime) else printable_line(str(value)))


_FORMS = {"table": _table, "csv": _csv, "json": _json}
