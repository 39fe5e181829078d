"""What Spark's own optimizer does not do: for each rule a case with boxes that it cannot see into.

Boxes in a stage run in Python, which is opaque to Catalyst. `test_spark_plans.py` compares its plans.
"""

from __future__ import annotations

import pytest

from penstock.engine.spark.entry.points import pushed_ranges
from penstock.engine.spark.layout.plan import lay_out
from penstock.model.writing.network import Network
from penstock.rewrite.optimize import RULES
from penstock.rewrite.subnetworks import split
from penstock.testing import collect, examples, rows_source

RULE = {rule.name: rule for rule in RULES}


def network(build, *names):
    net = Network("n")
    schema = "time TIMESTAMP, k INT, v INT, w DOUBLE, s STRING"
    build(*(net.source(name, rows_source(schema), timestamp="time") for name in names or ("cars",)))
    return net


def minutes(stream):
    return stream.group_by("k", name="by_k").tumble("1 minute", n="max(v)", m="min(v)", name="minutes")


def written_twice(stream):
    for name in ("one", "two"):
        window = stream.group_by("k", name=f"by_k_{name}").tumble("1 minute", n="max(v)", name=name)
        window.output(f"out_{name}", to=collect())


CASES = {
    # rule: the network, and the boxes that run in Python as written
    "share prefixes": (written_twice, {"one", "two"}),
    "push filters": (lambda s: minutes(s).filter("k = 1", name="some").output("out", to=collect()), {"some"}),
    "order boxes": (
        lambda s: (
            s.filter(examples.no_nulls, reads="v", rowwise=True, name="odd")
            .filter("k = 1", name="some")
            .output("out", to=collect())
        ),
        {"odd", "some"},
    ),
    "merge filters": (
        lambda s: minutes(s).filter("n > 1", name="a").filter("m < 9", name="b").output("out", to=collect()),
        {"a", "b"},
    ),
    "fuse map into filter": (
        lambda s: (
            minutes(s)
            .map(x="coalesce(n, m)", name="a")
            .filter("x IS NOT NULL", name="b")
            .select("k", "n", name="c")
            .output("out", to=collect())
        ),
        {"a", "b"},
    ),
    "merge maps": (
        lambda s: minutes(s).map(x="n", name="a").map(y="m", name="b").output("out", to=collect()),
        {"a", "b"},
    ),
    "prune columns": (lambda s: minutes(s).output("out", to=collect()), {"minutes"}),
}


def in_python(net):
    return {name for sub in split(net) for name in lay_out(sub).home}


def entering(net):
    """Columns that go into Python, over all arrows."""
    return sum(
        len(sub.network.types[entry.tail].schema.names)
        for sub in split(net)
        for stage in lay_out(sub).stages
        for entry in stage.entries
    )


@pytest.mark.parametrize("rule", CASES)
def test_catalyst_cannot_see_the_boxes_that_the_rule_changes(rule):
    build, boxes = CASES[rule]
    net = network(build)
    assert boxes <= in_python(net)
    changed = RULE[rule](net)
    assert changed is not net
    assert (len(in_python(changed)), entering(changed)) < (len(in_python(net)), entering(net))


def test_a_look_up_drops_rows_before_they_enter_the_join():
    """The join runs in Python, so Spark cannot know that both sides have the same keys.

    The engine skips files without such keys by itself; the filter also drops the other rows of a file.
    """

    def build(left, right):
        point = right.connection_point("kept", key="k")
        left.filter("k = 1", name="asked").join(point, on="k", within="1 minute", name="pairs").output(
            "out", to=collect()
        )

    net = network(build, "cars", "others")
    (reader,) = [sub for sub in split(net) if "kept" in sub.inputs]
    assert reader.network.nodes["pairs"].inputs[1] == "kept"
    (reader,) = [sub for sub in split(RULE["look up"](net)) if "kept" in sub.inputs]
    (keys,) = [name for name in reader.network.nodes if name not in net.nodes]
    assert reader.network.nodes["pairs"].inputs[1] == keys
    assert keys in lay_out(reader).native
    assert pushed_ranges(reader.network, "kept", "k") is not None


def test_every_rule_has_a_case():
    assert {*CASES, "look up"} == RULE.keys()
