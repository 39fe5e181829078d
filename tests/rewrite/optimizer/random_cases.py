"""Random networks for the optimizer: those of the test kit, and more of what its rules look for.

Filters and maps that cannot fail, selects, functions that promise to be rowwise, keyed points, joins with a
condition, and boxes written twice. What may fail, and functions without a promise, come from the test kit.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from hypothesis import strategies as st

from penstock.model.boxes import Source
from penstock.model.writing.network import Network
from penstock.testing import collect, strategies
from penstock.testing.strategies import Case, cuttings, streams


def above_zero(batch: pa.Table) -> pa.Array:
    """A predicate that looks at each row alone: its only column is above zero."""
    return pa.array([value is not None and value > 0 for value in batch.column(0).to_pylist()], pa.bool_())


def is_text(batch: pa.Table) -> dict[str, pa.Array]:
    """A map that looks at each row alone: `sure BOOLEAN`, whether its only column is there."""
    return {"sure": pa.array([value is not None for value in batch.column(0).to_pylist()], pa.bool_())}


@st.composite
def optimizer_cases(draw, max_boxes=8, max_size=20):
    """A network that the rules have something to do with, its rows, and one way to cut them."""
    network = draw(networks(max_boxes))
    lateness = {name: node.lateness for name, node in network.nodes.items() if isinstance(node, Source)}
    rows = {name: draw(streams(each, max_size)) for name, each in lateness.items()}
    return Case(network, rows, (draw(cuttings(rows)),))


@st.composite
def networks(draw, max_boxes=8):
    network = Network("random")
    taps = [strategies._source(draw, network, number) for number in range(draw(st.integers(1, 2)))]
    for _ in range(draw(st.integers(2, max_boxes))):
        stream = taps[-1] if draw(st.integers(0, 2)) else draw(st.sampled_from(taps))
        mine = draw(st.integers(0, 2)) > 0
        choices = _boxes(stream) if mine else strategies._choices(stream, taps)
        taps.append(draw(st.sampled_from(choices))(draw, stream, taps))
    for number, tap in enumerate(taps):
        if not network.readers(tap.name):
            tap.output(f"out_{number}", to=collect())
    return network


def _boxes(stream):
    boxes = [_filter, _filter, _filter, _two_filters, _map, _map, _select, _again, _drop]
    boxes += [_rowwise_filter, _rowwise_map] if strategies._columns(stream, "INT") else []
    if strategies._timely(stream):
        boxes += [_key_window, _key_window, _join_on, _join_on, _keyed_point_join, _map_for_a_filter]
    return boxes


def _predicate(draw, stream):
    texts = []
    for column in stream.schema:
        name = column.name
        texts += [f"{name} IS NOT NULL"]
        if column.type in ("INT", "BIGINT", "DOUBLE"):
            texts += [f"{name} > 0", f"{name} = 1 OR {name} IS NULL", f"{name} BETWEEN 0 AND 2"]
            texts += [f"cast({name} AS STRING) <> '0.0'", f"coalesce({name}, 7) < 3"]
        if column.type == "STRING":
            texts += [f"{name} IN ('a', 'b')", f"length({name}) > 0"]
        if column.type == "BOOLEAN":
            texts += [name, f"NOT {name}"]
    return draw(st.sampled_from(texts))


def _filter(draw, stream, _taps):
    return stream.filter(_predicate(draw, stream))


def _two_filters(draw, stream, _taps):
    return stream.filter(f"{_predicate(draw, stream)} AND ({_predicate(draw, stream)})")


def _drop(draw, stream, _taps):
    return stream.drop(draw(st.sampled_from((0.2, 0.5))), seed=draw(st.integers(0, 2)))


def _map(draw, stream, _taps):
    texts = ["1", "'x'"]
    for name in strategies._columns(stream, "INT"):
        texts += [name, f"cast({name} AS BIGINT) + 1", f"coalesce({name}, 0)", f"{name} / 2", f"{name} % 3"]
    texts += [f"{name} * 0.5D" for name in strategies._columns(stream, "DOUBLE")]
    texts += [f"upper({name})" for name in strategies._columns(stream, "STRING")]
    name = strategies._fresh(stream)
    if draw(st.booleans()):
        # a column that is there already: the same type, or a box behind may not take it
        own = strategies._columns(stream, "BIGINT", "DOUBLE")
        if own:
            column = draw(st.sampled_from(own))
            return stream.map({column: f"coalesce({column}, {column})", name: draw(st.sampled_from(texts))})
    return stream.map({name: draw(st.sampled_from(texts))})


def _select(draw, stream, _taps):
    must = [name for name in stream.schema.names if name in (*stream.type.keys, stream.type.timestamp)]
    others = [name for name in stream.schema.names if name not in must]
    some = draw(st.lists(st.sampled_from(others), min_size=1, unique=True)) if others else []
    names = [name for name in stream.schema.names if name in must or name in some]
    return stream.select(*(names or stream.schema.names[:1]))


def _rowwise_filter(draw, stream, _taps):
    column = draw(st.sampled_from(strategies._columns(stream, "INT")))
    return stream.filter(above_zero, reads=column, rowwise=True)


def _rowwise_map(draw, stream, taps):
    if "sure" in stream.schema:
        return _filter(draw, stream, taps)
    column = draw(st.sampled_from(strategies._columns(stream, "INT")))
    return stream.apply(is_text, reads=column, produces="sure BOOLEAN", rowwise=True)


def _key_window(draw, stream, taps):
    """A window over keys, and a filter on one of them behind it."""
    keys = strategies._columns(stream, "INT", "STRING", "DOUBLE")
    if stream.type.keys or not keys:
        return strategies._window(draw, stream, taps)
    key = draw(st.sampled_from(keys))
    grouped = stream.group_by(key)
    free = strategies._columns(grouped) or [key]
    column = draw(st.sampled_from(free))
    texts = draw(st.sampled_from((f"count({column})", f"max({column})", "count(*)", f"last({column})")))
    if "max" in texts and grouped.schema.type_of(column) == "BINARY":
        texts = "count(*)"
    size = draw(st.sampled_from(("2 seconds", "3 tuples")))
    stamp = "latest" if "tuples" in size else strategies._stamp(draw)
    window = grouped.tumble(size, {strategies._fresh(stream): texts}, stamp=stamp)
    return window.filter(f"{key} IS NOT NULL")


def _join_on(draw, stream, taps):
    others = [tap for tap in taps if strategies._timely(tap)]
    other = draw(st.sampled_from(others))
    both = [
        c.name for c in stream.schema if c in other.schema.columns and c.type in ("INT", "STRING", "DOUBLE")
    ]
    on = [draw(st.sampled_from(both))] if both else []
    joined = stream.join(other, on=on, within="1 second", suffix=f"_{len(stream.network.nodes)}")
    return joined.filter(_predicate(draw, joined))


def _keyed_point_join(draw, stream, taps):
    """A join of a keyed point with a stream that has a filter on that key."""
    keys = strategies._columns(stream, "INT", "STRING")
    if stream.type.keys or not keys:
        return _filter(draw, stream, taps)
    key = draw(st.sampled_from(keys))
    name = f"point_{len(stream.network.nodes)}"
    point = stream.connection_point(name, keep="1 hour", key=key)
    asked = stream.filter(
        f"{key} IS NOT NULL AND {key} <> '7'" if draw(st.booleans()) else f"{key} IS NOT NULL"
    )
    return asked.join(point, on=[key], within="1 second", suffix=f"_{len(stream.network.nodes)}")


def _map_for_a_filter(draw, stream, taps):
    """A column that only the filter behind it reads, in front of a window that forgets it."""
    if stream.type.keys:
        return _filter(draw, stream, taps)
    mapped = _map(draw, stream, taps)
    name = mapped.schema.names[-1]
    return mapped.filter(f"{name} IS NOT NULL").tumble("2 seconds", {strategies._fresh(mapped): "count(*)"})


def _again(draw, stream, taps):
    """The box that made this stream once more, on the same input."""
    node = stream.node
    if not node.is_box:
        return _filter(draw, stream, taps)
    return stream.network.add(replace(node, name=stream.network.free_name(node.kind), origin=()))
