"""The bytes of a slice, as they travel through Spark. A module of its own with few imports: every query starts processes
of its own for the streaming source, and they need no more than this.
"""

from __future__ import annotations

from penstock.engine.contract.ticket import Slice
from penstock.store.ipc import ipc_bytes


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
