"""Why a train failed: because of its input, or not.

A train whose input cannot be read would fail at every restart, since its ticket is fixed. So the driver looks
at each slice. What cannot be read is left out, and the ticket is written again without it, before the train
runs again: a replay then leaves out the same. Whole Parquet files that Spark's own reader cannot take are
read by row groups instead, where a broken group costs no more than its own rows.

Anything else is no fault of the input: a lost worker, a full disk, a user's function. It is raised as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.connectors.contract import RefusedInput, Slice, SliceLostError, TicketPart
from penstock.connectors.files.parquet import READER, RowGroups, WholeParquet
from penstock.connectors.paths import is_resource_shortage
from penstock.connectors.tables import first_seq
from penstock.engine.contract.account import AccountError
from penstock.engine.contract.ticket import Ticket

_LOG = logging.getLogger("penstock")
_SPARK_CANNOT_READ = (
    "FAILED_READ_FILE",
    "CANNOT_READ_FILE",
    "ParquetDecodingException",
    "Illegal Parquet type",
)


def without_unreadable(ticket: Ticket, error: BaseException) -> Ticket | None:
    """The ticket without what cannot be read; None if the input is not to blame."""
    slices: dict[str, Sequence[TicketPart]] = dict(ticket.slices)
    left_out: dict[str, Sequence[RefusedInput]] = dict(ticket.left_out)
    for name, pieces in ticket.slices.items():
        lost = {i: why for i, piece in enumerate(pieces) if (why := _unreadable(piece)) is not None}
        kept = [piece for i, piece in enumerate(pieces) if i not in lost]
        if any(isinstance(piece, WholeParquet) for piece in kept) and _reader_fails(kept, error):
            kept = [piece.as_groups() if isinstance(piece, WholeParquet) else piece for piece in kept]
        slices[name] = kept
        if lost:
            left_out[name] = [*left_out.get(name, ()), *lost.values()]
    if slices == ticket.slices:
        return None
    _LOG.warning("train %d is run again without what it could not read: %s", ticket.train, _summary(left_out))
    return replace(ticket, slices=slices, left_out=left_out)


def _unreadable(piece: TicketPart) -> RefusedInput | None:
    """Why a slice cannot be read at all; None if it can. Broken rows are not meant: decoding refuses them."""
    if not isinstance(piece, Slice):
        return None
    try:
        piece.check()
        if not isinstance(piece, WholeParquet | RowGroups):
            piece.read()
        else:
            pq.read_metadata(piece.path)
    except SliceLostError as error:
        return _refusal(piece, error.reason, error.tuples)
    except FileNotFoundError:
        return _refusal(piece, "the file was deleted before it was read")
    except (OSError, pa.ArrowException) as error:
        if is_resource_shortage(error):
            return None
        return _refusal(piece, f"the file cannot be read: {getattr(error, 'strerror', None) or error}")
    return None


def _refusal(piece: Slice, reason: str, tuples: int | None = None) -> RefusedInput:
    fields: Mapping[str, object] = vars(piece)
    path, file = str(fields.get("path", "")), fields.get("file")
    row = fields.get("line", fields.get("row", 0))
    rows = fields.get("rows", 1)
    offset = first_seq(file, row) if isinstance(file, int) and isinstance(row, int) else 0
    refusal: RefusedInput = {"raw": path or str(piece), "reason": reason, "offset": offset, "file": path}
    refusal["tuples"] = tuples if tuples is not None else rows if isinstance(rows, int) else 1
    if isinstance(row, int):
        refusal["line"] = row + 1
    return refusal


def _reader_fails(pieces: Sequence[TicketPart], error: BaseException) -> bool:
    """Whether Spark's own reader is to blame: it says so, or Arrow cannot read a page either."""
    if isinstance(error, AccountError) or any(sign in str(error) for sign in _SPARK_CANNOT_READ):
        return True
    return any(_has_broken_pages(piece) for piece in pieces if isinstance(piece, WholeParquet))


def _has_broken_pages(piece: WholeParquet) -> bool:
    try:
        with pq.ParquetFile(piece.path, **READER) as file:
            for group in range(file.num_row_groups):
                file.read_row_group(group)
    except (OSError, pa.ArrowException) as error:
        return not is_resource_shortage(error)
    return False


def _summary(left_out: Mapping[str, Sequence[RefusedInput]]) -> str:
    pieces = [f"{piece['raw']} ({piece['reason']})" for refused in left_out.values() for piece in refused]
    return (
        "; ".join(pieces[:5]) + (f" and {len(pieces) - 5} more" if len(pieces) > 5 else "") or "whole files"
    )
