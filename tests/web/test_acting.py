"""What the console changes: edits as steps and text, query texts, QoS graphs, holds. No Spark is needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import yaml

import penstock as ps
from penstock.engine.contract.steering import Steering
from penstock.model.errors import PenstockError
from penstock.store.catalog.catalog import Catalog
from penstock.web.act.bookmarks import Bookmarks
from penstock.web.act.difference import differences
from penstock.web.act.edits import with_lists_of
from penstock.web.act.holds import Holds
from penstock.web.act.monitors import PageMonitors, point_tuples
from penstock.web.act.named import must_name_nothing_new
from penstock.web.act.qos_graphs import judged, qos_of
from penstock.web.act.query_text import placed
from penstock.web.act.questions import checked
from penstock.web.act.steps import edited
from penstock.web.errors import LookingOnlyError, RefusedChangeError, UnknownNameError
from penstock.web.look.network_json import qos_json
from web.recorded import network, record

TEXT = ps.to_yaml(network())


# -- steps


def after(*steps: dict[str, Any]) -> ps.Network:
    return ps.from_yaml(edited(TEXT, steps))


def test_a_box_is_put_onto_an_arrow():
    new = after({"do": "insert", "arrow": "recent:chosen:0", "name": "near", "box": {"filter": "vid < 9"}})
    assert new.nodes["chosen"].inputs == ("near",)
    assert new.nodes["near"].inputs == ("recent",)
    assert differences(network(), new) == [
        "filter 'near' (vid < 9) is new",
        "filter 'chosen' reads 'near' instead of 'recent'",
    ]


def test_a_connection_point_is_put_onto_an_arrow():
    step = {"do": "insert", "arrow": "chosen:slow:0", "name": "kept", "box": {"connection_point": "1 hour"}}
    assert "kept" in after(step).points


def test_boxes_are_changed_and_taken_out():
    new = after({"do": "change", "name": "chosen", "box": {"filter": "spd < 20"}})
    assert differences(network(), new) == ["filter 'chosen': spd < 40 becomes spd < 20"]
    new = after({"do": "remove", "name": "chosen"})
    assert new.nodes["slow"].inputs == ("recent",)


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ({"do": "paint"}, "no step 'paint'"),
        ({"do": "insert", "arrow": "a:b:0", "name": "f", "box": {"filter": "true"}}, "no arrow 'a:b:0'"),
        ({"do": "insert", "arrow": "recent:chosen:0", "name": "cars", "box": {"filter": "x"}}, "is there"),
        ({"do": "remove", "name": "nobody"}, "no box 'nobody'"),
        ({"do": "add", "name": "f"}, "a step without a box"),
    ],
)
def test_a_step_that_cannot_be_is_refused(step, error):
    with pytest.raises(PenstockError, match=error):
        edited(TEXT, [step])


def test_an_edit_fills_the_lists_that_somebody_holds():
    def written(condition: str) -> ps.Network:
        net = ps.Network("n")
        ticks = net.source("ticks", ps.rate(5)).filter(condition, name="even")
        net.output("seen", ticks, to=ps.memory())
        net.output("shown", ticks, to=ps.console())
        return net

    running, other = written("value % 2 = 0"), ps.from_yaml(ps.to_yaml(written("value % 4 = 0")))
    new = with_lists_of(running, other)
    assert new.nodes["seen"].to is running.nodes["seen"].to
    assert differences(running, new) == ["filter 'even': value % 2 = 0 becomes value % 4 = 0"]
    assert with_lists_of(written("true"), running).nodes["shown"] == running.nodes["shown"]


# -- what an edit may name


def refused(change: str, to: str) -> str:
    text = TEXT.replace(change, to)
    assert text != TEXT
    with pytest.raises(RefusedChangeError) as error:
        must_name_nothing_new(text, yaml.safe_load(TEXT))
    return str(error.value)


def test_an_edit_names_no_other_files_and_no_functions():
    assert "reads csv /etc" in refused("csv: in/", "csv: /etc")
    assert "writes parquet /tmp/x" in refused("parquet: out/slow", "parquet: /tmp/x")
    assert "names the function os:system" in refused("filter: spd < 40", "filter: {function: 'os:system'}")
    assert "os:system" in refused("filter: spd < 40", "apply: 'os:system'")
    must_name_nothing_new(TEXT.replace("out/slow", "out/slower"), yaml.safe_load(TEXT))
    must_name_nothing_new(TEXT.replace("spd < 40", "spd < 50"), yaml.safe_load(TEXT))


def test_an_edit_may_not_grow_when_it_is_read():
    bomb = "a: &a [x, x]\nb: &b [*a, *a]\nboxes: {c: {filter: *b}}\n"
    with pytest.raises(PenstockError, match="an alias"):
        must_name_nothing_new(bomb, yaml.safe_load(TEXT))
    with pytest.raises(PenstockError, match="an alias"):
        checked(network(), "recent", "a: &a {filter: 'true'}\nb: *a\n")


# -- query texts


def test_a_select_becomes_boxes():
    columns = checked(network(), "recent", "SELECT vid, spd * 2 AS twice FROM recent WHERE spd < 40")
    assert columns == [{"name": "vid", "type": "INT"}, {"name": "twice", "type": "INT"}]
    assert len(checked(network(), "recent", "select * from recent")) == 3


def test_boxes_in_yaml_go_on_from_the_point():
    text = "low: {filter: spd < 40}\nminutes:\n  tumble: 1 minute\n  aggregates: {n: count(*)}\n"
    assert checked(network(), "recent", text)[-1] == {"name": "n", "type": "BIGINT"}


@pytest.mark.parametrize(
    ("text", "error", "place"),
    [
        ("SELECT vid,\n spede FROM recent", "spede", {"line": 2, "column": 2}),
        ("SELECT vid FROM\nrecent WHERE WHERE", "does not parse", {"line": 2}),
        ("SELECT vid FROM elsewhere", "reads 'elsewhere'", {}),
        ("SELECT count(*) FROM recent", "does more than choose", {}),
        ("SELECT vid FROM recent ORDER BY vid", "does more than choose", {}),
        ("DROP TABLE recent", "mapping|boxes|name", {}),
        ("f: {filter: {function: 'os:system'}}", "names the function os:system", {}),
        ("out: {output: console}", "made of boxes", {}),
        ("", "empty", {}),
    ],
)
def test_a_query_that_cannot_be_is_refused_at_its_place(text, error, place):
    with pytest.raises(PenstockError, match=error) as refusal:
        checked(network(), "recent", text)
    found = placed(refusal.value, text)
    assert {key: found.get(key) for key in place} == place


# -- QoS


def test_another_qos_judges_the_last_seconds_otherwise(tmp_path):
    catalog = Catalog(record(tmp_path) / "catalog.db")
    then = qos_of({"delay": [[0, 1], [20, 1], [30, 0]]})
    told = judged(catalog, "slow", qos_of({"delay": [[0, 1], [5, 1], [30, 0]]}), then, 600)
    assert told["otherwise"] == 1
    assert (told["mean_now"], told["mean_then"]) == (pytest.approx(0.5), 1.0)
    assert judged(catalog, "slow", then, then, 600)["otherwise"] == 0


def test_a_qos_comes_back_from_the_page_as_it_went():
    graphs = {"loss": [(0, 0), (100, 1)], "value": [(0, 0), (9, 1)], "column": "spd", "weight": 2.5}
    rough = ps.QoS(delay=[(0, 1), (5, 1), (30, 0)], **graphs, approximate=True)
    assert qos_of(qos_json(rough)) == rough


@pytest.mark.parametrize("graph", [{}, {"delay": [[0, 0.5], [1, 1]]}, {"delay": "x"}, {"delays": []}])
def test_a_graph_that_cannot_be_is_refused(graph):
    with pytest.raises(RefusedChangeError):
        qos_of(graph)


# -- bookmarks, points


def test_bookmarks_stay_with_the_checkpoint(tmp_path):
    marks = Bookmarks(tmp_path)
    marks.put("jam", {"x": 1})
    assert Bookmarks(tmp_path).list() == [{"name": "jam", "view": {"x": 1}}]
    with pytest.raises(RefusedChangeError):
        marks.put("big", "x" * 5_000)
    marks.remove("jam")
    assert marks.list() == []
    with pytest.raises(UnknownNameError):
        marks.remove("jam")


def test_without_the_run_only_points_can_be_watched(tmp_path):
    with pytest.raises(LookingOnlyError, match="cannot be seen here"):
        point_tuples(tmp_path, network(), "cars:valid:0", "cars", "", 0)
    with pytest.raises(UnknownNameError, match="holds no tuples yet"):
        point_tuples(tmp_path, network(), "recent:chosen:0", "recent", "", 0)


# -- holds and monitors, on a runtime that does nothing


class StillRuntime:
    """As much of a runtime as holds and monitors use."""

    def __init__(self) -> None:
        self.network = network()
        sub = SimpleNamespace(network=self.network)
        self.steering = Steering(policy=None)  # type: ignore[arg-type]
        query = SimpleNamespace(steering=self.steering, sub=sub, last=0)
        self.queries = {"slow": query}
        self.listeners: list[Any] = []

    def on_train(self, listener: Any) -> None:
        self.listeners.append(listener)

    def hold(self, _: str) -> None:
        self.steering.held = True

    def release(self, _: str) -> None:
        self.steering.held = False

    def train(self, **samples: pa.Table) -> None:
        done = SimpleNamespace(subnetwork="slow", samples=samples, ticket=SimpleNamespace(train=1))
        for listener in self.listeners:
            listener(done)


def nobody(*_: Any) -> None:
    """No page listens."""


def test_a_hold_ends_when_nobody_prolongs_it():
    now, runtime = [100.0], StillRuntime()
    holds = Holds(runtime, nobody, clock=lambda: now[0])  # type: ignore[arg-type]
    holds.hold("slow", "ann", 60)
    assert [(hold["by"], hold["until"]) for hold in holds.held()] == [("ann", 160.0)]
    now[0] = 150.0
    holds.hold("slow", "ann", 60)
    now[0] = 170.0
    holds.expire()
    assert runtime.steering.held
    now[0] = 211.0
    holds.expire()
    assert not runtime.steering.held
    assert holds.held() == []
    with pytest.raises(UnknownNameError, match="no sub-network 'fast'"):
        holds.hold("fast", "ann", 60)
    with pytest.raises(RefusedChangeError, match="is not held"):
        holds.step("slow", None)


def test_what_the_run_holds_itself_is_said():
    runtime = StillRuntime()
    runtime.steering.held = True
    (held,) = Holds(runtime, nobody).held()  # type: ignore[arg-type]
    assert held["by"] == "the run"


def test_a_breakpoint_holds_after_the_train_in_which_it_was_hit():
    runtime = StillRuntime()
    holds = Holds(runtime, nobody)  # type: ignore[arg-type]
    made = holds.break_at("chosen:slow:0", "chosen", "slow", "spd < 5", "ann")
    (name,) = runtime.steering.monitors
    assert runtime.steering.monitors[name].condition == "spd < 5"
    runtime.train()
    assert not runtime.steering.held
    runtime.train(**{name: pa.table({"spd": [3], "_ts": [0], "_seq": [0]})})
    assert runtime.steering.held
    assert "spd < 5" in holds.held()[0]["why"]
    assert holds.breakpoints()[0]["hits"] == 1
    holds.remove(made.id)
    assert not runtime.steering.monitors
    with pytest.raises(PenstockError, match="spede"):
        holds.break_at("chosen:slow:0", "chosen", "slow", "spede < 5", "ann")


def test_a_monitor_is_open_while_somebody_looks():
    now, runtime = [0.0], StillRuntime()
    monitors = PageMonitors(runtime, nobody, clock=lambda: now[0])  # type: ignore[arg-type]
    assert not runtime.steering.monitors, "off by default"
    assert monitors.tuples("chosen:slow:0", "chosen", "slow", "", 0, 10)["rows"] == []
    (name,) = runtime.steering.monitors
    rows = pa.table({"spd": list(range(3)), "_ts": [0] * 3, "_seq": [0] * 3})
    runtime.train(**{name: rows})
    told = monitors.tuples("chosen:slow:0", "chosen", "slow", "", 1, 10)
    assert [row["tuple"]["spd"] for row in told["rows"]] == [1, 2]
    assert told["next"] == 3
    for _ in range(300):
        runtime.train(**{name: rows})
    assert len(monitors.tuples("chosen:slow:0", "chosen", "slow", "", 0, 500)["rows"]) == 500, "bounded"
    now[0] = 11.0
    monitors.expire()
    assert not runtime.steering.monitors, "nobody looks any more"
