"""The table of boxes of the reference engine: a line for each kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Never, cast

from penstock.engine.local.boxes.column_latch import ColumnLatchLogic
from penstock.engine.local.boxes.diffused_join import DiffusedJoin
from penstock.engine.local.boxes.join import JoinLogic
from penstock.engine.local.boxes.latch import CountLatch, FunctionLatch, TimeLatch
from penstock.engine.local.boxes.resample import ResampleLogic
from penstock.engine.local.boxes.stateless import DropLogic, FilterLogic, MapLogic, Pass
from penstock.engine.local.boxes.windows import CountWindows, TimeWindows
from penstock.engine.local.rows import Logic
from penstock.model.boxes import Join, Latch, Node, Windowed
from penstock.model.durations import Time
from penstock.model.types import StreamType

Inputs = list[StreamType]
Make = Callable[[Never, Inputs, StreamType], Logic]  # each takes the class of its line


def logic_for(node: Node, inputs: Inputs, output: StreamType) -> Logic:
    """The reference logic of a box."""
    make = cast("Callable[[Node, Inputs, StreamType], Logic]", LOGICS[node.kind])
    return make(node, inputs, output)


def _pass(_node: Node, _inputs: Inputs, _output: StreamType) -> Logic:
    return Pass()


def _windows(node: Windowed, inputs: Inputs, output: StreamType) -> Logic:
    return (TimeWindows if isinstance(node.size, Time) else CountWindows)(node, inputs, output)


def _latch(node: Latch, inputs: Inputs, output: StreamType) -> Logic:
    if node.function is not None:
        return FunctionLatch(node, inputs, output)
    return (TimeLatch if isinstance(node.size, Time) else CountLatch)(node, inputs, output)


def _join(node: Join, inputs: Inputs, output: StreamType) -> Logic:
    # Only a bound on memory makes servers visible: it loses pairs, and which depends on where tuples lie.
    bounded = node.spread and node.diffusion.memory is not None
    return (DiffusedJoin if bounded else JoinLogic)(node, inputs, output)


LOGICS: dict[str, Make] = {
    "filter": lambda node, inputs, _output: FilterLogic(node, inputs),
    "map": MapLogic,
    "drop": lambda node, _inputs, _output: DropLogic(node),
    "union": _pass,
    "group_by": _pass,
    "tumble": _windows,
    "slide": _windows,
    "latch": _latch,
    "column_latch": ColumnLatchLogic,
    "resample": ResampleLogic,
    "join": _join,
    "connection_point": _pass,
    "view": _pass,
    "output": _pass,
}
