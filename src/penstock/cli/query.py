"""`penstock query`: ask a checkpoint's connection points, also while another process runs the network."""

from __future__ import annotations

import logging
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.cli.load import told
from penstock.model.errors import PenstockError, did_you_mean
from penstock.store.dead_letters import DeadLetters
from penstock.store.leases import take_lease
from penstock.store.point import PointReader
from penstock.store.predicates import key_ranges

_DEAD = "dead_letters"
_POLL = 0.2  # seconds

Checkpoint = Annotated[
    Path, typer.Argument(metavar="CHECKPOINT", help="The directory given to `penstock run --checkpoint`.")
]


def query(
    checkpoint: Checkpoint,
    sql: Annotated[
        str, typer.Argument(metavar="SQL", help='For example "SELECT * FROM segment_minutes WHERE seg = 7".')
    ],
    follow: Annotated[
        bool, typer.Option("--follow", help="After what is retained, go on with what comes, until Ctrl-C.")
    ] = False,
    limit: Annotated[int, typer.Option(help="Show at most so many rows (0: all).")] = 100,
    form: Annotated[str, typer.Option("--format", help="table, csv or json (lines).")] = "table",
) -> None:
    """Ask a connection point in Spark SQL: all that is retained there; with --follow, then what comes, nothing twice."""
    with told():
        if form not in ("table", "csv", "json"):
            raise PenstockError(f"no format '{form}'; use table, csv or json")
        asked = parse(checkpoint, sql)
        from penstock.engine.spark.session import local_session

        if asked.point != _DEAD:
            _ask_point(checkpoint, asked, local_session(), follow=follow, limit=limit, form=form)
        elif follow:
            raise PenstockError("dead letters cannot be followed; leave out --follow")
        else:
            spark = local_session()
            spark.createDataFrame(DeadLetters(checkpoint).read()).createOrReplaceTempView(_DEAD)
            _show(_answer(spark, sql), limit, form)


def dead_letters(
    checkpoint: Checkpoint,
    limit: Annotated[int, typer.Option(help="Show at most so many (0: all).")] = 20,
) -> None:
    """Show the tuples that were refused: raw text, reason, source, offset, box."""
    with told():
        letters = DeadLetters(checkpoint)
        for reason, count in letters.counts().items():
            typer.echo(f"{count:>8,}  {reason}")
        _show(letters.read(), limit, "table")


@dataclass(frozen=True)
class Asked:
    """A query on one connection point: its text, the point, the condition, and whether it goes tuple by tuple."""

    sql: str
    point: str
    where: str
    tuplewise: bool


def parse(checkpoint: Path, sql: str) -> Asked:
    """Read the SELECT; refuse what is none, or asks for a point that is not there."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    points = (
        sorted(p.name for p in (checkpoint / "points").glob("*") if p.is_dir()) if checkpoint.is_dir() else []
    )
    if not checkpoint.is_dir():
        raise PenstockError(f"{checkpoint} is no checkpoint: there is no such directory")
    try:
        tree = sqlglot.parse_one(sql, dialect="spark")
    except SqlglotError as error:
        raise PenstockError(f"the query does not parse: {str(error).splitlines()[0]}") from None
    tables = list(tree.find_all(exp.Table))
    if not isinstance(tree, exp.Select) or len(tables) != 1:
        raise PenstockError("a query is one SELECT from one connection point; joins belong into a network")
    point = tables[0].name
    if point not in (*points, _DEAD):
        raise PenstockError(
            f"no connection point '{point}' in {checkpoint}; {did_you_mean(point, [*points, _DEAD])}"
        )
    where = tree.args["where"].this.sql(dialect="spark") if tree.args.get("where") else ""
    whole = any(tree.args.get(part) for part in ("group", "order", "limit", "distinct", "having")) or any(
        tree.find_all(exp.AggFunc, exp.Window)
    )
    return Asked(sql, point, where, tuplewise=not whole)


def _ask_point(checkpoint: Path, asked: Asked, spark: Any, *, follow: bool, limit: int, form: str) -> None:
    if follow and not asked.tuplewise:
        raise PenstockError(
            "--follow goes tuple by tuple: leave out GROUP BY, ORDER BY, LIMIT, DISTINCT and aggregates, or put the windows into the network"
        )
    try:
        _read_on(checkpoint, asked, spark, follow=follow, limit=limit, form=form)
    except KeyboardInterrupt:
        # the way to end --follow, whatever it is doing just then
        if not follow:
            raise


def _read_on(checkpoint: Path, asked: Asked, spark: Any, *, follow: bool, limit: int, form: str) -> None:
    """What is retained, then (`follow`) what comes."""
    reader = PointReader(checkpoint, asked.point)
    # the lease keeps what we are about to read from being deleted by the process that runs the network
    with take_lease(reader, f"query-{time.time_ns()}", seconds=60.0) as lease:
        first, shown = lease.position + 1, 0
        while True:
            latest = reader.latest()
            last = latest.number if latest is not None else -1
            if last >= first or shown == 0:
                table = _rows(spark, reader, asked, first, last)
                if table.num_rows or not follow:
                    _show(table, limit, form, header=shown == 0)
                first, shown = last + 1, shown + 1
            if not follow:
                return
            lease.renew(last)
            time.sleep(_POLL)


def _rows(spark: Any, reader: PointReader, asked: Asked, first: int, last: int) -> Any:
    """Run the query on the files that may hold what it asks for."""
    from pyspark.sql import functions as F

    from penstock.engine.spark.admission import ddl

    schema = reader.schema
    ranges = (
        key_ranges(asked.where, reader.key, schema.type_of(reader.key))
        if asked.where and reader.key in schema
        else None
    )
    plan = reader.plan(max(first, 0), last, ranges)
    total = len(plan.files) + plan.skipped_files
    typer.echo(
        f"reading {len(plan.files)} of {total} files, {plan.rows:,} of {plan.rows + plan.skipped_rows:,} tuples",
        err=True,
    )
    names = f"{ddl(schema)}, _entry BIGINT"
    if plan.files:
        frame = spark.read.schema(names).parquet(*[str(plan.directory / f.name) for f in plan.files])
        frame = frame.where(F.col("_entry").between(plan.first, plan.last))
    else:
        frame = spark.createDataFrame([], names)
    frame.select(*[f"`{c}`" for c in schema.names]).createOrReplaceTempView(asked.point)
    return _answer(spark, asked.sql)


def _answer(spark: Any, sql: str) -> Any:
    """What Spark says to it; what it objects to is told in a sentence."""
    from pyspark.errors import PySparkException
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)  # they would print stack traces
    try:
        return spark.sql(sql).toArrow()
    except PySparkException as error:
        raise PenstockError(f"the query failed: {str(error).strip().splitlines()[0]}") from None


def _show(table: Any, limit: int, form: str, *, header: bool = True) -> None:
    rows = table.slice(0, limit).to_pylist() if limit else table.to_pylist()
    if form == "json":
        import json

        for row in rows:
            typer.echo(json.dumps(row, default=str))
    elif form == "csv":
        import csv

        writer = csv.writer(sys.stdout, lineterminator="\n")
        if header:
            writer.writerow(table.column_names)
        writer.writerows(row.values() for row in rows)
    else:
        _table(table.column_names, rows)
    if limit and table.num_rows > limit:
        typer.echo(f"... and {table.num_rows - limit:,} more (--limit 0 shows all)", err=True)


def _table(names: list[str], rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    made = Table()
    for name in names:
        made.add_column(name)
    for row in rows:
        made.add_row(
            *(
                "" if v is None else f"{v:%Y-%m-%d %H:%M:%S}" if hasattr(v, "hour") else str(v)
                for v in row.values()
            )
        )
    Console().print(made)
