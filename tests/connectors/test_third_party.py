"""A connector of another package: the example of docs/guides/connectors.md, installed and run."""

from __future__ import annotations

import importlib
import sys
import tomllib

import pytest

import penstock as ps
from pages.code_blocks import DOCS, blocks
from penstock.connectors.contract import Target
from penstock.connectors.loading import input_for, sink_for
from penstock.engine.local import LocalEngine
from penstock.model.formats.registry import names

PAGE = DOCS / "guides" / "connectors.md"
FILES = {block.title: block.text for block in blocks(PAGE)}
MODULES = ("countdown", "countdown_io")


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The package as pip would leave it: modules, and a dist-info directory with its entry points."""
    site = tmp_path / "site"
    info = site / "penstock_countdown-1.0.dist-info"
    info.mkdir(parents=True)
    for module in MODULES:
        (site / f"{module}.py").write_text(FILES[f"{module}.py"])
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: penstock-countdown\nVersion: 1.0\n")
    points = tomllib.loads(FILES["pyproject.toml"])["project"]["entry-points"]
    text = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in points.items()
    )
    (info / "entry_points.txt").write_text(text)
    monkeypatch.syspath_prepend(str(site))
    importlib.invalidate_caches()
    yield site
    for module in MODULES:
        sys.modules.pop(module, None)


@pytest.fixture
def network(installed, tmp_path):
    return ps.from_yaml(FILES["network.yaml"].replace("LOG", str(tmp_path / "log")))


def test_it_is_known_by_name_once_it_is_installed(installed):
    assert "countdown" in names("source")
    assert "lines" in names("sink")


def test_without_it_the_error_says_what_there_is():
    with pytest.raises(ps.NetworkError, match="unknown format 'countdown'"):
        ps.from_yaml(FILES["network.yaml"])


def test_yaml_there_and_back(network):
    assert ps.from_yaml(ps.to_yaml(network)) == network
    assert "source: {countdown: 10, step: 2}" in ps.to_yaml(network)


def test_describing_loads_nothing_that_does(network, tmp_path):
    text = network.explain()
    assert "countdown 10" in text
    assert f"lines {tmp_path / 'log'}" in text
    assert "countdown_io" not in sys.modules


def test_on_the_reference_engine(network):
    rows = [{"time": second, "n": n} for second, n in enumerate((10, 8, 6, 4, 2))]
    result = LocalEngine(network).run([{"clock": rows}])
    assert [row["n"] for row in result.outputs["log"]] == [6, 4, 2]


def test_slices_come_back_from_a_ticket(network, tmp_path):
    source = network.nodes["clock"]
    taken_from, position, tuples = input_for(source, tmp_path / "memory"), None, []
    while (taken := taken_from.take(position, 2)).slices:
        position = type(taken.position).of(taken.position.plain())
        for piece in taken.slices:
            tuples += type(piece).of(piece.plain()).tuples(source).tuples.to_pylist()
    assert [(row["n"], row["_seq"]) for row in tuples] == [(10, 0), (8, 1), (6, 2), (4, 3), (2, 4)]


def test_a_connector_that_is_broken_says_so(installed, tmp_path):
    (installed / "countdown_io.py").write_text("import no_such_driver\n")
    net = ps.from_yaml(FILES["network.yaml"])
    with pytest.raises(ps.PenstockError, match="the connector of 'lines' cannot be loaded"):
        sink_for(net.nodes["log"].to, Target("log", net.types["log"].schema, "run"))


def test_on_spark(network, spark, tmp_path):
    for module in MODULES:
        spark.sparkContext.addPyFile(str(tmp_path / "site" / f"{module}.py"))
    with ps.Runtime(network, spark, tmp_path / "checkpoint", once=True, close=True, partitions=2) as run:
        run.wait()
    assert (tmp_path / "log").read_text().split() == ["6", "4", "2"]
