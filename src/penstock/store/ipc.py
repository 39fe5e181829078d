"""Arrow tables as bytes: the one writer and the one reader of the Arrow stream format.

Tables travel this way between tasks, into state files and over HTTP. All code that needs a table's bytes uses
this module.
"""

from __future__ import annotations

import pyarrow as pa

_LARGE = 1 << 16


def to_ipc(table: pa.Table) -> pa.Buffer:
    """The table as one buffer in the Arrow stream format.

    >>> from_ipc(to_ipc(pa.table({"vid": [7, 8]}))).to_pydict()
    {'vid': [7, 8]}
    """
    if table.nbytes < _LARGE:
        stream = pa.BufferOutputStream()
        _write(table, stream)
        return stream.getvalue()
    # A stream that grows copies what it holds each time. So measure first: that touches no column.
    measured = pa.MockOutputStream()
    _write(table, measured)
    buffer = pa.allocate_buffer(measured.size())
    with pa.FixedSizeBufferWriter(buffer) as stream:
        _write(table, stream)
    return buffer


def _write(table: pa.Table, stream: pa.NativeFile) -> None:
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)


def ipc_bytes(table: pa.Table) -> bytes:
    """The same as Python bytes, for pickling or for a record."""
    data: bytes = to_ipc(table).to_pybytes()
    return data


def from_ipc(data: bytes | memoryview | pa.Buffer) -> pa.Table:
    """Read what `to_ipc` wrote. The table uses the given bytes without copying them."""
    return pa.ipc.open_stream(data).read_all()
