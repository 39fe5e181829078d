"""What texts promise: docs/boxes.md runs, and every code of a paper is in docs/papers.md."""

from __future__ import annotations

import doctest
import re
import textwrap
from pathlib import Path

import pytest

import penstock as ps
from penstock.model import boxes

TOP = Path(__file__).parents[2]
PAGE = TOP / "docs" / "boxes.md"
TEXTS = [
    path
    for folder in ("src", "tests", "docs", "benchmarks", "examples", "scripts")
    for path in sorted((TOP / folder).rglob("*"))
    if path.suffix in (".py", ".md") and path != Path(__file__)
]
# (A76), A09-A13, SE2: Aurora, PSoup and its experiments, load diffusion and its experiments
CODE = re.compile(r"\b(?:[APS]\d\d|PE\d|SE\d)\b")


@pytest.fixture(scope="module")
def network():
    text = PAGE.read_text()
    python = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    test = doctest.DocTestParser().get_doctest(python, {"__name__": "speeds"}, "boxes.md", str(PAGE), 0)
    report: list[str] = []
    names = test.globs
    doctest.DocTestRunner(verbose=False).run(test, out=report.append, clear_globs=False)
    assert not report, "".join(report)
    return names["net"]


YAML = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("piece", YAML, ids=[piece.split(":")[0] for piece in YAML])
def test_yaml_is_what_python_says(network, piece):
    # of the page's own functions, the page gives one a module
    functions = {"reports", "roads", "road_counts"}
    plain = [
        node
        for node in network.nodes.values()
        if (getattr(node, "function", None) is None or node.name == "scored") and node.name not in functions
    ]
    assert textwrap.indent(piece, "  ") in ps.to_yaml(ps.Network.of("traffic", plain))


def test_every_box_is_on_the_page():
    kinds = {c.kind for c in vars(boxes).values() if isinstance(c, type) and issubclass(c, boxes.Node)} - {
        "node"
    }
    text = PAGE.read_text()
    assert {kind for kind in kinds if f"{kind}(" not in text} == set()


def test_every_code_of_a_paper_has_its_line():
    """A reader who meets (A76) finds it in docs/papers.md."""
    known = set(re.findall(r'<a id="([a-z]+\d+)"></a>', (TOP / "docs" / "papers.md").read_text()))
    assert len(known) > 100
    cited = {(code, str(path.relative_to(TOP))) for path in TEXTS for code in CODE.findall(path.read_text())}
    made_up = {("SE9", "tests/diffusion/test_experiments.py")}  # asks for an experiment that does not exist
    assert {(code, path) for code, path in cited if code.lower() not in known} - made_up == set()


def test_no_text_refers_to_pages_outside_of_the_repository():
    pattern = re.compile(r"shared page\b", re.IGNORECASE)
    assert [str(path.relative_to(TOP)) for path in TEXTS if pattern.search(path.read_text())] == []
