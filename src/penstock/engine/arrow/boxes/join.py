"""Join: pairs of tuples whose distance in time is within a bound (Aurora, Sect. 2.1; A18).

A pair is given as soon as both are there; a tuple is kept as long as a partner may come.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.arrow.boxes.pairs import Pairing
from penstock.engine.arrow.columns.columns import concat, integers
from penstock.engine.arrow.logic import DEAD_SCHEMA, Answer
from penstock.engine.arrow.order import Gate, canonical
from penstock.engine.arrow.state import Buffer, Parts
from penstock.model.boxes import Join
from penstock.model.types import STAMP, StreamType, arrow_schema


class JoinLogic(Parts):
    """Keeps the tuples of each side as long as a partner may come."""

    def __init__(self, node: Join, inputs: list[StreamType], output: StreamType) -> None:
        self.node, self.gate = node, Gate(node.name, 2)
        self.pairing = Pairing(node, inputs, output)
        self.left, self.right = (Buffer(arrow_schema(stream.schema)) for stream in inputs)
        super().__init__(acted=self.gate.acted, left=self.left, right=self.right)

    def process(self, inputs: list[pa.Table], horizons: tuple[int, ...], *, final: bool) -> Answer:
        """Take one train of each side."""
        in_time, late = self.gate.admit(inputs)
        left, right = (canonical(rows) for rows in in_time)
        old = self.left.rows
        self.right.append(right)
        # New left tuples meet all right ones; old left tuples only the new ones. So each pair comes once.
        joined = [self.pairing.find(left, self.right.rows), self.pairing.find(old, right)]
        self.left.append(left)
        expire(self.node, self.left, self.right, self.gate.act(horizons), final=final)
        out = concat([j.pairs for j in joined], self.pairing.schema)
        return Answer(canonical(out), concat([late, *(j.dead for j in joined)], DEAD_SCHEMA))


def expire(node: Join, left: Buffer, right: Buffer, horizons: tuple[int, ...], *, final: bool) -> None:
    """Drop what no later tuple can reach (S04)."""
    after, before = node.within
    for buffer, reach, horizon in ((left, after, horizons[1]), (right, before, horizons[0])):
        ts = integers(buffer.rows, STAMP)
        buffer.drop(np.ones(len(ts), bool) if final else ts + reach < horizon)
