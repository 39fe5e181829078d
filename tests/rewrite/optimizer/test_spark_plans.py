"""What Catalyst makes of both forms: for each rule a network of which Spark alone finds no better one.

The plans are those in front of each Python stage. The guide shows some of them, and must show these.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.writing.network import Network
from penstock.rewrite.optimize import RULES, optimize
from penstock.testing import collect, examples, rows_source

from .spark_plans import in_words, spark_plans

pytestmark = pytest.mark.slow  # not for its time: `make test` has none left
RULE = {rule.name: rule for rule in RULES}
GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "optimizer.md"
SCHEMA = "time TIMESTAMP, k INT, v INT, w DOUBLE, s STRING"


def network(build):
    net = Network("n")
    build(net.source("cars", rows_source(SCHEMA), timestamp="time"))
    return net


def end(stream):
    stream.output("out", to=collect())


def means(stream):
    return stream.group_by("k", name="by_k").tumble("1 minute", m="avg(w)", n="max(v)", name="means")


def plans(net, spark):
    return {boxes: in_words(plan) for boxes, plan in spark_plans(net, spark).items()}


def both(rule, build, spark):
    """The plans as written, and after one rule."""
    net = network(build)
    changed = RULE[rule](net)
    assert changed is not net
    return plans(net, spark), plans(changed, spark)


def shown(written, rewritten):
    """As the guide shows two plans."""
    lines = ["as written:", *(f"  {line}" for line in written), "rewritten:"]
    return "\n".join([*lines, *(f"  {line}" for line in rewritten)])


def test_a_filter_behind_a_window_stays_there(spark):
    written, rewritten = both("push filters", lambda s: end(means(s).filter("k = 1", name="some")), spark)
    assert "Filter k = 1" not in written["means, some"]
    assert "Filter k = 1" in rewritten["means"]
    assert shown(written["means, some"], rewritten["means"]) in GUIDE.read_text()


def test_a_function_is_not_weighed_against_a_predicate(spark):
    def build(stream):
        odd = stream.filter(examples.no_nulls, reads="v", rowwise=True, name="odd")
        end(odd.filter("k = 1", name="some"))

    written, rewritten = both("order boxes", build, spark)
    assert "Filter k = 1" not in written["odd, some"]
    assert "Filter k = 1" in rewritten["odd"]


def test_predicates_stay_in_their_order(spark):
    """A native chain: Catalyst makes one filter of two, and evaluates them as they were written."""
    written, rewritten = both(
        "order boxes",
        lambda s: end(s.filter("s LIKE '%a%b%'", name="costly").filter("k = 1", name="cheap")),
        spark,
    )
    (first,), (then,) = (
        [line for line in each["out"] if line.startswith("Filter")] for each in (written, rewritten)
    )
    assert first.endswith("k = 1")
    assert then.startswith("Filter k = 1")
    assert shown([first], [then]) in GUIDE.read_text()


def test_a_stage_gets_all_columns(spark):
    written, rewritten = both("prune columns", lambda s: end(means(s)), spark)
    assert "Project time, k, v, w, s" in written["means"]
    assert "Project k, v, w" in rewritten["means"]
    assert shown(written["means"], rewritten["means"]) in GUIDE.read_text()


def test_windows_written_twice_run_twice(spark):
    def build(stream):
        for name in ("one", "two"):
            window = stream.group_by("k", name=f"by_k_{name}").tumble("1 minute", m="avg(w)", name=name)
            window.output(f"out_{name}", to=collect())

    written, rewritten = both("share prefixes", build, spark)
    assert written.keys() == {"one", "two"}
    assert written["one"] == written["two"] == rewritten["one"]
    assert rewritten.keys() == {"one"}


BEHIND_A_WINDOW = {
    "merge filters": (lambda s: s.filter("n > 1", name="a").filter("m < 9", name="b"), "means, a_and_b"),
    "merge maps": (lambda s: s.map(x="n", name="a").map(y="m", name="b"), "means, a_and_b"),
    "fuse map into filter": (
        lambda s: s.map(x="coalesce(n, 1)", name="a").filter("x > 2", name="b").select("k", "n", name="c"),
        "means, b, c",
    ),
}


@pytest.mark.parametrize("rule", BEHIND_A_WINDOW)
def test_boxes_behind_a_window_are_in_no_plan(rule, spark):
    """They are a part of the stage: a call for each of them, unless a rule makes one of two."""
    build, after = BEHIND_A_WINDOW[rule]
    written, rewritten = both(rule, lambda s: end(build(means(s))), spark)
    assert rewritten.keys() == {after}
    assert len(after.split(", ")) < len(next(iter(written)).split(", "))
    assert [*written.values()] == [*rewritten.values()]


def test_native_chains_are_left_to_catalyst(spark):
    """Merged or not, Spark makes one plan of them: nothing is won there, and nothing done twice."""

    def build(stream):
        some = stream.filter("k = 1", name="a").filter("v > 3", name="b")
        end(some.map(x="w * 2", name="c").map(y="x", name="d").select("k", "y", name="e"))

    net = network(build)
    merged = optimize(net, rules=[RULE["merge filters"], RULE["merge maps"]]).network
    assert sum(node.is_box for node in merged.nodes.values()) == 2
    assert plans(net, spark) == plans(merged, spark)
