"""Which boxes are native, which share a stage, and what a stage must check."""

from __future__ import annotations

import pytest

from penstock.engine.spark.layout.plan import guarded, lay_out
from penstock.model.writing.combining import union
from penstock.model.writing.network import Network
from penstock.model.writing.windows import latch
from penstock.rewrite.subnetworks import split
from penstock.testing import collect, examples, rows_source

SCHEMA = "time TIMESTAMP, k STRING, j STRING, v INT"


def laid_out(build, *, sources=("cars",), fuse=True):
    """(native boxes, [(keys, boxes) of each stage]) of a network of one sub-network."""
    net = Network("one")
    streams = [net.source(name, rows_source(SCHEMA), timestamp="time") for name in sources]
    made = build(*streams)
    for number, stream in enumerate(made if isinstance(made, tuple) else (made,)):
        stream.output(f"out{number}", to=collect())
    (sub,) = split(net)
    layout = lay_out(sub, fuse=fuse)
    shown = [(stage.keys, tuple(stage.nodes)) for stage in layout.stages]
    return tuple(n for n in layout.native if net.nodes[n].kind != "group_by"), shown, sub.network, layout


def count(stream, name, *keys):
    return stream.group_by(*keys, name=f"by_{name}").latch(
        function=examples.running_count,
        state="seen BIGINT",
        produces="time TIMESTAMP, k STRING, j STRING, v INT, seen BIGINT",
        name=name,
    )


def test_stateless_boxes_are_native():
    native, stages, _, _ = laid_out(
        lambda s: union(
            s.filter("v > 1", name="f").map(name="m", w="v + 1").drop(0.5, name="d"),
            s.map(name="n", w="v"),
            name="u",
        )
    )
    assert (native, stages) == (("f", "m", "d", "n", "u"), [])


def test_a_users_function_needs_python_but_no_keys():
    native, stages, _, layout = laid_out(
        lambda s: s.filter(examples.no_nulls, name="f").filter("v > 1", name="g")
    )
    assert (native, stages) == ((), [(None, ("f", "g"))])
    assert not layout.stages[0].stateful


def test_boxes_in_front_stay_native_those_behind_join_the_stage():
    native, stages, _, _ = laid_out(
        lambda s: (
            s.filter("v > 1", name="f")
            .group_by("k")
            .tumble("1 minute", n="count(*)", name="t")
            .filter("n > 1", name="g")
        )
    )
    assert (native, stages) == (("f",), [(("k",), ("t", "g"))])


def test_the_same_keys_fuse():
    def build(s):
        one = count(s, "one", "k")
        return one.group_by("k", name="again").tumble("1 minute", n="max(seen)", name="t"), count(
            one.select("time", "k", "j", "v"), "two", "k"
        )

    _, stages, _, _ = laid_out(build)
    assert [keys for keys, _ in stages] == [("k",)]
    assert {"one", "t", "two"} <= set(stages[0][1])


def test_more_keys_fuse_behind_fewer_not_the_other_way_round():
    _, stages, _, _ = laid_out(
        lambda s: count(count(s, "few", "k").select("time", "k", "j", "v"), "more", "k", "j")
    )
    assert [keys for keys, _ in stages] == [("k",)]
    _, stages, _, _ = laid_out(
        lambda s: count(count(s, "more", "k", "j").select("time", "k", "j", "v"), "few", "k")
    )
    assert [keys for keys, _ in stages] == [("k", "j"), ("k",)]


def test_other_keys_need_a_stage_of_their_own():
    _, stages, _, _ = laid_out(
        lambda s: count(count(s, "one", "k").select("time", "k", "j", "v"), "two", "j")
    )
    assert [keys for keys, _ in stages] == [("k",), ("j",)]


def test_a_key_that_a_map_changes_does_not_fuse():
    def build(s):
        one = count(s, "one", "k")
        return count(one.select("time", "j", "v", k="upper(k)"), "two", "k")

    _, stages, _, _ = laid_out(build)
    assert [keys for keys, _ in stages] == [("k",), ("k",)]


def test_without_keys_all_in_one_partition():
    _, stages, _, _ = laid_out(
        lambda s: s.tumble("1 minute", n="count(*)", name="t").tumble("2 minutes", m="sum(n)", name="u")
    )
    assert stages == [((), ("t", "u"))]


def test_whole_stream_behind_keys_is_a_stage_of_its_own():
    def build(s):
        minutes = s.group_by("k").tumble("1 minute", n="count(*)", name="t")
        return union(minutes.filter("n > 1"), minutes.filter("n <= 1"), name="all").tumble(
            "2 minutes", m="sum(n)", name="u"
        )

    _, stages, _, _ = laid_out(build)
    assert [keys for keys, _ in stages] == [("k",), ()]


def test_unfused_gives_each_vectorised_box_a_stage():
    def build(s):
        return count(count(s, "one", "k").select("time", "k", "j", "v"), "two", "k")

    _, fused, _, _ = laid_out(build)
    _, unfused, _, _ = laid_out(build, fuse=False)
    assert len(fused) == 1
    assert len(unfused) == 2


def test_a_join_fuses_only_by_the_very_keys():
    def joined(on):
        return lambda a, b: (
            count(a, "one", "k").select("time", "k", "j", "v").join(b, on=on, within="1 minute", name="pairs")
        )

    _, stages, _, _ = laid_out(joined(["k"]), sources=("a", "b"))
    assert [keys for keys, _ in stages] == [("k",)]
    _, stages, _, _ = laid_out(joined(["j"]), sources=("a", "b"))
    assert [keys for keys, _ in stages] == [("k",), ("j",)]


def test_a_latch_of_two_inputs_enters_by_both():
    def build(a, b):
        both = latch(
            [a.group_by("k", name="ga"), b.group_by("k", name="gb")],
            function=examples.running_count,
            state="seen BIGINT",
            produces="k STRING",
            name="both",
        )
        return both.filter("k > ''", name="f")

    _, stages, _, layout = laid_out(build, sources=("a", "b"))
    assert stages == [(("k",), ("both", "f"))]
    assert [(e.tail, e.head, e.index, e.keys) for e in layout.stages[0].entries] == [
        ("ga", "both", 0, ("k",)),
        ("gb", "both", 1, ("k",)),
    ]


def test_a_function_with_boxes_fused_behind_it_is_guarded():
    def build(s):
        one = count(s, "one", "k")
        return one.group_by("k", name="again").tumble("1 minute", n="max(seen)", name="t")

    _, _, net, layout = laid_out(build)
    assert guarded(net, layout.stages[0]) == {"one": ("k",)}
    _, _, net, layout = laid_out(lambda s: count(s, "one", "k"))
    assert guarded(net, layout.stages[0]) == {}


@pytest.mark.parametrize("fuse", [True, False])
def test_every_box_has_one_place(fuse):
    def build(a, b):
        windows = a.filter("v > 0", name="f").group_by("k").tumble("1 minute", n="count(*)", name="t")
        pairs = windows.join(b, on=["k"], within="1 minute", name="pairs")
        return (
            pairs,
            union(a, b, name="u").group_by("j").slide("1 minute", every="30 seconds", n="count(*)", name="s"),
            b.group_by("k").resample("1 second", columns="v", name="r"),
        )

    _, stages, net, layout = laid_out(build, sources=("a", "b"), fuse=fuse)
    placed = [*layout.native, *(n for _, nodes in stages for n in nodes)]
    assert sorted(placed) == sorted(n.name for n in net.nodes.values() if n.kind not in ("source", "output"))
