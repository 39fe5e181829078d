"""Random networks, written through the fluent API: any box on any stream that can take it."""

from __future__ import annotations

from hypothesis import strategies as st

import penstock as ps
from penstock.model.types import NUMERIC

SCHEMA = "time TIMESTAMP, k INT, v DOUBLE, s STRING"
FUNCTIONS = "model.sample_functions:"
texts = st.text(st.characters(codec="utf-8"), max_size=20)
names = st.from_regex(r"[A-Za-z][\w .:\-]{0,8}", fullmatch=True)
tables = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
durations = st.integers(1, 10**13).map(lambda us: us / 1_000_000)
extents = st.one_of(st.integers(1, 10**6).map(ps.Count), st.integers(1, 10**13).map(ps.Time))
predicates = st.sampled_from(["true", "1 < 2", "'it''s: #1' = 'no'", "length('a\\tb') > 0", "NOT false"])
qualities = st.one_of(
    st.none(),
    st.builds(
        lambda good, end, weight: ps.QoS(
            delay=[(0, 1), (good, 1), (good + end, 0)], loss=[(0, 0), (100, 1)], weight=weight
        ),
        st.floats(0.1, 1e6),
        st.floats(0.1, 1e6),
        st.floats(0.01, 100),
    ),
)
paths = texts.filter(lambda text: "\0" not in text)
sinks = st.one_of(
    st.builds(ps.parquet, paths),
    st.builds(lambda path, header: ps.csv(path, header=header, sep=";"), paths, st.booleans()),
    st.builds(ps.console, st.integers(0, 100)),
    st.just(ps.memory()),
    st.builds(ps.callback, st.just(__import__("model.sample_functions", fromlist=["seen"]).seen)),
)


@st.composite
def networks(draw, boxes=8):
    """A network of one to three sources and some boxes, ended by outputs."""
    net = ps.Network(draw(names))
    streams = [_source(draw, net, f"source_{at}") for at in range(draw(st.integers(1, 3)))]
    for _ in range(draw(st.integers(0, boxes))):
        path = draw(st.lists(st.sampled_from(["inner", "x: y", "#"]), max_size=2))
        streams.append(_in_groups(net, path, lambda: _box(draw, draw(st.sampled_from(streams)), streams)))
    for at in range(draw(st.integers(0, 2))):
        net.output(f"out_{at}", draw(st.sampled_from(streams)), to=draw(sinks), qos=draw(qualities))
    return net


def _in_groups(net, path, build):
    if not path:
        return build()
    with net.group(path[0], description="a group" if len(path) > 1 else ""):
        return _in_groups(net, path[1:], build)


def _source(draw, net, name):
    if draw(st.booleans()):
        form = draw(st.sampled_from([ps.csv("in: put/", SCHEMA, header=True), ps.json("#", SCHEMA)]))
        return net.source(
            name,
            form,
            timestamp="time",
            lateness=draw(durations),
            whole=draw(st.booleans()),
            idle=draw(st.none() | durations),
        )
    make = __import__("model.sample_functions", fromlist=["rows"]).rows
    return net.source(name, ps.rows(make, SCHEMA), timestamp="time")


def _box(draw, stream, streams):
    """One more box; its name, tag and texts are often strange."""
    made = draw(st.sampled_from(_BOXES))(draw, stream, streams)
    if draw(st.booleans()):
        made.about(tag=draw(texts), description=draw(texts), manual=draw(texts))
    fresh = draw(tables if made.name in made.network.points else names)
    return made if fresh in made.network.nodes else made.named(fresh)


def new(stream, letter="x"):
    """A column name that stands nowhere else."""
    return f"{letter}{len(stream.network.nodes)}"


def _filter(draw, stream, _streams):
    return stream.filter(draw(predicates)) if draw(st.booleans()) else stream.filter(_function("one"))


def _map(draw, stream, _streams):
    if draw(st.booleans()):
        return stream.map(
            {
                new(stream): draw(st.sampled_from(["1", "'a: b'", "cast('1' as int)"])),
                new(stream, "y"): "'null'",
            }
        )
    return stream.apply(FUNCTIONS + "one", produces=f"{new(stream)} INT", reads=stream.schema.names[:1])


def _select(draw, stream, _streams):
    return (
        stream.select(*stream.schema.names)
        if stream.type.keys
        else stream.select(*stream.schema.names[:2], {new(stream): "1"})
    )


def _drop(draw, stream, _streams):
    return stream.drop(draw(st.floats(0, 1)), seed=draw(st.integers(0, 2**31)))


def _union(draw, stream, streams):
    return stream.union(
        stream,
        *[
            s
            for s in streams
            if s.type.schema == stream.schema
            and s.type.keys == stream.type.keys
            and s.type.timestamp == stream.type.timestamp
        ],
    )


def _group_by(draw, stream, _streams):
    keys = [name for name in stream.schema.names if name != stream.type.timestamp]
    return (
        stream.group_by(*draw(st.lists(st.sampled_from(keys), min_size=1, max_size=2, unique=True)))
        if keys
        else stream.drop(0.5)
    )


def _tumble(draw, stream, _streams):
    if draw(st.booleans()):
        return stream.tumble(
            draw(extents), {new(stream): "count(*)", new(stream, "h"): "count(*) / 2"}, stamp="latest"
        )
    return stream.tumble(
        draw(extents),
        function=FUNCTIONS + "one",
        produces=f"{new(stream)} INT, {new(stream, 'b')} STRING",
        stamp="latest",
    )


def _slide(draw, stream, _streams):
    size = draw(extents)
    return stream.slide(size, {new(stream): "count(*)"}, every=size, stamp="latest")


def _latch(draw, stream, _streams):
    if draw(st.booleans()):
        return stream.latch(draw(durations), {new(stream): "count(*)"})
    return stream.latch(
        function=FUNCTIONS + "two", state=f"{new(stream)} BIGINT", produces="k INT, v DOUBLE, s STRING"
    )


def _resample(draw, stream, _streams):
    columns = [c.name for c in stream.schema if c.type in NUMERIC and c.name not in stream.type.keys]
    if not columns or "synthetic" in stream.schema:
        return stream.drop(0.25)
    return stream.resample(draw(durations), columns=columns, limit=draw(durations))


def _join(draw, stream, _streams):
    narrow = stream.network.stream("source_0").select("time", "k", **{f"k{len(stream.network.nodes)}": "k"})
    suffix = f"_{len(stream.network.nodes)}"
    on = (
        draw(st.sampled_from([[], [("k", "k")]]))
        if "k" in stream.schema and stream.schema.type_of("k") in NUMERIC
        else []
    )
    return stream.join(
        narrow,
        on=on,
        within=(draw(durations), draw(durations)),
        where=draw(predicates),
        suffix=suffix,
        **(draw(_spreads) if draw(st.booleans()) else {}),
    )


_spreads = st.fixed_dictionaries(
    {"distribution": st.sampled_from(["diffused", "auto"])},
    optional={
        "servers": st.integers(1, 9),
        "master": st.sampled_from(["higher", "lower", "left", "right"]),
        "placement": st.sampled_from(["least_loaded", "round_robin"]),
        "sample": st.integers(1, 100),
        "threshold": st.sampled_from([0.25, 1.0]),
        "memory": st.integers(1, 1000),
    },
)


def _point(draw, stream, _streams):
    name = f"point_{len(stream.network.nodes)}"
    if draw(st.booleans()):
        return stream.view(name, keep=draw(durations), qos=draw(qualities))
    return stream.connection_point(
        name, keep=draw(durations), key=draw(st.sampled_from([None, *stream.schema.names]))
    )


def _function(name):
    return getattr(__import__("model.sample_functions", fromlist=[name]), name)


_BOXES = [_filter, _map, _select, _drop, _union, _group_by, _tumble, _slide, _latch, _resample, _join, _point]
