"""The examples that the README shows are the ones that run, in Python and in YAML."""

import importlib.util
import re
from pathlib import Path

import pytest

from penstock.model.yaml_form import from_yaml, to_yaml
from penstock.rewrite.check import check

ROOT = Path(__file__).parent.parent


def _traffic():
    spec = importlib.util.spec_from_file_location("traffic_example", ROOT / "examples" / "traffic.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_text_is_the_same_network():
    text = from_yaml((ROOT / "examples" / "traffic.yaml").read_text())
    check(text)
    assert to_yaml(text) == to_yaml(_traffic().net)


def test_the_readme_shows_what_runs():
    shown = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    lines = [line.strip() for line in (ROOT / "examples" / "traffic.py").read_text().splitlines()]
    missing = [line for line in shown.splitlines() if line.strip() and line.strip() not in lines]
    assert missing == []


def test_the_picture_is_of_this_network():
    assert (ROOT / "docs" / "img" / "traffic.svg").read_text() == _traffic().net.to_svg()


@pytest.mark.slow
def test_the_ten_lines_find_the_jam(tmp_path, monkeypatch, capsys):
    import pyarrow.parquet as pq

    monkeypatch.chdir(tmp_path)
    _traffic().main()
    jams = pq.read_table("out/traffic/jams").to_pylist()
    assert {row["seg"] for row in jams} == {3}
    assert len(jams) >= 8
    assert "slow now" in capsys.readouterr().out
