"""The bytes of a slice, as they travel through Spark. A module of its own with few imports: every query starts processes
of its own for the streaming source, and they need no more than this.
"""

from __future__ import annotations

import io
from typing import Any

from penstock.engine.contract.ticket import Slice


def pack(slice_: Slice) -> bytes:
    """One record's worth: a byte range, a spooled file, row groups as Arrow; a rate needs no bytes."""
    match slice_["kind"]:
        case "bytes" | "feed":
            with open(slice_["path"], "rb") as file:  # noqa: PTH123 - the path may be any file system's
                file.seek(slice_["start"])
                return file.read(slice_["end"] - slice_["start"])
        case "spool":
            with open(slice_["path"], "rb") as file:  # noqa: PTH123
                return file.read()
        case "groups":
            return _row_groups(slice_)
    return b""


def _row_groups(slice_: Slice) -> bytes:
    import pyarrow.parquet as pq

    with pq.ParquetFile(slice_["path"]) as file:
        return ipc_bytes(file.read_row_groups(list(range(slice_["first"], slice_["last"]))))


def ipc_bytes(table: Any) -> bytes:
    """An Arrow table as bytes, to travel in a record."""
    import pyarrow as pa

    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def from_ipc(data: bytes) -> Any:
    """What `ipc_bytes` packed."""
    import pyarrow as pa

    return pa.ipc.open_stream(data).read_all()
