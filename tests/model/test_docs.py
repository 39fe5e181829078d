"""docs/boxes.md: its Python runs, and its YAML is what to_yaml writes."""

from __future__ import annotations

import doctest
import re
import textwrap
from pathlib import Path

import pytest

import penstock as ps
from penstock.model import boxes

PAGE = Path(__file__).parents[2] / "docs" / "boxes.md"


@pytest.fixture(scope="module")
def network():
    text = PAGE.read_text()
    python = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    test = doctest.DocTestParser().get_doctest(python, {}, "boxes.md", str(PAGE), 0)
    report: list[str] = []
    names = test.globs
    doctest.DocTestRunner(verbose=False).run(test, out=report.append, clear_globs=False)
    assert not report, "".join(report)
    return names["net"]


YAML = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("piece", YAML, ids=[piece.split(":")[0] for piece in YAML])
def test_yaml_is_what_python_says(network, piece):
    # the page's own functions live in no module, so they have no text
    functions = {"reports", "roads", "tally"}
    plain = [
        node
        for node in network.nodes.values()
        if getattr(node, "function", None) is None and node.name not in functions
    ]
    assert textwrap.indent(piece, "  ") in ps.to_yaml(ps.Network.of("traffic", plain))


def test_every_box_is_on_the_page():
    kinds = {c.kind for c in vars(boxes).values() if isinstance(c, type) and issubclass(c, boxes.Node)} - {
        "node"
    }
    text = PAGE.read_text()
    assert {kind for kind in kinds if f"{kind}(" not in text} == set()
