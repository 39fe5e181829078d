"""Valves on Arrow tables: which tuples stay (`engine/contract/valve.py` says what a valve means).

Pure functions of the valves in a ticket and of the tuples, so a train that runs again sheds the same. The
same choices as Spark SQL are in `engine/spark/entry/valve_sql.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import xxhash

from penstock.engine.arrow.columns.columns import integers, key_values, to_numpy
from penstock.engine.arrow.columns.expressions import compile_arrow
from penstock.engine.arrow.columns.hashing import drop_hash, hash_long
from penstock.engine.arrow.window_spans import Spans
from penstock.engine.contract.valve import PARTS, Step, Valve
from penstock.model.boxes import Trait, Windowed
from penstock.model.durations import Time
from penstock.model.types import SEQ, STAMP, Schema
from penstock.model.writing.network import Network

_UNKNOWN = -(2**63) + 1
_SEED = 42  # of Spark's xxhash64


def by_place(valves: Iterable[Valve]) -> dict[str, tuple[Valve, ...]]:
    """The valves at each place. A tuple passes if all of them let it."""
    places: dict[str, tuple[Valve, ...]] = {}
    for valve in valves:
        places[valve.at] = (*places.get(valve.at, ()), valve)
    return places


def kept(valves: Sequence[Valve], table: pa.Table, schema: Schema) -> np.ndarray:
    """True for each tuple that all valves let pass. `schema`: the visible columns of the table."""
    mask = np.ones(table.num_rows, bool)
    for valve in valves:
        mask &= _KEPT[valve.grain](valve, table, schema)
    return mask


def passed(valves: Sequence[Valve], table: pa.Table, schema: Schema) -> tuple[pa.Table, int]:
    """The tuples that pass, and how many were shed."""
    if not valves or not table.num_rows:
        return table, 0
    mask = kept(valves, table, schema)
    shed = int(len(mask) - np.count_nonzero(mask))
    return (table.filter(pa.array(mask)), shed) if shed else (table, 0)


def numbers_kept(valve: Valve, numbers: np.ndarray) -> np.ndarray:
    """True for each number of a grain that stays."""
    mask: np.ndarray = drop_hash(valve.lot, numbers) % np.uint64(PARTS) < valve.bar
    return mask


def places_kept(valves: Sequence[Valve], places: np.ndarray) -> np.ndarray:
    """True where a tuple with this `_seq` stays, as far as that depends on `_seq` alone."""
    mask = np.ones(len(places), bool)
    for valve in valves:
        if valve.bits is not None:
            mask &= numbers_kept(valve, places >> valve.bits)
    return mask


def windows_kept(valve: Valve, windows: np.ndarray) -> np.ndarray:
    """True for each window (by its number) that stays: chosen by no share that held while it was open."""
    begin = windows * valve.every
    bars = np.full(len(windows), PARTS, np.int64)
    for step in valve.steps or (Step(valve.share, _UNKNOWN),):
        covers = (begin + valve.size > step.since) & (begin <= step.until)
        bars = np.where(covers, np.minimum(bars, round(step.share * PARTS)), bars)
    mask: np.ndarray = (drop_hash(valve.lot, windows) % np.uint64(PARTS)).astype(np.int64) < bars
    return mask


def _by_place(valve: Valve, table: pa.Table, _schema: Schema) -> np.ndarray:
    return places_kept([valve], integers(table, SEQ))


def _by_window(valve: Valve, table: pa.Table, _schema: Schema) -> np.ndarray:
    """A tuple stays if one of its windows does, or if it has none."""
    stamps, valid = to_numpy(table.column(STAMP))
    spans = Spans(valve.size, valve.every)
    # Tuples of one pane lie in the same windows, and a train has few panes.
    panes, which = np.unique(spans.pane(stamps), return_inverse=True)
    pane, windows = spans.of_panes(panes, _UNKNOWN, None)
    stay = np.bincount(pane, windows_kept(valve, windows), len(panes)) > 0
    lonely = np.bincount(pane, minlength=len(panes)) == 0
    mask: np.ndarray = (stay | lonely)[which]
    return mask if valid is None else mask | ~valid


def _by_key(valve: Valve, table: pa.Table, _schema: Schema) -> np.ndarray:
    if not valve.keys:
        return np.ones(table.num_rows, bool)  # the conductor has left out whole groups
    hashes = key_hashes(valve.lot, [table.column(key) for key in valve.keys])
    mask: np.ndarray = hashes % np.uint64(PARTS) < valve.bar
    return mask


def key_hashes(lot: int, columns: Sequence[pa.ChunkedArray]) -> np.ndarray:
    """Spark's `xxhash64(lot, keys ...)` as unsigned: numbers as BIGINT or DOUBLE, a null changes nothing."""
    start = hash_long(np.array([lot], np.int64), np.array([_SEED], np.uint64))[0]
    hashes = np.full(len(columns[0]) if columns else 0, start, np.uint64)
    for column in columns:
        values, valid = key_values(column)
        mixed = _text_hashes(values, valid, hashes) if values.dtype == object else hash_long(values, hashes)
        hashes = mixed if valid is None else np.where(valid, mixed, hashes)
    return hashes


def _text_hashes(values: np.ndarray, valid: np.ndarray | None, seeds: np.ndarray) -> np.ndarray:
    """Each text (with its seed) is hashed once: keys repeat."""
    known: dict[tuple[object, int], int] = {}
    present = values if valid is None else np.where(valid, values, "")
    for pair in zip(present.tolist(), seeds.tolist(), strict=True):
        if pair not in known:
            text, seed = pair
            known[pair] = xxhash.xxh64_intdigest(text.encode() if isinstance(text, str) else text, seed)
    pairs = zip(present.tolist(), seeds.tolist(), strict=True)
    return np.array([known[pair] for pair in pairs], np.uint64)


def _by_value(valve: Valve, table: pa.Table, schema: Schema) -> np.ndarray:
    """Where the predicate is unknown, or fails, the tuple stays: nobody said that it is worth less."""
    mask = _holds(valve.predicate, table, schema, otherwise=True)
    if not valve.partly or not valve.part_bar:
        return mask
    spared = drop_hash(valve.lot, integers(table, SEQ)) % np.uint64(PARTS) < valve.part_bar
    both: np.ndarray = mask | (_holds(valve.partly, table, schema, otherwise=False) & spared)
    return both


def _holds(predicate: str, table: pa.Table, schema: Schema, *, otherwise: bool) -> np.ndarray:
    """Where a predicate is true; `otherwise`: where it is unknown or fails."""
    values, failures = compile_arrow(predicate, schema)(table.select(list(schema.names)))
    passing, valid = to_numpy(values)
    mask: np.ndarray = passing.astype(bool)
    mask = mask if valid is None else np.where(valid, mask, otherwise)
    if failures:
        mask = mask.copy()
        mask[list(failures)] = otherwise
    return mask


_KEPT = {
    "slices": _by_place,
    "blocks": _by_place,
    "tuples": _by_place,
    "windows": _by_window,
    "keys": _by_key,
    "values": _by_value,
}


def windows_told(valves: Sequence[Valve], windows: np.ndarray) -> np.ndarray:
    """True for each closing window that is to be told: none of these valves has chosen it."""
    mask = np.ones(len(windows), bool)
    for valve in valves:
        mask &= windows_kept(valve, windows)
    return mask


def choosing(net: Network, valves: Iterable[Valve]) -> dict[str, tuple[Valve, ...]]:
    """By box with windows: the valves above it that choose among its windows.

    A window chosen late has tuples already, so its box must know that it is not to be told.
    """
    boxes: dict[str, tuple[Valve, ...]] = {}
    for valve in valves:
        if valve.grain == "windows":
            for name in _window_boxes(net, valve):
                boxes[name] = (*boxes.get(name, ()), valve)
    return boxes


def _first_behind(net: Network, valve: Valve) -> list[str]:
    """The nodes that a valve's tuples reach first.

    Its arrow may be gone: somebody gave the box another name while windows were open of which it had dropped
    a part. Then the windows of all boxes behind its tail count as chosen, or of all: rather none than wrong.
    """
    if valve.arrow is None:
        return list(net.readers(valve.at))
    tail, head = valve.arrow
    if head in net.nodes and tail in net.nodes[head].inputs:
        return [head]
    return list(net.readers(tail) if tail in net.nodes else net.nodes)


def _window_boxes(net: Network, valve: Valve) -> set[str]:
    """The boxes with these windows that a valve's tuples reach without passing another box with memory."""
    boxes, seen = set(), set()
    todo = _first_behind(net, valve)
    while todo:
        node = net.nodes[name := todo.pop()]
        if name in seen:
            continue
        seen.add(name)
        if Trait.STATEFUL not in node.traits:
            todo += net.readers(name)
        elif isinstance(node, Windowed) and (node.size, node.step) == (Time(valve.size), Time(valve.every)):
            boxes.add(name)
    return boxes
