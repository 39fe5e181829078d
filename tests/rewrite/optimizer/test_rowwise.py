"""`rowwise`: what a function promises, in Python and in YAML, and where the promise is refused."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.model.errors import NetworkError
from penstock.model.text.yaml_form import from_yaml, to_yaml
from penstock.testing import examples, rows_source


def cars():
    net = ps.Network("n")
    return net, net.source("cars", rows_source("v INT, w INT"))


def test_written_in_python():
    _, stream = cars()
    kept = stream.filter(examples.no_nulls, reads="v", rowwise=True)
    counted = kept.apply(examples.count_nulls, produces="nulls BIGINT", reads=["v", "w"], rowwise=True)
    assert kept.node.rowwise
    assert counted.node.rowwise
    assert counted.schema.names == ("v", "w", "nulls")


def test_read_from_yaml():
    text = """
network: n
boxes:
  ticks:
    source: {rate: 5}
  some:
    filter: {function: 'penstock.testing.examples:no_nulls'}
    from: ticks
    reads: [value]
    rowwise: true
  out:
    output: {console: 20}
    from: some
"""
    network = from_yaml(text)
    assert network.nodes["some"].rowwise
    assert from_yaml(to_yaml(network)) == network


def test_a_promise_needs_a_function_and_what_it_reads():
    _, stream = cars()
    with pytest.raises(NetworkError, match="'rowwise' says nothing here") as refused:
        stream.filter(examples.no_nulls, rowwise=True)
    assert "does not say what it reads" in str(refused.value)
    with pytest.raises(NetworkError, match="no function"):
        stream.filter("v > 1", rowwise=True)
