"""Before the first train, on Spark: columns that nobody reads are kept out of state."""

from __future__ import annotations

import penstock as ps
from penstock.control.optimizer.cycle import Optimizer
from penstock.testing import assert_same_rows
from runtime.streams import local, put, rows_of, source


def test_state_never_sees_columns_that_nobody_reads(spark, tmp_path):
    """They are left out before the first train; without the optimizer the form returns all the same."""
    net, sink = ps.Network("narrow"), ps.memory()
    by_key = source(net, tmp_path).group_by("k", name="by_k")
    by_key.tumble("20 seconds", n="count(*)", name="minutes").output("out", to=sink)
    put(tmp_path / "cars", "0", rows_of(0, 60))
    with ps.Runtime(net, spark, tmp_path / "checkpoint", control=Optimizer(), once=True) as running:
        assert running.wait(timeout=120)
        got = running.queries["out"].sub.network.input_types("minutes")[0].schema.names
        assert "v" not in got
    put(tmp_path / "cars", "1", rows_of(60, 60))
    with ps.Runtime(net, spark, tmp_path / "checkpoint", once=True, close=True) as running:
        assert running.wait(timeout=120)
        assert running.queries["out"].sub.network.input_types("minutes")[0].schema.names == got
    shown = list(sink.rows)
    expected = local(net, cars=[*rows_of(0, 60), *rows_of(60, 60)]).outputs["out"]
    assert_same_rows(shown, expected)
