"""A slice enters: shed by the valves at its source, decoded, stamped, checked for lateness.

Shedding comes first. What a valve drops is neither dead nor late, whatever it holds, but its time counts for
the horizon. Where the grain is a block of lines, it is dropped before anything is decoded. All of it is plain
Arrow, for whichever task reads the slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.contract import Decoded, Slice, Taken, TicketPart, Unread
from penstock.engine.arrow.valves import kept, numbers_kept, places_kept
from penstock.engine.contract.ticket import UNKNOWN
from penstock.engine.contract.valve import LeftOut, Valve, group_stays
from penstock.engine.spark.entry.lateness import in_time
from penstock.engine.spark.entry.stamping import stamped
from penstock.model.boxes import Source
from penstock.model.types import SEQ, STAMP

Bytes = bytes | memoryview


@dataclass(frozen=True)
class Entered:
    """What became of the tuples of a slice. `newest`: the largest time among those that were shed."""

    tuples: pa.Table
    dead: pa.Table
    offered: int
    shed: int = 0
    newest: int | None = None


@dataclass(frozen=True)
class BlockLottery:
    """Which blocks of lines stay."""

    valve: Valve

    @property
    def bits(self) -> int:
        return self.valve.bits or 0

    def __call__(self, numbers: np.ndarray) -> np.ndarray:
        return numbers_kept(self.valve, numbers)


def enter(
    source: Source, slice_: Slice, horizon: int, valves: Sequence[Valve] = (), data: Bytes | None = None
) -> Entered:
    """Read a slice (or take its bytes, `data`) and let its tuples in."""
    thin = _thinned(source, slice_, valves, data) if valves else None
    if thin is None:
        decoded, offered = slice_.counted_tuples(source) if data is None else _given(source, slice_, data)
        thin = Entered(decoded.tuples, decoded.refused, offered)
    decoded, by_place = _shed_places(Decoded(thin.tuples, thin.dead), valves)
    decoded, by_row = _shed_rows(source, decoded, valves)
    admitted = stamped(source, decoded)
    admitted = admitted if horizon == UNKNOWN else in_time(source, admitted, horizon)
    shed = thin.shed + _tuples(by_place) + by_row.num_rows
    newest = _newest([thin.newest, _latest(source, by_place.tuples), _latest(source, by_row)])
    return Entered(admitted.tuples, admitted.dead, thin.offered, shed, newest)


def _given(source: Source, slice_: Slice, data: Bytes) -> tuple[Decoded, int]:
    return slice_.decode(source, data), slice_.offered(source, data)


def _thinned(source: Source, slice_: Slice, valves: Sequence[Valve], data: Bytes | None) -> Entered | None:
    """Without the blocks that the first such valve drops; None if the slice must be decoded for that."""
    valve = next((v for v in valves if v.bits), None)
    if valve is None:
        return None
    thin = slice_.thinned(source, slice_.read() if data is None else data, BlockLottery(valve))
    if thin is None:
        return None
    newest = None if thin.last is None else _latest(source, thin.last)
    return Entered(thin.decoded.tuples, thin.decoded.refused, thin.offered, thin.shed, newest)


def _shed_places(decoded: Decoded, valves: Sequence[Valve]) -> tuple[Decoded, Decoded]:
    """What stays by its place, and what goes: refused lines, too."""
    tuples, refused = decoded.tuples, decoded.refused
    if not any(valve.bits is not None for valve in valves):
        return decoded, Decoded(tuples.slice(0, 0), refused.slice(0, 0))
    stay, stay_refused = (
        pa.array(places_kept(valves, table.column(name).to_numpy()))
        for table, name in ((tuples, SEQ), (refused, "offset"))
    )
    gone = Decoded(tuples.filter(pc.invert(stay)), refused.filter(pc.invert(stay_refused)))
    return Decoded(tuples.filter(stay), refused.filter(stay_refused)), gone


def _shed_rows(source: Source, decoded: Decoded, valves: Sequence[Valve]) -> tuple[Decoded, pa.Table]:
    """What stays by its time, key or value, and what goes: late tuples and those without a time, too."""
    by_row, tuples = [valve for valve in valves if valve.bits is None], decoded.tuples
    if not by_row:
        return decoded, tuples.slice(0, 0)
    times = pa.nulls(tuples.num_rows, pa.int64())
    if source.timestamp is not None:
        times = tuples.column(source.timestamp).cast(pa.int64())
    mask = pa.array(kept(by_row, tuples.append_column(STAMP, times), source.schema))
    return Decoded(tuples.filter(mask), decoded.refused), tuples.filter(pc.invert(mask))


def _tuples(decoded: Decoded) -> int:
    return int(decoded.tuples.num_rows + (pc.sum(decoded.refused.column("tuples")).as_py() or 0))


def _latest(source: Source, table: pa.Table) -> int | None:
    if source.timestamp is None or not table.num_rows:
        return None
    newest: int | None = pc.max(table.column(source.timestamp).cast(pa.int64())).as_py()
    return newest


def _newest(times: Sequence[int | None]) -> int | None:
    return max((at for at in times if at is not None), default=None)


# -- in the conductor


def left_out(source: Source, part: Taken, valves: Sequence[Valve]) -> tuple[Sequence[TicketPart], LeftOut]:
    """The slices that stay, and what is left out unread."""
    stay: list[TicketPart] = []
    gone = LeftOut()
    for piece in part.slices:
        out = _unread(source, piece, valves) if isinstance(piece, Slice) else None
        gone = gone if out is None else gone + out
        stay += [piece] if out is None else []
    return stay, gone


def still_acting(source: Source, slices: Sequence[Slice], valves: Sequence[Valve]) -> tuple[Valve, ...]:
    """Without the valves whose grain is whole slices, if the conductor could decide about all of them."""
    decided = all(_known(source, piece) is not None for piece in slices)
    return tuple(valve for valve in valves if not (decided and _of_slices(valve)))


def _of_slices(valve: Valve) -> bool:
    return valve.grain == "slices" or _of_groups(valve)


def _of_groups(valve: Valve) -> bool:
    return valve.grain == "keys" and not valve.keys


def _known(source: Source, piece: Slice) -> Unread | None:
    known = piece.unread()
    timeless = known is not None and known.newest is None and source.timestamp is not None
    return None if timeless else known


def _unread(source: Source, piece: Slice, valves: Sequence[Valve]) -> LeftOut | None:
    """What a slice holds that no valve lets in; None if it has to be read."""
    known = _known(source, piece)
    if known is None:
        return None
    group = piece.key_group()
    if not all(group_stays(valve.share, group) for valve in valves if _of_groups(valve)):
        return LeftOut(known.tuples, known.newest, known.newest, (group,))
    slices = [valve for valve in valves if valve.grain == "slices"]
    stays = all(bool(numbers_kept(v, np.array([known.first >> v.slice_bits]))[0]) for v in slices)
    return None if stays else LeftOut(known.tuples, known.newest)
