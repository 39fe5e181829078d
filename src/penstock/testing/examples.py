"""User functions for tests: other processes can import them by name. They ask for no fixed columns."""

from __future__ import annotations

import pyarrow as pa


def no_nulls(batch: pa.Table) -> pa.Array:
    """A predicate: tuples without a null."""
    return pa.array([None not in row.values() for row in batch.to_pylist()], pa.bool_())


def count_nulls(batch: pa.Table) -> dict[str, pa.Array]:
    """A map: `nulls BIGINT`, how many values of the tuple are null."""
    return {"nulls": pa.array([list(row.values()).count(None) for row in batch.to_pylist()], pa.int64())}


def last_two(table: pa.Table) -> pa.Table:
    """A window function: its last two tuples."""
    return table.slice(max(0, table.num_rows - 2))


def running_count(batch: pa.Table, state: pa.Table) -> tuple[pa.Table, pa.Table]:
    """A latch with state `seen BIGINT` that answers every second tuple of a key, with its timestamp."""
    keys = [name for name in state.column_names if name != "seen"]
    seen = {tuple(row[key] for key in keys): row["seen"] for row in state.to_pylist()}
    numbers = []
    for row in batch.to_pylist():
        key = tuple(row[name] for name in keys)
        seen[key] = seen.get(key, 0) + 1
        numbers.append(seen[key])
    changed = [{**dict(zip(keys, key, strict=True)), "seen": number} for key, number in seen.items()]
    return batch.append_column("seen", pa.array(numbers, pa.int64())), pa.Table.from_pylist(
        changed, schema=state.schema
    )


def every_second(batch: pa.Table, state: pa.Table) -> tuple[pa.Table, pa.Table]:
    """A latch with state `seen BIGINT` that answers every second tuple of a key, with its timestamp."""
    counted, changed = running_count(batch, state)
    return counted.filter(
        pa.array([number % 2 == 0 for number in counted.column("seen").to_pylist()])
    ), changed
