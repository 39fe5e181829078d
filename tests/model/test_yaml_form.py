"""YAML and Python say the same: networks go there and back without loss, texts too."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import penstock as ps
from model.random_networks import networks
from penstock.rewrite.check import problems

TEXT = """\
network: traffic
groups:
  tolls: {description: what a car pays}
boxes:
  cars:
    source:
      csv: in/
      schema: time TIMESTAMP, vid INT, spd INT, seg INT
      options: {header: 'true'}
    timestamp: time
    lateness: 10 seconds
    idle: never
  slow:
    filter: spd < 40
    from: cars
    description: 'slow: below 40'
  group_by_1:
    group_by: seg
    from: slow
    group: tolls
  minutes:
    tumble: 1 minute
    from: group_by_1
    aggregates:
      speed: avg(spd)
      cars: count(distinct vid)
    group: tolls
  kept:
    connection_point: 2 hours
    from: minutes
    key: seg
  pairs:
    join: [slow, kept]
    on: [seg]
    within: [1 minute, 0 seconds]
    where: spd < speed
  jams:
    output: {parquet: out/jams}
    from: pairs
    qos:
      delay: [[0.0, 1.0], [5.0, 1.0], [30.0, 0.0]]
"""


def test_text_is_the_same_network_as_python():
    net = ps.Network("traffic")
    cars = net.source(
        "cars",
        ps.csv("in/", "time TIMESTAMP, vid INT, spd INT, seg INT", header=True),
        timestamp="time",
        lateness=10,
        idle=None,
    )
    slow = cars.filter("spd < 40", name="slow").about(description="slow: below 40")
    with net.group("tolls", description="what a car pays"):
        minutes = (
            slow.group_by("seg")
            .tumble("1 minute", speed="avg(spd)", cars="count(distinct vid)")
            .named("minutes")
        )
    kept = minutes.connection_point("kept", key="seg")
    pairs = slow.join(kept, on="seg", within=("1 minute", 0), where="spd < speed", name="pairs")
    net.output("jams", pairs, to=ps.parquet("out/jams"), qos=ps.QoS(delay=[(0, 1), (5, 1), (30, 0)]))
    assert ps.from_yaml(TEXT) == net
    assert ps.to_yaml(net) == TEXT


def test_order_of_boxes_is_free():
    head, tail = TEXT.split("  slow:\n")
    slow, rest = tail.split("  group_by_1:\n")
    assert ps.from_yaml(head + "  group_by_1:\n" + rest + "  slow:\n" + slow) == ps.from_yaml(TEXT)


def goes_there_and_back(network: ps.Network) -> None:
    text = ps.to_yaml(network)
    again = ps.from_yaml(text)
    assert again == network
    assert ps.to_yaml(again) == text
    assert list(again.nodes) == list(network.nodes)
    assert dict(again.types) == dict(network.types)


@given(networks())
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_random_networks_go_there_and_back(network):
    goes_there_and_back(network)


@pytest.mark.slow
@given(networks(boxes=15))
@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_many_random_networks_go_there_and_back(network):
    goes_there_and_back(network)


@pytest.mark.parametrize(
    "text",
    [
        "a\x85b",
        "\u2028",
        "a\r\nb",
        "\n x",
        "x\n",
        "'",
        "null",
        "on",
        "~",
        "1e3",
        "# no",
        "a: b",
        " a ",
        "\ufeff",
        "😀",
    ],
)
def test_any_text_survives(text):
    net = ps.Network("n")
    net.source("ticks", ps.rate(5)).about(tag=text, description=text, manual=text)
    goes_there_and_back(net)


# anything that a person may call a column: blanks, dots, commas, quotes, digits first, words of SQL and YAML
column_names = st.one_of(
    st.sampled_from(
        ["my col", "a.b", "a,b", "1st", "on", "null", "a: b", "# x", "it's", '"', "{x}", "ä", " a "]
    ),
    st.text(
        st.characters(exclude_categories=["C", "Zl", "Zp"], exclude_characters="`"), min_size=1, max_size=8
    ),
).filter(lambda name: name.strip() and not name.startswith("_") and name.lower() not in ("time", "n", "m"))
box_names = st.from_regex(r"[\w][\w .:\-]{0,6}", fullmatch=True)
group_names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6).filter(
    lambda name: name.strip() and "/" not in name
)


@given(column_names, box_names, st.lists(group_names, min_size=1, max_size=3), st.integers(0, 10**18))
@settings(max_examples=200, deadline=None)
def test_odd_names_go_there_and_back(column, box, groups, lateness):
    net = ps.Network(box)
    schema = ps.Schema.of([("time", "TIMESTAMP"), (column, "INT")])
    assert ps.Schema.parse(schema.ddl()) == schema
    cars = net.source("s", ps.csv("in/", schema), timestamp="time", lateness=f"{lateness} microseconds")
    with ExitStack() as stack:
        for group in groups:
            stack.enter_context(net.group(group))
    odd = cars.filter(f"`{column}` > 1", name="f").select("time", column)
    assert odd.type.timestamp == "time"
    minutes = odd.group_by(column).tumble("1 minute", {"n": f"sum(`{column}`)", "m": "count(*)"})
    minutes.connection_point("kept", key=column)
    goes_there_and_back(net)


def test_groups_without_boxes_stay():
    net = ps.Network("n")
    with net.group("outer"), net.group("inner"):
        pass
    with net.group("used"):
        net.source("ticks", ps.rate(5))
    goes_there_and_back(net)
    assert "used: {}" not in ps.to_yaml(net)


@given(networks())
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_random_networks_pass_the_checks_of_each_box(network):
    assert [
        str(p) for p in problems(network) if "has no end" not in p.problem and "writes into" not in p.problem
    ] == []


def test_a_file_is_named_in_errors(tmp_path: Path):
    file = tmp_path / "net.yaml"
    file.write_text(TEXT.replace("spd < 40", "sped < 40"))
    with pytest.raises(ps.NetworkError) as caught:
        ps.from_yaml(file)
    assert str(caught.value).startswith(
        f"{file}:13: box 'slow': predicate 'sped < 40': unknown column 'sped'"
    )
    with pytest.raises(ps.NetworkError, match="unknown column"):
        ps.from_yaml(str(file))


def test_a_difference_is_seen():
    for old, new in (
        ("spd < 40", "spd < 41"),
        ("2 hours", "3 hours"),
        ("5.0", "6.0"),
        ("what a car", "how a car"),
        ("out/jams", "out/j"),
    ):
        assert ps.from_yaml(TEXT.replace(old, new)) != ps.from_yaml(TEXT)


def test_short_forms():
    net = ps.from_yaml(
        "network: n\nboxes:\n"
        "  t: {source: rate}\n  f: {filter: true, from: t}\n  o: {output: console, from: f}\n"
    )
    assert net.nodes["o"].to == ps.console()  # type: ignore[attr-defined]
    assert net.nodes["f"].predicate == "true"  # type: ignore[attr-defined]
