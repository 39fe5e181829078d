"""Valves as Spark SQL: the same choices as `engine/arrow/valves.py`, for tuples that are in the JVM.

Shares change with every train, so they are handed over by reference: the generated code stays the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from penstock.engine.contract.valve import PARTS, Step, Valve
from penstock.engine.spark.entry.by_reference import by_reference
from penstock.engine.spark.layout.expressions import to_spark
from penstock.engine.spark.watch import VALVE, Watch
from penstock.model.types import INTEGRAL, SEQ, STAMP, Schema

_UNKNOWN = -(2**63) + 1
_WRAP = 2**64 % PARTS  # what a negative hash has to gain to be the unsigned one


def let_through(
    frame: DataFrame, at: str, valves: Sequence[Valve], schema: Schema, watch: Watch
) -> DataFrame:
    """The tuples that all valves let pass; counts those that come and those that are shed.

    `newest`: the largest time of those that are shed.
    """
    stays = " AND ".join(f"({keeps_sql(valve, schema)})" for valve in valves)
    shed = f"count_if(NOT ({stays}))"
    newest = f"max(CASE WHEN NOT ({stays}) THEN {STAMP} END)"
    return watch.on(frame, f"{at}{VALVE}", rows="count(1)", shed=shed, newest=newest).where(stays)


def keeps_sql(valve: Valve, schema: Schema) -> str:
    """SQL that is true for a tuple that stays, false for one that is shed, and never null."""
    if valve.grain == "values":
        return _values(valve, schema)
    if valve.grain == "windows":
        return _windows(valve)
    if valve.grain == "keys":
        keys = [_key(name, schema.type_of(name)) for name in valve.keys]
        return _below(_hash(valve.lot, *keys), by_reference(valve.bar, SEQ)) if keys else "true"
    number = f"shiftright({SEQ}, {valve.bits})" if valve.bits else SEQ
    return _below(_hash(valve.lot, number), by_reference(valve.bar, SEQ))


def _values(valve: Valve, schema: Schema) -> str:
    stays = f"coalesce({to_spark(valve.predicate, schema).value}, true)"
    if not valve.partly or not valve.part_bar:
        return stays
    spared = _below(_hash(valve.lot, SEQ), by_reference(valve.part_bar, SEQ))
    return f"{stays} OR (coalesce({to_spark(valve.partly, schema).value}, false) AND {spared})"


def hashed_below(lot: int, number: str, bar: str) -> str:
    """SQL that is true where the hash of a number, in parts of a million, is below the bar."""
    return _below(_hash(lot, number), bar)


def _hash(lot: int, *numbers: str) -> str:
    return f"xxhash64(CAST({lot} AS BIGINT), {', '.join(numbers)})"


def _below(hashed: str, bar: str) -> str:
    """The unsigned remainder of a signed hash against the bar."""
    rest = f"pmod({hashed}, {PARTS}) + CASE WHEN {hashed} < 0 THEN {_WRAP} ELSE 0 END"
    return f"pmod({rest}, {PARTS}) < {bar}"


def _key(name: str, type_: str) -> str:
    """A key in the form in which both sides hash it: whole numbers as BIGINT, others as DOUBLE."""
    column = f"`{name}`"
    if type_ in INTEGRAL or type_ == "BOOLEAN":
        return f"CAST({column} AS BIGINT)"
    wide = {
        "FLOAT": f"CAST({column} AS DOUBLE)",
        "DATE": f"CAST(unix_date({column}) AS BIGINT)",
        "TIMESTAMP": f"unix_micros({column})",
    }
    return wide.get(type_, column)


def _windows(valve: Valve) -> str:
    """A tuple stays if one of its windows does; all windows if it has no time."""
    last = _floor(STAMP, valve.every)
    steps = valve.steps or (Step(valve.share, _UNKNOWN),)
    if valve.size == valve.every and len(steps) == 1:
        bar = _bar_of(valve, steps[0], last)
        return f"{STAMP} IS NULL OR {_below(_hash(valve.lot, last), bar)}"
    # Between the first and the last window of a tuple lie size / every others.
    first = f"{_floor(f'{STAMP} - {valve.size}L', valve.every)} + 1"
    kept = _below(_hash(valve.lot, "k"), _bar_of_steps(valve, steps))
    return f"{STAMP} IS NULL OR exists(sequence({first}, {last}), k -> {kept})"


def _floor(number: str, every: int) -> str:
    """Whole numbers only: dividing as doubles would round times."""
    return f"(({number}) - pmod({number}, {every}L)) div {every}L"


def _bar_of(valve: Valve, step: Step, window: str) -> str:
    begin = f"{window} * {valve.every}L"
    covers = f"{begin} + {valve.size}L > {by_reference(step.since, STAMP)}"
    covers += f" AND {begin} <= {by_reference(step.until, STAMP)}"
    return f"CASE WHEN {covers} THEN {by_reference(round(step.share * PARTS), STAMP)} ELSE {PARTS}L END"


def _bar_of_steps(valve: Valve, steps: Sequence[Step]) -> str:
    structs = ", ".join(
        f"named_struct('since', {s.since}L, 'until', {s.until}L, 'bar', {round(s.share * PARTS)}L)"
        for s in steps
    )
    begin = f"k * {valve.every}L"
    covers = f"{begin} + {valve.size}L > s.since AND {begin} <= s.until"
    lower = f"CASE WHEN {covers} THEN least(bar, s.bar) ELSE bar END"
    return f"aggregate(array({structs}), {PARTS}L, (bar, s) -> {lower})"
