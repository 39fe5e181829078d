"""`penstock optimize`, and `explain --optimized`: what is told, what is written, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli.main import penstock_app
from penstock.model.text.yaml_form import from_yaml
from penstock.rewrite.check import check
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.record_types import BoxCount, TrainRecord

NETWORK = """
network: orders
boxes:
  orders:
    source: {csv: in/orders, schema: 'time TIMESTAMP, customer INT, amount INT, note STRING'}
    timestamp: time
  payments:
    source: {csv: in/payments, schema: 'time TIMESTAMP, customer INT, paid INT'}
    timestamp: time
  pairs:
    join: [orders, payments]
    on: [customer]
    within: 10 seconds
  asked:
    filter: customer < 100
    from: pairs
  settled:
    output: {console: 20}
    from: asked
"""
TEXT = """\
network 'orders': 1 step, 2.47 -> 0.878 CPU-s a million tuples of each source, 64% less

  1. filter 'asked' moves in front of join 'pairs' as 'asked_orders' and 'asked_payments'
     push filters: 2.47 -> 0.878

asked: now asked_orders, asked_payments

figures by rule of thumb: pairs, asked; --checkpoint DIR takes the figures of a run

wrote {new}
"""


def call(*arguments):
    words = [str(a) for a in arguments]
    result = CliRunner().invoke(penstock_app(words), words)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result


@pytest.fixture
def net(tmp_path) -> Path:
    path = tmp_path / "orders.yaml"
    path.write_text(NETWORK)
    return path


def test_tells_each_step_and_writes_the_new_form(net, tmp_path):
    new = tmp_path / "new.yaml"
    result = call("optimize", net, "-o", new)
    assert result.exit_code == 0
    assert result.output == TEXT.replace("{new}", str(new))
    network = from_yaml(new)
    check(network)
    assert network.nodes["asked_payments"].predicate == "customer < 100"


def test_the_new_form_has_nothing_left_to_gain(net, tmp_path):
    new = tmp_path / "new.yaml"
    call("optimize", net, "-o", new)
    assert "nothing to gain" in call("optimize", new).output


def test_json_for_programs(net):
    plan = json.loads(call("optimize", net, "--format", "json").output)
    assert [step["rule"] for step in plan["steps"]] == ["push filters"]
    assert plan["after"] < plan["before"]
    assert plan["origins"]["asked_orders"] == ["asked"]
    assert from_yaml(plan["text"]).name == "orders"


def test_rates_give_cpu_a_second(net):
    output = call("optimize", net, "--rate", "orders=100_000", "--rate", "payments=10000").output
    assert "CPU-s a second at these rates" in output


def test_figures_of_a_run(net, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    catalog = Catalog(checkpoint / "catalog.db")
    counts = (BoxCount("pairs", 1_000, 100, wall=0.2, cpu=0.2), BoxCount("asked", 100, 90, wall=0.1, cpu=0.1))
    catalog.record_train(TrainRecord("settled", 0, 0.0, 1.0, 1_000, counts))
    catalog.close()
    output = call("optimize", net, "--checkpoint", checkpoint).output
    assert "figures measured: pairs, asked\n" in output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rate", "order=1"), "did you mean 'orders'?"),
        (("--rate", "orders=fast"), "SOURCE=TUPLES_PER_SECOND"),
        (("--rate", "orders=1", "--rate", "orders=2"), "source 'orders' has two rates"),
        (("--format", "xml"), "text or json"),
        (("--checkpoint", "nowhere"), "is no checkpoint"),
    ],
)
def test_refusals_are_one_message(net, options, message):
    result = call("optimize", net, *options)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


def test_explain_the_optimized_form(net):
    output = call("explain", net, "--optimized").output
    assert "asked_orders    filter customer < 100" in output
    assert "as written: asked\n" in output
    assert "native: asked_orders, asked_payments" in output
