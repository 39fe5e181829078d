"""Hypothesis strategies: random networks, random streams with bounded disorder, random cuttings into trains.

    @given(cases())
    def test_cutting_does_not_matter(case): ...

Values are chosen so that every right engine agrees exactly: sums of whole numbers stay far from the edge of
BIGINT, averages are one division of exact sums. Single expressions do meet the edges, and fail into dead
letters.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from penstock.model.boxes import Source
from penstock.model.types import INTEGRAL, Schema
from penstock.model.writing.combining import group_by
from penstock.model.writing.network import Network
from penstock.model.writing.stream import Stream
from penstock.model.writing.windows import latch
from penstock.testing import examples
from penstock.testing.lists import collect, rows_source

SCHEMA = Schema.parse("time TIMESTAMP, k INT, v INT, w DOUBLE, s STRING, f BOOLEAN")
_QUARTER = 250_000
_SIZES = ("1 second", "2 seconds", "5 seconds", "7500 ms")
_COUNTS = ("1 tuple", "2 tuples", "3 tuples", "5 tuples")

Rows = list[dict[str, Any]]
Trains = list[dict[str, Rows]]


@dataclass(frozen=True)
class Case:
    """A network, the rows of each source, and two ways to cut them."""

    network: Network
    rows: dict[str, Rows]
    trains: tuple[Trains, ...] = field(default=())


# --- streams ---


@st.composite
def streams(draw: st.DrawFn, lateness: int = 0, max_size: int = 30) -> Rows:
    """Rows of SCHEMA, none more than `lateness` (microseconds) late, so that no cutting loses one.

    Values come from a drawn seed: drawn one by one, hypothesis makes nearly all streams too short to fill a
    window. What fails still shrinks, by length.
    """
    dice, size = random.Random(draw(st.integers(0, 2**20))), draw(st.integers(0, max_size))
    newest, rows = 0, []
    for _ in range(size):
        stamp = _next_stamp(dice, newest, lateness)
        newest = max(newest, stamp)
        rows.append({"time": stamp / 1_000_000, **_values(dice)})
    return rows


def _next_stamp(dice: random.Random, newest: int, lateness: int) -> int:
    """Mostly small steps and ties, some disorder up to the whole lateness, now and then a gap."""
    kind = dice.random()
    if kind < 0.35:
        return newest - dice.choice((0, lateness // 2, lateness))
    return newest + (dice.randint(1, 6) * _QUARTER if kind < 0.95 else 15_000_000)


def _values(dice: random.Random) -> dict[str, Any]:
    return {
        "k": dice.choice((None, 0, 0, 1, 1, 2)),
        "v": dice.choice((None, 0, 0, 1, 2, 3, -4, 5, 2**31 - 1, -(2**31))),
        "w": dice.choice((None, *(quarters / 4 for quarters in range(-8, 9)))),
        "s": dice.choice((None, "", "a", "a", "b", "12", "é")),
        "f": dice.choice((None, True, False)),
    }


@st.composite
def cuttings(draw: st.DrawFn, rows: dict[str, Rows], max_trains: int = 6) -> Trains:
    """The rows cut into trains, each source at its own pace; some trains are empty."""
    number = draw(st.integers(1, max_trains))
    trains: Trains = [{} for _ in range(number)]
    for source, given in rows.items():
        cuts = sorted(draw(st.lists(st.integers(0, len(given)), min_size=number - 1, max_size=number - 1)))
        for train, start, end in zip(trains, [0, *cuts], [*cuts, len(given)], strict=True):
            train[source] = given[start:end]
    return trains


# --- networks ---


@st.composite
def networks(draw: st.DrawFn, max_boxes: int = 6, max_sources: int = 2) -> Network:
    """A network: sources of SCHEMA, up to so many boxes of all kinds, outputs at every loose end."""
    network = Network("random")
    taps = [_source(draw, network, number) for number in range(draw(st.integers(1, max_sources)))]
    for _ in range(draw(st.integers(1, max_boxes))):
        # half of the time go on from the newest box: promises show their worth in chains
        stream = taps[-1] if draw(st.booleans()) else draw(st.sampled_from(taps))
        box = draw(st.sampled_from(_choices(stream, taps)))
        taps.append(box(draw, stream, taps))
    for number, tap in enumerate(taps):
        if not network.readers(tap.name):
            tap.output(f"out_{number}", to=collect())
    return network


@st.composite
def cases(draw: st.DrawFn, max_boxes: int = 6, number_of_cuttings: int = 2, max_size: int = 30) -> Case:
    """A network with rows for it, cut in several ways."""
    network = draw(networks(max_boxes=max_boxes))
    lateness_of = {name: node.lateness for name, node in network.nodes.items() if isinstance(node, Source)}
    rows = {name: draw(streams(lateness, max_size)) for name, lateness in lateness_of.items()}
    return Case(network, rows, tuple(draw(cuttings(rows)) for _ in range(number_of_cuttings)))


Draw = Callable[..., Any]
Box = Callable[[Draw, Stream, list[Stream]], Stream]


def _source(draw: Draw, network: Network, number: int) -> Stream:
    lateness = draw(st.sampled_from((0, "500 ms", "3 seconds")))
    return network.source(f"source_{number}", rows_source(SCHEMA), timestamp="time", lateness=lateness)


def _choices(stream: Stream, taps: list[Stream]) -> list[Box]:
    boxes: list[Box] = [_filter, _map, _drop, _group, _point, _apply]
    if _timely(stream):
        boxes += [_window, _window, _count_window, _function_window, _latch, _function_latch, _join]
        boxes += [_resample, _resample] if _resampled(stream) else []
        boxes += [_merged_latch, _merged_latch] if _partners(stream, taps) else []
    boxes += [_union] if len(_alike(stream, taps)) > 1 else []
    return boxes


def _timely(stream: Stream) -> bool:
    """Behind a count window with the earliest stamp nothing may wait for time: the check refuses it."""
    return stream.type.lag is not None


def _columns(stream: Stream, *types: str) -> list[str]:
    free = [c for c in stream.schema if c.name not in stream.type.keys and c.name != stream.type.timestamp]
    return [column.name for column in free if not types or column.type in types]


def _alike(stream: Stream, taps: list[Stream]) -> list[Stream]:
    wanted = stream.type
    return [
        tap
        for tap in taps
        if (tap.schema, tap.type.timestamp, tap.type.keys) == (wanted.schema, wanted.timestamp, wanted.keys)
    ]


def _fresh(stream: Stream) -> str:
    return f"c{len(stream.network.nodes)}"


def _expression(draw: Draw, stream: Stream) -> str:
    texts: list[str] = []
    for name in _columns(stream, "INT"):
        texts += [
            f"{name} + 1",
            f"{name} / 2",
            f"10 / {name}",
            f"{name} % 3",
            f"coalesce({name}, 0)",
            f"abs({name})",
        ]
        texts += [f"CASE WHEN {name} > 0 THEN 'some' ELSE 'none' END", f"cast({name} AS STRING)"]
    for name in _columns(stream, "DOUBLE"):
        texts += [f"{name} + 0.5D", f"coalesce({name}, 1.0D)"]
    for name in _columns(stream, "STRING"):
        texts += [f"upper({name})", f"length({name})", f"cast({name} AS INT)"]
    return str(draw(st.sampled_from(texts or ["1 + 1"])))


def _predicate(draw: Draw, stream: Stream) -> str:
    texts: list[str] = []
    for name in _columns(stream, *INTEGRAL, "DOUBLE"):
        texts += [f"{name} > 0", f"{name} IS NOT NULL", f"{name} IS NULL OR {name} < 3"]
    texts += [f"10 / {name} > 2" for name in _columns(stream, "INT")]
    texts += [f"{name} <> 'a' OR {name} IS NULL" for name in _columns(stream, "STRING")]
    texts += [f"NOT {name}" for name in _columns(stream, "BOOLEAN")]
    return str(draw(st.sampled_from(texts or ["1 = 1"])))


def _aggregates(draw: Draw, stream: Stream) -> dict[str, str]:
    texts = ["count(*)"]
    for name in _columns(stream):
        texts += [
            f"count({name})",
            f"count(distinct {name})",
            f"min({name})",
            f"max({name})",
            f"first({name})",
            f"last({name})",
        ]
    for name in _columns(stream, *INTEGRAL):
        texts += [f"sum({name})", f"avg({name})", f"sum({name}) / count(*)"]
    texts += [f"max(10 / {name}) > 1" for name in _columns(stream, "INT")]
    chosen = draw(st.lists(st.sampled_from(texts), min_size=1, max_size=3))
    return {f"{_fresh(stream)}_{number}": text for number, text in enumerate(chosen)}


def _grouped(draw: Draw, stream: Stream) -> Stream:
    keys = _columns(stream, "INT", "STRING", "BOOLEAN", "DOUBLE")
    if stream.type.keys or not keys or draw(st.booleans()):
        return stream
    return stream.group_by(*draw(st.lists(st.sampled_from(keys), min_size=1, max_size=2, unique=True)))


def _stamp(draw: Draw) -> str:
    return str(draw(st.sampled_from(("earliest", "latest"))))


def _filter(draw: Draw, stream: Stream, _taps: list[Stream]) -> Stream:
    return (
        stream.filter(examples.no_nulls)
        if draw(st.integers(0, 5)) == 0
        else stream.filter(_predicate(draw, stream))
    )


def _map(draw: Draw, stream: Stream, _taps: list[Stream]) -> Stream:
    return stream.map({_fresh(stream): _expression(draw, stream)})


def _apply(_draw: Draw, stream: Stream, taps: list[Stream]) -> Stream:
    if "nulls" in stream.schema:
        return _drop(_draw, stream, taps)
    return stream.apply(examples.count_nulls, produces="nulls BIGINT")


def _drop(draw: Draw, stream: Stream, _taps: list[Stream]) -> Stream:
    return stream.drop(draw(st.sampled_from((0.0, 0.3, 1.0))), seed=draw(st.integers(0, 3)))


def _group(draw: Draw, stream: Stream, taps: list[Stream]) -> Stream:
    keys = _columns(stream, "INT", "STRING")
    if stream.type.keys or not keys:
        return _filter(draw, stream, taps)
    others = [tap for tap in _alike(stream, taps) if tap.name != stream.name]
    chosen = [draw(st.sampled_from(others))] if others and draw(st.booleans()) else []
    return group_by(draw(st.sampled_from(keys)), stream, *chosen)


def _union(draw: Draw, stream: Stream, taps: list[Stream]) -> Stream:
    return stream.union(
        draw(st.sampled_from([tap for tap in _alike(stream, taps) if tap.name != stream.name]))
    )


def _point(draw: Draw, stream: Stream, _taps: list[Stream]) -> Stream:
    name = f"point_{len(stream.network.nodes)}"
    return stream.view(name) if draw(st.booleans()) else stream.connection_point(name, keep="1 hour")


def _window(draw: Draw, stream: Stream, _taps: list[Stream]) -> Stream:
    stream = _grouped(draw, stream)
    texts, size, stamp = _aggregates(draw, stream), draw(st.sampled_from(_SIZES)), _stamp(draw)
    if draw(st.booleans()):
        texts["opened"] = "window_start()"
    if draw(st.booleans()):
        return stream.tumble(size, texts, stamp=stamp)
    return stream.slide(size, texts, every=draw(st.sampled_from(_SIZES)), stamp=stamp)


def _count_window(draw: Draw, stream: Stream, _taps: list[Stream]) -> Stream:
    stream = _grouped(draw, stream)
    texts, size, stamp = _aggregates(draw, stream), draw(st.sampled_from(_COUNTS)), _stamp(draw)
    if draw(st.booleans()):
        return stream.tumble(size, texts, stamp=stamp)
    return stream.slide(size, texts, every=draw(st.sampled_from(_COUNTS)), stamp=stamp)


def _function_window(draw: Draw, stream: Stream, taps: list[Stream]) -> Stream:
    stream = _grouped(draw, stream)
    rest = Schema(tuple(column for column in stream.schema if column.name in _columns(stream)))
    if not rest.columns:
        return _count_window(draw, stream, taps)
    size = draw(st.sampled_from(_SIZES + _COUNTS))
    return stream.tumble(size, function=examples.last_two, produces=rest, stamp="latest")


def _latch(draw: Draw, stream: Stream, _taps: list[Stream]) -> Stream:
    stream = _grouped(draw, stream)
    return stream.latch(
        draw(st.sampled_from(_SIZES + _COUNTS)), _aggregates(draw, stream), stamp=_stamp(draw)
    )


def _function_latch(draw: Draw, stream: Stream, taps: list[Stream]) -> Stream:
    if "seen" in stream.schema:
        return _latch(draw, stream, taps)
    stream = _grouped(draw, stream)
    produces = stream.schema.with_columns(Schema.parse("seen BIGINT"))
    return stream.latch(function=_stateful(draw, stream), state="seen BIGINT", produces=produces)


def _stateful(draw: Draw, stream: Stream) -> Any:
    """A function that leaves tuples out must be able to make their timestamps."""
    both = (examples.running_count, examples.every_second)
    return draw(st.sampled_from(both if stream.type.timestamp in stream.schema else both[:1]))


def _partners(stream: Stream, taps: list[Stream]) -> list[Stream]:
    """Other streams that a latch can merge with this one."""
    if "input" in stream.schema or "seen" in stream.schema:
        return []
    return [tap for tap in _alike(stream, taps) if _timely(tap) and tap.name != stream.name]


def _merged_latch(draw: Draw, stream: Stream, taps: list[Stream]) -> Stream:
    inputs = [stream, draw(st.sampled_from(_partners(stream, taps)))]
    if draw(st.booleans()):
        produces = stream.schema.with_columns(Schema.parse("input INT, seen BIGINT"))
        return latch(inputs, function=_stateful(draw, stream), state="seen BIGINT", produces=produces)
    size = draw(st.sampled_from(_SIZES + _COUNTS))
    return latch(inputs, size, seen="count(*)", source="last(input)", stamp=_stamp(draw))


def _resampled(stream: Stream) -> list[str]:
    return [] if "synthetic" in stream.schema else _columns(stream, "INT", "DOUBLE")


def _resample(draw: Draw, stream: Stream, _taps: list[Stream]) -> Stream:
    stream = _grouped(draw, stream)
    numbers = _resampled(stream)
    if not numbers:  # the grouping took the only number
        return stream.filter("1 = 1")
    return stream.resample(
        draw(st.sampled_from(("500 ms", "1 second"))),
        columns=[draw(st.sampled_from(numbers))],
        limit="3 seconds",
    )


def _join(draw: Draw, stream: Stream, taps: list[Stream]) -> Stream:
    others = [tap for tap in taps if _timely(tap)]
    other = draw(st.sampled_from(others))
    both = [
        c.name for c in stream.schema if c in other.schema.columns and c.type in ("INT", "STRING", "BOOLEAN")
    ]
    on = [draw(st.sampled_from(both))] if both and draw(st.booleans()) else []
    within = (draw(st.sampled_from((0, "1 second"))), draw(st.sampled_from((0, "500 ms"))))
    # a suffix of its own: the output of a join may be joined again
    spread = draw(st.sampled_from(({}, {"distribution": "diffused", "sample": 1}, {"distribution": "auto"})))
    return stream.join(other, on=on, within=within, suffix=f"_{len(stream.network.nodes)}", **spread)
