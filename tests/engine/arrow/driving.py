"""Drives one box list in, list out: cuts its input into trains, carries its state about, compares engines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from penstock.engine.arrow.logic import MIN, logic_for
from penstock.engine.local import engine as local
from penstock.model.boxes import Node
from penstock.model.checks.stream_types import output_type
from penstock.model.types import SEQ, STAMP, Schema, StreamType, arrow_schema

SECOND = 1_000_000
Row = dict[str, Any]


def at(seconds: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


def micros(moment: datetime) -> int:
    return (moment - at(0)) // timedelta(microseconds=1)


def stream(ddl: str, *keys: str, arrival_order: bool = True) -> StreamType:
    return StreamType(Schema.parse(ddl), "time", keys, arrival_order=arrival_order)


def tuples(type_: StreamType, rows: Iterable[Sequence[Any]]) -> list[Row]:
    """Rows with `time` in seconds, in order of arrival, with their hidden columns."""
    made = []
    for seq, row in enumerate(rows):
        named = dict(zip(type_.schema.names, row, strict=True))
        named["time"] = at(named["time"])
        made.append({**named, STAMP: micros(named["time"]), SEQ: seq})
    return made


@dataclass
class Given:
    """What a box gave over all trains."""

    out: list[Row] = field(default_factory=list)
    dead: list[Row] = field(default_factory=list)

    def ordered(self) -> Given:
        return Given(
            sorted(self.out, key=_order),
            sorted(self.dead, key=lambda row: (row["offset"], row["reason"], row["raw"])),
        )

    def visible(self, *names: str) -> list[tuple[Any, ...]]:
        """These columns of the rows, sorted; `time` in seconds."""
        return [tuple(_plain(row[name]) for name in names) for row in sorted(self.out, key=_order)]


def _plain(value: Any) -> Any:
    return micros(value) / SECOND if isinstance(value, datetime) else value


def _order(row: Row) -> tuple[Any, ...]:
    return (row[STAMP], row[SEQ], [(value is not None, repr(value)) for value in row.values()])


Trains = list[list[list[Row]]]  # for each train, for each input: rows


def horizons_of(trains: Trains, lateness: int = 0) -> list[tuple[int, ...]]:
    found, newest = [], [MIN] * len(trains[0])
    for train in trains:
        newest = [
            max([most, *(row[STAMP] for row in rows)]) for most, rows in zip(newest, train, strict=True)
        ]
        found.append(tuple(max(MIN, most - lateness) for most in newest))
    return found


def drive(
    node: Node,
    inputs: list[StreamType],
    trains: Trains,
    *,
    lateness: int = 0,
    moves: Sequence[str] = (),
    horizons: list[tuple[int, ...]] | None = None,
) -> Given:
    """Run the vectorised box. After train i its state goes to another instance as `moves[i]` says."""
    output = output_type(node, inputs)
    logic, twin, given = logic_for(node, inputs, output), logic_for(node, inputs, output), Given()
    for number, (train, horizon) in enumerate(
        zip(trains, horizons or horizons_of(trains, lateness), strict=True)
    ):
        tables = [
            pa.Table.from_pylist(rows, schema=arrow_schema(type_.schema))
            for rows, type_ in zip(train, inputs, strict=True)
        ]
        answer = logic.process(tables, horizon, final=number == len(trains) - 1)
        assert answer.out.schema.equals(arrow_schema(output.schema))
        given.out += answer.out.to_pylist()
        given.dead += answer.dead.to_pylist()
        move = moves[number % len(moves)] if moves else "stay"
        if move in ("delta", "behind"):
            twin.apply(logic.delta())
            assert _content(twin) == _content(logic)
            if move == "delta":
                logic, twin = twin, logic
        elif move == "snapshot":
            snapshot = logic.snapshot()
            logic, twin = logic_for(node, inputs, output), logic_for(node, inputs, output)
            logic.restore(snapshot)
            twin.restore(snapshot)
    return given.ordered()


def _content(logic: Any) -> dict[str, list[str]]:
    return {name: sorted(map(repr, table.to_pylist())) for name, table in logic.snapshot().items()}


def reference(node: Node, inputs: list[StreamType], trains: Trains, *, lateness: int = 0) -> Given:
    """The same by the row-wise engine."""
    logic, given = local.logic_for(node, inputs, output_type(node, inputs)), Given()
    for number, (train, horizon) in enumerate(zip(trains, horizons_of(trains, lateness), strict=True)):
        answer = logic.process(train, horizon, final=number == len(trains) - 1)
        given.out += answer.out
        given.dead += [
            {"offset": row[SEQ], "reason": reason, "raw": local.raw_text(row), "box": node.name}
            for row, reason in answer.dead
        ]
    return given.ordered()


def same(one: Given, other: Given) -> None:
    """Equal rows; doubles up to rounding."""
    assert len(one.out) == len(other.out)
    for mine, theirs in zip(one.out, other.out, strict=True):
        assert list(mine) == list(theirs)
        for name, value in mine.items():
            assert _alike(value, theirs[name]), (name, mine, theirs)
    assert [(row["offset"], row["reason"]) for row in one.dead] == [
        (row["offset"], row["reason"]) for row in other.dead
    ]


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return (
            (math.isnan(one) and math.isnan(other))
            or one == other
            or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
        )
    return type(one) is type(other) and one == other


def cut(rows: list[list[Row]], cuts: Sequence[int]) -> Trains:
    """Cut inputs into trains: train i takes cuts[i] per cent of what is left of each input.

    The last one the rest.
    """
    left, trains = [list(each) for each in rows], []
    for share in cuts:
        sizes = [len(each) * share // 100 for each in left]
        trains.append([each[:size] for each, size in zip(left, sizes, strict=True)])
        left = [each[size:] for each, size in zip(left, sizes, strict=True)]
    return [*trains, left]


CUTS = st.lists(st.integers(0, 100), max_size=5)
MOVES = st.lists(st.sampled_from(["stay", "delta", "behind", "snapshot"]), min_size=1, max_size=4).filter(
    # once a change was not carried over, a later delta alone cannot bring the twin up to date
    lambda moves: "stay" not in moves or not {"delta", "behind"} & set(moves)
)


@st.composite
def arrivals(draw: Any, *columns: Any, lateness: int = 3, most: int = 30) -> list[tuple[Any, ...]]:
    """Rows (seconds, *columns) in order of arrival, out of order by at most `lateness` seconds."""
    newest, rows = 0, []
    for _ in range(draw(st.integers(0, most))):
        newest += draw(st.integers(0, 4))
        rows.append((newest - draw(st.integers(0, lateness)), *(draw(column) for column in columns)))
    return rows


KEY = st.one_of(st.none(), st.integers(0, 2))
FEW = st.one_of(st.none(), st.integers(-3, 3))
NUMBER = st.one_of(st.none(), st.floats(width=32), st.sampled_from([0.1, 1e16, -1e16, 1.0]))
TEXT = st.one_of(st.none(), st.sampled_from(["a", "b", "", "é", "zz"]))
