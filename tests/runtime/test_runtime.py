"""Real streaming queries: start, stop, restart, attach, replace, steer. Few and small: each start takes
seconds.
"""

from __future__ import annotations

import sys
from collections import Counter
from types import SimpleNamespace

import pytest
from pyspark import cloudpickle
from typer.testing import CliRunner

import penstock as ps
from penstock.cli.main import penstock_app
from penstock.control.costs import costs_in
from penstock.engine.contract.policy import AsSoonAsPossible
from penstock.engine.contract.train_log import TrainLog
from penstock.model.errors import NetworkError, PenstockError
from penstock.runtime.fingerprint import fingerprint
from penstock.store.catalog.catalog import Catalog
from penstock.store.dead_letters import DeadLetters
from penstock.store.points.point import PointReader
from penstock.testing import assert_same_rows, examples
from runtime.streams import local, minutes, parquet_rows, put, rows_of, source, until

# a test module is not there for the tasks: its functions go along as they are
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def tickets(checkpoint, sub):
    log = TrainLog(checkpoint / "queries" / sub)
    return [log.ticket(n) for n in range(log.last() + 1)]


def test_restart_gives_the_rows_of_one_run(spark, tmp_path):
    def build():
        return minutes(ps.Network("restarted"), tmp_path, ps.parquet(str(tmp_path / "out")))

    data = [rows_of(0, 40), rows_of(40, 30), rows_of(70, 35)]
    data[1][3] = (40, 7, "many")  # a malformed row in the middle
    for number, part in enumerate(data[:2]):
        put(tmp_path / "cars", str(number), part)
        # short trains, and another length after the restart
        with ps.Runtime(
            build(), spark, tmp_path / "checkpoint", policy=AsSoonAsPossible(17 + number * 6)
        ) as running:
            assert running.wait_idle(timeout=120)
    assert len(parquet_rows(tmp_path / "out")) > 0  # windows that are over are out, the last is still open
    put(tmp_path / "cars", "2", data[2])
    with ps.Runtime(build(), spark, tmp_path / "checkpoint", once=True, close=True) as running:
        assert running.wait(timeout=120)
        status = running.status()
    rows = [row for part in data for row in part]
    expected = local(build(), cars=rows)
    assert_same_rows(parquet_rows(tmp_path / "out"), expected.outputs["out"])
    kept = PointReader(tmp_path / "checkpoint", "kept").read().select(["k", "time", "n", "total"]).to_pylist()
    assert_same_rows(kept, expected.points["kept"])
    (letter,) = DeadLetters(tmp_path / "checkpoint").read().to_pylist()
    assert (letter["raw"], letter["source"], letter["box"]) == ("40,7,many", "cars", "cars")
    assert letter["reason"] == "malformed: column 'v': 'many' is no INT"
    assert status.dead == 1
    # counts go on over restarts
    assert status.boxes["cars"].rows_in == len(rows)
    assert status.boxes["windows"].rows_out == len(expected.points["kept"])


def test_attach_and_detach_history_then_live(spark, tmp_path):
    net = minutes(ps.Network("attached"), tmp_path, ps.memory())
    put(tmp_path / "cars", "0", rows_of(0, 50))
    with ps.Runtime(net, spark, tmp_path / "checkpoint", policy=AsSoonAsPossible(20)) as running:
        assert running.wait_idle(timeout=120)
        other = next(iter(running.queries.values()))
        first, second = ps.memory(), ps.memory()
        running.attach("first", "kept", lambda s: s.filter("k < 3", name="asked"), to=first)
        until(running, lambda: first.rows)
        assert running.wait_idle(timeout=60)
        history = len(first.rows)
        put(tmp_path / "cars", "1", rows_of(50, 50))
        running.attach("second", "kept", lambda s: s.filter("k >= 3", name="asked"), to=second)
        assert running.wait_idle(timeout=60)
        assert len(first.rows) > history
        running.detach("first")
        put(tmp_path / "cars", "2", rows_of(100, 50))
        until(running, lambda: running.status().boxes["cars"].rows_in == 150)
        assert running.wait_idle(timeout=60)
        kept = (
            PointReader(tmp_path / "checkpoint", "kept")
            .read()
            .select(["k", "time", "n", "total"])
            .to_pylist()
        )
        assert_same_rows(second.rows, [r for r in kept if r["k"] >= 3])
        # the first has what was there until it left, nothing twice
        assert not Counter(map(str, first.rows)) - Counter(str(r) for r in kept if r["k"] < 3)
        assert len(first.rows) < sum(r["k"] < 3 for r in kept)
        # it may come back and then has it all
        again = ps.memory()
        running.attach("first", "kept", lambda s: s.filter("k < 3", name="asked"), to=again)
        assert running.wait_idle(timeout=60)
        assert_same_rows(again.rows, [r for r in kept if r["k"] < 3])
        # each has its own figures, and a query of a name used before begins anew
        boxes, figures = running.status().boxes, running.records.catalog.counts()
        assert "asked" not in boxes
        assert boxes["second_asked"].rows_out == len(second.rows)
        assert boxes["first_asked"].rows_out == figures["first_asked"].rows_out == len(again.rows)
        assert other.query.isActive
        with pytest.raises(NetworkError, match="the name 'first' is taken"):
            running.attach("first", "kept", lambda s: s, to=ps.memory())
        with pytest.raises(PenstockError, match=r"'frist' is running\n  hint:     did you mean 'first'"):
            running.detach("frist")
        assert [e.kind for e in running.records.catalog.events(subject="first")].count("attach") == 2


def test_replace_a_subnetwork_while_the_other_goes_on(spark, tmp_path):
    sink = ps.memory()
    before = minutes(ps.Network("changing"), tmp_path, sink)
    after = minutes(ps.Network("changing"), tmp_path, sink, predicate="v > 200")
    put(tmp_path / "cars", "0", rows_of(0, 60))
    with ps.Runtime(before, spark, tmp_path / "checkpoint", policy=AsSoonAsPossible(30)) as running:
        assert running.wait_idle(timeout=120)
        early = len(sink.rows)
        upper = next(q for q in running.queries.values() if "cars" in q.sub.inputs)
        put(tmp_path / "cars", "1", rows_of(60, 60))
        blips = running.replace(after)
        (changed,) = blips
        assert 0 < blips[changed] < 60
        assert changed != upper.sub.name
        assert upper is running.queries[upper.sub.name]  # not touched
        assert upper.query.isActive
        put(tmp_path / "cars", "2", rows_of(120, 60))
        until(running, lambda: running.status().boxes["cars"].rows_in == 180)
        assert running.wait_idle(timeout=60)
        events = running.records.catalog.events("replace")
        assert [(e.subject, e.detail["blip"] > 0) for e in events] == [(changed, True)]
        kept = (
            PointReader(tmp_path / "checkpoint", "kept")
            .read()
            .select(["k", "time", "n", "total"])
            .to_pylist()
        )
    assert_same_rows([r for r in sink.rows if r["total"] > 200], [r for r in kept if r["total"] > 200])
    # by the old condition until the change, by the new one since
    assert early <= len(sink.rows) < len(kept)


def counted(net, folder, to, function=examples.running_count, predicate="seen > 0"):
    cars = source(net, folder).group_by("k")
    latched = cars.latch(
        function=function, state="seen BIGINT", produces="k INT, v INT, seen BIGINT", name="count"
    )
    latched.filter(predicate, name="chosen").output("out", to=to)
    return net


def counting_anew(batch, state):
    """The same count, but another function than before."""
    out, changed = examples.running_count(batch, state)
    return out.slice(0), changed


GOLDEN = """\
{file}:{line}: box 'count': its state in checkpoint {checkpoint} was made by another configuration: \
function changed
  found:    function = runtime.test_runtime:counting_anew #{now}
  expected: function = penstock.testing.examples:running_count #{before}
  hint:     put it back; or start with a new checkpoint; \
or, while running, Runtime.replace(network, fresh_state=True)"""


def test_a_changed_stateful_box(spark, tmp_path):
    sink = ps.memory()
    net = counted(ps.Network("counting"), tmp_path, sink)
    other = counted(ps.Network("counting"), tmp_path, sink, counting_anew)
    put(tmp_path / "cars", "0", [(1, 1, 0), (2, 1, 0), (3, 2, 0)])
    with ps.Runtime(net, spark, tmp_path / "checkpoint") as running:
        assert running.wait_idle(timeout=120)
        assert sorted((r["k"], r["seen"]) for r in sink.rows) == [(1, 1), (1, 2), (2, 1)]
        with pytest.raises(NetworkError) as caught:
            running.replace(other)
        said = str(caught.value)
        assert said.splitlines()[0].endswith("was made by another configuration: function changed")
        assert said == GOLDEN.format(
            file=__file__,
            line=counted.__code__.co_firstlineno + 2,
            checkpoint=tmp_path / "checkpoint",
            now=fingerprint(counting_anew),
            before=fingerprint(examples.running_count),
        )
        # refused, and nothing has changed: it goes on counting
        put(tmp_path / "cars", "1", [(4, 1, 0)])
        until(running, lambda: len(sink.rows) == 4)
        assert (sink.rows[-1]["k"], sink.rows[-1]["seen"]) == (1, 3)
        # another filter behind the latch, in the same stage: the state stays, the filter is the new one
        running.replace(counted(ps.Network("counting"), tmp_path, sink, predicate="seen > 4"))
        put(tmp_path / "cars", "2", [(5, 1, 0), (6, 1, 0)])
        until(running, lambda: len(sink.rows) == 5)
        assert (sink.rows[-1]["k"], sink.rows[-1]["seen"]) == (1, 5)
        # with fresh state the changed function counts from the start, from where the input stands
        running.replace(other, fresh_state=True)
        put(tmp_path / "cars", "3", [(7, 1, 0), (8, 2, 0)])
        until(running, lambda: len(sink.rows) == 7)
        assert sorted((r["k"], r["seen"]) for r in sink.rows[5:]) == [(1, 1), (2, 1)]
    with pytest.raises(NetworkError, match="was made by another configuration: function changed"):
        ps.Runtime(net, spark, tmp_path / "checkpoint").start()
    with pytest.raises(PenstockError, match="belongs to network 'counting', not to 'another'"):
        ps.Runtime(counted(ps.Network("another"), tmp_path, sink), spark, tmp_path / "checkpoint").start()


def test_too_many_dead_letters(spark, tmp_path):
    net = minutes(ps.Network("dirty"), tmp_path, ps.memory())
    put(tmp_path / "cars", "0", [(1, 1, 1), (2, 1, "x"), (3, 1, "y"), (4, "z", 1), (None, 1, 1)])
    failing = ps.Runtime(net, spark, tmp_path / "checkpoint", once=True, close=True, dead_letter_limit=3)
    with failing, pytest.raises(PenstockError) as caught:
        failing.wait(timeout=120)
    said = str(caught.value)
    assert said.startswith("4 tuples went to the dead letters, the limit is 3; most often: ")
    assert said.endswith(f"look at them with: penstock dead-letters {tmp_path / 'checkpoint'}")
    with ps.Runtime(
        net, spark, tmp_path / "checkpoint", once=True, close=True, dead_letter_limit=4
    ) as running:
        assert running.wait(timeout=120)


def test_steering_takes_effect_from_one_train_to_the_next(spark, tmp_path):
    sink = ps.memory()
    net = ps.Network("steered")
    source(net, tmp_path).drop(0.0, seed=3, name="shed").output("out", to=sink)
    put(tmp_path / "cars", "0", rows_of(0, 20))
    with ps.Runtime(net, spark, tmp_path / "checkpoint", policy=AsSoonAsPossible(10)) as running:
        (name,) = running.queries
        query = running.queries[name].query
        until(running, lambda: len(sink.rows) == 20, 120)
        running.set_drop_rate("shed", 1.0)
        running.set_train(length=5)
        put(tmp_path / "cars", "1", rows_of(20, 20))
        until(running, lambda: running.status().boxes["cars"].rows_in == 40)
        assert len(sink.rows) == 20
        running.set_drop_rate("shed", 0.5)
        running.set_train(length=1000, interval=0.01, max_bytes=12345)
        put(tmp_path / "cars", "2", rows_of(40, 200))
        until(running, lambda: running.status().boxes["cars"].rows_in == 240)
        assert running.wait_idle(timeout=60)
        assert running.queries[name].query is query  # no restart
        with pytest.raises(PenstockError, match=r"no drop box 'shedd'\n  hint:     did you mean 'shed'"):
            running.set_drop_rate("shedd", 0.5)
        with pytest.raises(PenstockError, match=r"a drop rate of 1.5 is out of range\n  expected: 0 to 1"):
            running.set_drop_rate("shed", 1.5)
        events = running.records.catalog.events("drop_rate", "shed")
        assert sorted(e.detail["rate"] for e in events) == [0.5, 1.0]
    shown = [
        (t.rows, t.drop_rates.get("shed", 0.0)) for t in tickets(tmp_path / "checkpoint", name) if t.rows
    ]
    assert shown == [(10, 0.0)] * 2 + [(5, 1.0)] * 4 + [(200, 0.5)]
    expected = local(net, cars=rows_of(0, 20)).outputs["out"]
    assert_same_rows(sink.rows[:20], expected)
    assert 60 < len(sink.rows) - 20 < 140
    # rates hold on after a restart
    put(tmp_path / "cars", "3", rows_of(240, 10))
    with ps.Runtime(net, spark, tmp_path / "checkpoint", once=True, close=True) as running:
        assert running.wait(timeout=120)
    assert tickets(tmp_path / "checkpoint", name)[-1].drop_rates == {"shed": 0.5}


def test_status_and_catalog(spark, tmp_path):
    net = minutes(ps.Network("watched"), tmp_path, ps.memory())
    rows = rows_of(0, 100)
    put(tmp_path / "cars", "0", rows)
    with ps.Runtime(
        net, spark, tmp_path / "checkpoint", once=True, close=True, policy=AsSoonAsPossible(40)
    ) as running:
        assert running.wait(timeout=120)
        status = running.status()
    expected = local(net, cars=rows)
    windows = len(expected.points["kept"])
    upper = next(s for s in status.subnetworks if s.rows == 100)
    assert upper.trains >= 3
    assert upper.train > 0
    counts = {name: (c.rows_in, c.rows_out) for name, c in status.boxes.items()}
    assert counts["cars"] == (100, 100)
    assert counts["windows"][1] == windows
    assert status.boxes["chosen"].rows_in == windows
    assert status.boxes["chosen"].selectivity == 1.0
    assert status.latency["out"].samples > 0
    assert 0 < status.latency["out"].p50 <= status.latency["out"].max < 120
    catalog = Catalog(tmp_path / "checkpoint" / "catalog.db")
    assert catalog.networks()[-1].name == "watched"
    assert {n.name for n in catalog.topology().nodes} >= {"cars", "valid", "windows", "kept", "chosen", "out"}
    assert catalog.latency("out").samples > 0
    assert {p.name for p in catalog.locations()} >= {s.name for s in status.subnetworks}
    assert catalog.totals()[upper.name].rows_in == 100
    assert catalog.selectivity("chosen") == 1.0
    # in short trains native boxes are counted like all others
    assert counts["valid"] == (100, sum(v < 90 for _, _, v in rows))
    assert not any(count.estimated for count in status.boxes.values())
    assert catalog.counts()["valid"] == status.boxes["valid"]
    assert catalog.counts()["chosen"].rows_out == windows  # what is written is counted in every train
    assert (status.flows["cars"].train_in, status.flows["cars"].rate_in > 0) == (20, True)
    # the CPU of a train is that of Spark, its workers and the driver, so it is more than that of its boxes
    for train in (train for train in catalog.trains(upper.name) if train.rows_in):
        assert sum(box.cpu for box in train.boxes) < train.cpu < 60
    catalog.close()
    assert {load.input: load.waiting for load in status.inputs}.get("cars", 0) in (0, None)
    shown = CliRunner().invoke(penstock_app(["status"]), ["status", str(tmp_path / "checkpoint")]).output
    for text in ("cars: 100 offered = 100 let in", "a train takes", "windows: CPU", "nothing waits"):
        assert text in shown
    costs = costs_in(tmp_path / "checkpoint")
    assert costs.subnetworks[upper.name].cpu.at(40) > 0
    assert costs.boxes["windows"].cpu is not None
    assert costs.boxes["valid"].cpu is not None


@pytest.mark.parametrize("kind", ["join", "union"])
def test_an_idle_input_does_not_stall_windows(spark, tmp_path, kind):
    sink = ps.memory()
    net = ps.Network(f"idle_{kind}")
    left, right = source(net, tmp_path, "left"), source(net, tmp_path, "right", idle="1 second")
    both = (
        left.join(right, on=["k"], within="1 second", name="pairs").select("time", "k", "v", name="cut")
        if kind == "join"
        else ps.union(left, right, name="both")
    )
    both.group_by("k").tumble("10 seconds", n="count(*)", name="windows").output("out", to=sink)
    put(tmp_path / "left", "0", [(1, 1, 1), (2, 1, 1)])
    put(tmp_path / "right", "0", [(1, 1, 1)])
    with ps.Runtime(net, spark, tmp_path / "checkpoint") as running:
        assert running.wait_idle(timeout=120)
        assert sink.rows == []
        # only the left goes on
        put(tmp_path / "left", "1", [(40, 1, 1)])
        until(running, lambda: sink.rows)
        until(running, lambda: running.records.catalog.events("idle"))
        assert "right" in running.records.catalog.events("idle")[0].detail["inputs"]
    assert [(r["k"], r["n"]) for r in sink.rows] == [(1, 2 if kind == "join" else 3)]


@pytest.mark.parametrize("column", ["nope", "plate"])
def test_a_value_graph_that_cannot_be_read_changes_no_network(tmp_path, column):
    """Without Spark: it is refused before anything is told to the run or to the catalog."""
    net = ps.Network("n")
    cars = net.source("cars", ps.csv("in/", "time TIMESTAMP, spd INT, plate STRING"), timestamp="time")
    first = ps.QoS(delay=[(0, 1), (5, 1), (30, 0)])
    cars.view("seen", keep="1 hour", qos=first).filter("spd < 40").output("jams", to=ps.console(), qos=first)
    running, told = ps.Runtime(net, checkpoint=tmp_path / "checkpoint"), []
    running.queries = {sub.name: SimpleNamespace(sub=sub) for sub in running.subs}
    running.records = SimpleNamespace(
        network=lambda *_: told.append("network"), event=lambda *_, **__: told.append("event")
    )
    networks = [net, *(sub.network for sub in running.subs)]

    def known(name):
        return {id(each.nodes[name].qos) for each in networks if name in each.nodes}

    for name in ("jams", "seen"):
        with pytest.raises(NetworkError, match=f"box '{name}': QoS value graph: .*'{column}'"):
            running.set_qos(name, ps.QoS(first.delay, value=[(0, 0), (1, 1)], column=column))
        assert known(name) == {id(first)}
    assert not told
    good = ps.QoS(first.delay, value=[(0, 0), (1, 1)], column="spd")
    for name in ("jams", "seen"):  # the reader of a view has it as a node without inputs
        running.set_qos(name, good)
        assert known(name) == {id(good)}
    assert told == ["network", "event"] * 2
