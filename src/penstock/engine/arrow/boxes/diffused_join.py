"""One server of a diffused join: a window join under the owner rule (Gu and Yu, Sect. 3; S03, S04, S07-S09).

Tuples come with an owner; the train's roles give the epoch and the master. One rule holds for all tuples of
an epoch and side, so it is applied to whole blocks before any pair is compared: of the side that decides,
only tuples owned here take part. A server therefore compares its 1/k of all pairs and no more, even while
both streams go everywhere.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from penstock.engine.arrow.boxes.join import expire
from penstock.engine.arrow.boxes.pairs import JoinedPairs, Pairing
from penstock.engine.arrow.columns.columns import concat, integers
from penstock.engine.arrow.logic import DEAD_SCHEMA, Answer
from penstock.engine.arrow.order import Gate, canonical
from penstock.engine.arrow.state import Buffer, Parts
from penstock.model.boxes import Join
from penstock.model.diffused.memory import does_not_fit, machine_room, with_room
from penstock.model.diffused.owner import decided_by_left
from penstock.model.diffused.roles import NEVER, Report, Roles, first_roles
from penstock.model.types import STAMP, StreamType, arrow_schema

OWNER, EPOCH, MASTER = "_owner", "_epoch", "_master"


class DiffusedJoin(Parts):
    """Keeps its share of the master, and the slave. `steer` it before a train, read its `report` after."""

    def __init__(self, node: Join, inputs: list[StreamType], output: StreamType) -> None:
        self.node, self.gate = node, Gate(node.name, 2)
        self.pairing = Pairing(node, inputs, output)
        self.left, self.right = (Buffer(_kept_schema(stream)) for stream in inputs)
        self.roles, self.server = first_roles(node, 1), 0
        self.report = Report(0)
        super().__init__(acted=self.gate.acted, left=self.left, right=self.right)

    def steer(self, roles: Roles, server: int) -> None:
        """The roles of the coming train, and which server this is."""
        self.roles, self.server = roles, server

    def process(self, inputs: list[pa.Table], horizons: tuple[int, ...], *, final: bool) -> Answer:
        """Take one train of each side."""
        began = time.perf_counter()
        came = [self._owned_somewhere(rows) for rows in inputs]
        # A tuple that goes everywhere is late everywhere; one dead letter is enough.
        _, late = self.gate.admit([self._mine(rows) for rows in came])
        new = [self._marked(canonical(rows), s) for s, rows in enumerate(self.gate.admit(came)[0])]
        horizons = self.gate.act(horizons)
        (left, right), dropped = self._with_room(new, horizons, final=final)
        old = self.left.rows
        self.right.append(right)
        # New left tuples meet all right ones; old left tuples only the new ones. So each pair comes once.
        joined = [*self._find(left, self.right.rows), *self._find(old, right)]
        self.left.append(left)
        expire(self.node, self.left, self.right, horizons, final=final)
        replaced = self._shrink()
        self.report = self._report(new, joined, dropped, replaced, time.perf_counter() - began)
        out = concat([j.pairs for j in joined], self.pairing.schema)
        return Answer(canonical(out), concat([late, *(j.dead for j in joined)], DEAD_SCHEMA))

    # -- the owner rule

    def _owned_somewhere(self, rows: pa.Table) -> pa.Table:
        # In a stage of one task nobody has routed: everything is here.
        if OWNER in rows.column_names:
            return rows
        return rows.append_column(OWNER, pa.array(np.full(rows.num_rows, self.server, np.int32)))

    def _mine(self, rows: pa.Table) -> pa.Table:
        owner = integers(rows, OWNER)
        mine = owner == self.server
        return rows if mine.all() else rows.filter(pa.array(mine))

    def _marked(self, rows: pa.Table, side: int) -> pa.Table:
        count = rows.num_rows
        epoch = pa.array(np.full(count, self.roles.epoch, np.int64))
        master = pa.array(np.full(count, self.roles.master(side), np.int8))
        return rows.append_column(EPOCH, epoch).append_column(MASTER, master)

    def _find(self, left: pa.Table, right: pa.Table) -> Iterator[JoinedPairs]:
        for one, left_epoch, left_master in _epochs(left):
            for other, right_epoch, right_master in _epochs(right):
                if decided_by_left(left_epoch, left_master, right_epoch, right_master):
                    # Each pair has one owner among the servers: filter the deciding side before comparing.
                    yield self.pairing.find(self._mine(one), other)
                else:
                    yield self.pairing.find(one, self._mine(other))

    # -- memory

    def _with_room(
        self, new: list[pa.Table], horizons: tuple[int, ...], *, final: bool
    ) -> tuple[list[pa.Table], int]:
        """Policy 'drop': tuples that find no room, in the order of their timestamps, take no part."""
        memory = self.node.diffusion.memory
        if memory is None or self.node.diffusion.when_full != "drop":
            return new, 0
        held = [integers(buffer.rows, STAMP) for buffer in (self.left, self.right)]
        came = [integers(rows, STAMP) for rows in new]
        if sum(map(len, [*held, *came])) <= memory:
            return new, 0
        stamps, sides = np.concatenate(came), np.repeat([0, 1], [len(came[0]), len(came[1])])
        order = np.argsort(stamps, kind="stable")
        fits = with_room(
            memory,
            ((ts, side) for side in (0, 1) for ts in held[side].tolist()),
            zip(stamps[order].tolist(), sides[order].tolist(), strict=True),
            self.node.within,
            (math.inf, math.inf) if final else (horizons[0], horizons[1]),
        )
        kept = np.zeros(len(stamps), bool)
        kept[order] = fits
        size = len(came[0])
        parts = [rows.filter(pa.array(m)) for rows, m in zip(new, (kept[:size], kept[size:]), strict=True)]
        return parts, len(stamps) - int(kept.sum())

    def _shrink(self) -> int:
        """Policy 'replace': the oldest tuples give way. By default: what does not fit is an error."""
        held, size = self._held()
        memory = self.node.diffusion.memory
        fits = sum(held) <= memory if memory is not None else size <= machine_room(self.roles.servers)
        if fits:
            return 0
        if memory is None or self.node.diffusion.when_full != "replace":
            raise does_not_fit(self.node, self.server, self.roles.servers, held, size)
        excess = sum(held) - memory
        stamps = np.concatenate([integers(b.rows, STAMP) for b in (self.left, self.right)])
        gone = np.zeros(len(stamps), bool)
        # Stable: among equal times the left side gives way first, as in the reference engine.
        gone[np.argsort(stamps, kind="stable")[:excess]] = True
        self.left.drop(gone[: held[0]])
        self.right.drop(gone[held[0] :])
        return excess

    def _held(self) -> tuple[tuple[int, int], int]:
        size = int(self.left.rows.nbytes + self.right.rows.nbytes)
        return (len(self.left), len(self.right)), size

    def _report(
        self, new: list[pa.Table], joined: list[JoinedPairs], dropped: int, replaced: int, seconds: float
    ) -> Report:
        held, size = self._held()
        stamps = [integers(rows, STAMP) for rows in new]
        mine = [int((integers(rows, OWNER) == self.server).sum()) for rows in new]
        newest = [int(ts.max()) if len(ts) else NEVER for ts in stamps]
        oldest = min((int(ts.min()) for ts in stamps if len(ts)), default=None)
        return Report(
            server=self.server,
            owned=(mine[0], mine[1]),
            received=(len(stamps[0]), len(stamps[1])),
            newest=(newest[0], newest[1]),
            oldest=oldest,
            operations=sum(j.operations for j in joined),
            held=held,
            size=size,
            dropped=dropped,
            replaced=replaced,
            seconds=round(seconds, 6),
        )


def _kept_schema(stream: StreamType) -> pa.Schema:
    """What is kept of a tuple: itself, and what the owner rule asks for."""
    fields = [pa.field(OWNER, pa.int32()), pa.field(EPOCH, pa.int64()), pa.field(MASTER, pa.int8())]
    return pa.schema([*arrow_schema(stream.schema), *fields])


def _epochs(rows: pa.Table) -> Iterator[tuple[pa.Table, int, bool]]:
    """The rows of each epoch, with the epoch and whether their side was master in it."""
    if not rows.num_rows:
        return
    epochs = integers(rows, EPOCH)
    for epoch in np.unique(epochs).tolist():
        here = epochs == epoch
        part = rows if here.all() else rows.filter(pa.array(here))
        yield part, epoch, bool(integers(part, MASTER)[0])
