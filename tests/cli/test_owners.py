"""Commands that find a checkpoint in use: one message, before Spark starts."""

from __future__ import annotations

import os

import pytest
from typer.testing import CliRunner

from penstock.cli.main import penstock_app
from penstock.store.ownership import owned

NET = """
import penstock as ps

net = ps.Network("copied")
rows = net.source("rows", ps.csv("in", "time TIMESTAMP, k INT"), timestamp="time")
rows.output("out", to=ps.csv("out"))
"""


@pytest.fixture
def net(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "net.py").write_text(NET)
    return tmp_path


def said_by(*words):
    result = CliRunner().invoke(penstock_app(words), words)
    assert result.exit_code != 0
    return result.output


def test_a_second_run_is_refused_at_once(net):
    with owned(net / "checkpoint"):
        said = said_by("run", "net.py", "--once", "--checkpoint", "checkpoint")
    assert f"is in use by process {os.getpid()} on host" in said
    assert "--take-over" in said
    assert "Traceback" not in said


def test_a_durability_that_nobody_knows(net):
    said = said_by("run", "net.py", "--once", "--durability", "nuclear")
    assert "durability 'nuclear' is not known" in said
    assert "'process' or 'power'" in said
