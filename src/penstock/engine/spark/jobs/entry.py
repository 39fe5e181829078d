"""How tuples enter a job: a task reads and decodes its share of a train's slices, and refuses what is bad."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.contract import Slice
from penstock.connectors.files.parquet import WholeParquet
from penstock.engine.arrow.columns.columns import concat
from penstock.engine.arrow.logic import DEAD_SCHEMA
from penstock.engine.arrow.valves import passed
from penstock.engine.contract.ticket import UNKNOWN
from penstock.engine.contract.valve import Valve, ValveFlow
from penstock.engine.spark.entry.slice_entry import Entered as EnteredSlice
from penstock.engine.spark.entry.slice_entry import enter as enter_slice
from penstock.engine.spark.jobs.letters import as_spark_words
from penstock.engine.spark.jobs.plan import JobPlan
from penstock.model.boxes import Source
from penstock.model.types import SEQ, STAMP, Schema
from penstock.store.points.point import ReadPlan

Piece = Slice | ReadPlan
"""What a task reads: a slice of a source, or files of a connection point."""


@dataclass
class Entered:
    """The tuples of each input in one task, the counts, and the dead letters of the refused ones."""

    tables: dict[str, pa.Table] = field(default_factory=dict)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)  # the largest `_ts`, by source
    dead: list[pa.Table] = field(default_factory=list)
    valves: dict[str, ValveFlow] = field(default_factory=dict)  # at connection points that are read


@dataclass(frozen=True)
class EntryValves:
    """The valves at an input, and its columns."""

    valves: tuple[Valve, ...] = ()
    schema: Schema = field(default=Schema())


def enter(
    plan: JobPlan,
    pieces: dict[str, Sequence[Piece]],
    horizons: dict[str, int],
    valves: Mapping[str, EntryValves],
) -> Entered:
    """Read and decode a task's share of each input, without what valves shed."""
    entered = Entered()
    for name, source in plan.sources.items():
        slices = [piece for piece in pieces.get(name, ()) if isinstance(piece, Slice)]
        # Deliveries come in order, and the ticket's horizon already holds after this train.
        horizon = UNKNOWN if source.format.in_order else horizons.get(name, UNKNOWN)
        mine = [_piece(source, piece, horizon, valves.get(name, EntryValves())) for piece in slices]
        _enter_source(entered, plan, source, mine)
    for name in plan.points:
        schema = plan.schemas[name]
        plans = [piece for piece in pieces.get(name, ()) if isinstance(piece, ReadPlan)]
        tables = [table.select(schema.names).cast(schema) for p in plans for table in p.tables()]
        table = concat(tables, schema)
        entered.tables[name] = table
        if name in valves:
            entered.tables[name], shed = passed(valves[name].valves, table, valves[name].schema)
            entered.valves[name] = ValveFlow(table.num_rows, shed)
        rows = entered.tables[name].num_rows
        entered.counts[name] = {"in": rows, "out": rows}
    return entered


def _piece(source: Source, piece: Slice, horizon: int, valves: EntryValves) -> EnteredSlice:
    mine = enter_slice(source, piece, horizon, valves.valves)
    if isinstance(piece, WholeParquet):  # Spark itself reads it in long trains
        mine = replace(mine, dead=as_spark_words(mine.dead, source.schema))
    return mine


def _enter_source(entered: Entered, plan: JobPlan, source: Source, admitted: Sequence[EnteredSlice]) -> None:
    name, schema = source.name, plan.schemas[source.name]
    tables = sorted((a.tuples for a in admitted if a.tuples.num_rows), key=_first_seq)
    table = concat([table.cast(schema) for table in tables], schema)
    dead = concat([a.dead for a in admitted], DEAD_SCHEMA)
    refused = _tuples(dead)
    entered.tables[name] = table
    entered.counts[name] = {
        "in": table.num_rows + refused,
        "out": table.num_rows,
        "dead": refused,
        "late": _tuples(dead.filter(pc.starts_with(dead.column("reason"), "late: "))),
        "offered": sum(a.offered for a in admitted),
        "shed": sum(a.shed for a in admitted),
    }
    times = [pc.max(table.column(STAMP)).as_py(), *(a.newest for a in admitted)]
    known = [newest for newest in times if newest is not None]
    if known:
        entered.newest[name] = max(known)
    if dead.num_rows:
        entered.dead.append(dead)


def _first_seq(table: pa.Table) -> Any:
    return table.column(SEQ)[0].as_py()


def _tuples(dead: pa.Table) -> int:
    """How many tuples the letters stand for."""
    return int(pc.sum(dead.column("tuples")).as_py() or 0)
