"""Arrow columns as numpy arrays and back, and as keys.

State is changed in place (one tuple of a hundred thousand), which Arrow's immutable arrays do not allow;
numpy's do. A null is kept apart from the value, as a mask, so integers stay integers.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Mask = np.ndarray | None  # True where there is a value; None: everywhere


def one_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A ChunkedArray as one Array; one chunk is not copied, which `combine_chunks` does."""
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def _plain(type_: pa.DataType) -> pa.DataType:
    """The numpy-friendly type with the same bytes: times are whole numbers."""
    if pa.types.is_timestamp(type_):
        return pa.int64()
    return pa.int32() if pa.types.is_date32(type_) else type_


def is_object(type_: pa.DataType) -> bool:
    """True for texts and bytes, which numpy can only hold as Python objects."""
    return bool(pa.types.is_string(type_) or pa.types.is_binary(type_) or pa.types.is_large_string(type_))


def dtype_of(type_: pa.DataType) -> np.dtype:
    """The numpy dtype in which a column of this type is kept."""
    return np.dtype(object) if is_object(type_) else np.dtype(_plain(type_).to_pandas_dtype())


def to_numpy(column: pa.ChunkedArray | pa.Array) -> tuple[np.ndarray, Mask]:
    """Values and mask; the value at a null is 0 or None."""
    array = one_array(column)
    valid = None if array.null_count == 0 else array.is_valid().to_numpy(zero_copy_only=False)
    if is_object(array.type):
        return array.to_numpy(zero_copy_only=False), valid
    plain = array.view(_plain(array.type)) if _plain(array.type) != array.type else array
    if valid is not None:
        plain = pc.fill_null(plain, pa.scalar(0, pa.int64()).cast(plain.type))
    return plain.to_numpy(zero_copy_only=False), valid


def to_arrow(values: np.ndarray, valid: Mask, type_: pa.DataType) -> pa.Array:
    """The inverse of `to_numpy`."""
    mask = None if valid is None or valid.all() else ~valid
    plain = _plain(type_)
    array = pa.array(values, type=plain, mask=mask)
    return array.view(type_) if plain != type_ else array


def integers(table: pa.Table, name: str) -> np.ndarray:
    """A hidden column as int64; nulls (unstamped tuples) sort before everything."""
    values, valid = to_numpy(table.column(name))
    return values if valid is None else np.where(valid, values, np.int64(-(2**63) + 1))


def key_values(column: pa.ChunkedArray | pa.Array) -> tuple[np.ndarray, Mask]:
    """Values that are equal exactly where SQL groups them: int64, or objects; -0.0 is 0.0 and NaN is NaN."""
    values, valid = to_numpy(column)
    if values.dtype == object:
        return values, valid
    if values.dtype.kind == "f":
        wide = values.astype(np.float64) + 0.0
        wide[np.isnan(wide)] = np.nan
        return wide.view(np.int64), valid
    return values.astype(np.int64, copy=False), valid


# By identity: comparing schemas costs as much as making the table.
_EMPTY: dict[int, tuple[pa.Schema, pa.Table]] = {}


def empty(schema: pa.Schema) -> pa.Table:
    """A table without rows."""
    known = _EMPTY.get(id(schema))
    if known is None or known[0] is not schema:
        if len(_EMPTY) > 1000:
            _EMPTY.clear()
        known = _EMPTY[id(schema)] = (schema, schema.empty_table())
    return known[1]


def concat(tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
    """All rows of tables of one schema, as one chunk each column."""
    full = [table for table in tables if table.num_rows]
    if not full:
        return empty(schema)
    return full[0] if len(full) == 1 else pa.concat_tables(full).combine_chunks()
