"""A user's function must keep to the keys that came in, because boxes behind it rely on their partition."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from penstock.engine.spark.layout.plan import guarded, lay_out
from penstock.engine.spark.tasks.stage import StageTask
from penstock.model.errors import PenstockError
from penstock.model.types import arrow_schema
from penstock.model.writing.network import Network
from penstock.rewrite.subnetworks import split
from penstock.testing import collect, examples, rows_source

PRODUCES = "time TIMESTAMP, k STRING, v INT, seen BIGINT"


def other_key(batch, state):
    """A latch that answers under a key of its own."""
    out, changed = examples.running_count(batch, state)
    return out.set_column(out.column_names.index("k"), "k", pa.array(["elsewhere"] * out.num_rows)), changed


def run(function, tmp_path, *trains, lateness="0 seconds"):
    """Trains of (seconds, k, v) and their horizons through latch and windows, as one stage in
    this process.
    """
    net = Network("one")
    cars = net.source(
        "cars", rows_source("time TIMESTAMP, k STRING, v INT"), timestamp="time", lateness=lateness
    )
    latched = cars.group_by("k", name="g").latch(
        function=function, state="seen BIGINT", produces=PRODUCES, name="latch"
    )
    latched.group_by("k", name="h").tumble("10 seconds", n="count(*)", name="t").output("out", to=collect())
    (sub,) = split(net)
    (stage,) = lay_out(sub).stages
    schema = arrow_schema(net.types["g"].schema)
    counts, tokens = [], {}
    for number, (rows, horizon) in enumerate(trains):
        table = pa.Table.from_pylist(
            [
                {"time": t * 1_000_000, "k": k, "v": v, "_ts": t * 1_000_000, "_seq": number * 100 + i}
                for i, (t, k, v) in enumerate(rows)
            ],
            schema=schema,
        )
        task = StageTask(
            name=stage.name,
            subnetwork="one",
            nodes=[net.nodes[n] for n in stage.nodes],
            inputs={n: net.input_types(n) for n in stage.nodes},
            outputs={n: net.types[n] for n in stage.nodes},
            entries=[("latch", 0)],
            entry_fields=[schema],
            leaving=[],
            guards=guarded(net, stage),
            state_root=str(tmp_path),
            state_tokens=tokens,
            train=number,
            horizons=dict.fromkeys(stage.nodes, (horizon * 1000000,)),
            lateness=[None],
            drop_rates={},
            final=False,
            stateful=True,
            epoch=str(tmp_path),
        )
        (batch,) = task.run(0, table.to_batches())
        report = json.loads(batch.to_pylist()[-1]["body"])
        counts.append(report["counts"])
        tokens = report["state"][stage.name]
    return counts


def test_a_strange_key_is_refused(tmp_path):
    with pytest.raises(PenstockError) as caught:
        run(other_key, tmp_path, ([(1, "a", 1)], 5))
    assert "test_guard.py" in str(caught.value)
    assert "box 'latch': its function produced a value of the key 'k' that did not come in" in str(
        caught.value
    )
    assert "give it another name, or group again" in str(caught.value)


def test_a_key_of_an_earlier_train_is_no_strange_key(tmp_path):
    """A tuple that had to wait for its turn comes out when its key is not in the train."""
    records = run(examples.running_count, tmp_path, ([(1, "a", 1), (4, "b", 1)], 2), ([(9, "c", 1)], 9))
    assert [record["latch"] for record in records] == [
        {"in": 2, "out": 1, "dead": 0},
        {"in": 1, "out": 2, "dead": 0},
    ]
