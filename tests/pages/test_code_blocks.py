"""Code on the pages runs, or says why it does not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
import yaml

from pages.code_blocks import DOCS, ROOT, blocks
from penstock.model.types import Schema
from penstock.standing.language.language import parse
from penstock.standing.language.select_clause import StreamInfo

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
# Pages that other tests run, whole.
ELSEWHERE = {
    "docs/boxes.md": "tests/model/test_docs.py",
    "docs/guides/connectors.md": "tests/connectors/test_third_party.py",
    "docs/tutorial.md": "tests/pages/test_tutorial.py",
}
CODE = ("python", "shell", "sh", "bash", "console")


def name(page):
    return page.relative_to(ROOT).as_posix()


RUN_HERE = [page for page in PAGES if name(page) not in ELSEWHERE]


@pytest.mark.parametrize("page", RUN_HERE, ids=name)
def test_what_is_not_run_says_why(page):
    """Python blocks are run below; commands would need minutes and servers, so they carry a reason."""
    silent = [f"line {b.line}: {b.language}" for b in blocks(page) if b.language in CODE[1:] and not b.reason]
    assert silent == [], "put <!-- not run: why --> right above the block, or run it in a test"


@pytest.mark.parametrize("page", [p for p in PAGES if "performance" not in name(p)], ids=name)
def test_code_is_fenced(page):
    """An indented block has no language, so nobody knows whether it can be run."""
    fenced = re.compile(r"^```.*?^```$|<!--.*?-->", re.DOTALL | re.MULTILINE)
    assert re.findall(r"\n\n {4}[^\s*-].*", fenced.sub("", page.read_text())) == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_prose_is_wrapped(page):
    """Tables and code have lines of their own length; a table cell is for scanning."""
    tables_and_code = re.compile(r"^```.*?^```$|<!--.*?-->|^\|[^\n]*$", re.DOTALL | re.MULTILINE)
    prose = tables_and_code.sub("", page.read_text())
    unbreakable = re.compile(r"^\s*(?:[-*] )?\S+$|^\s*!?\[[^\]]*\]\([^)]*\)$|^#")
    assert [line for line in prose.splitlines() if len(line) > 110 and not unbreakable.match(line)] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_table_cells_are_short(page):
    cells = [
        c.strip()
        for c in re.findall(
            r"(?<=\|)[^|\n]+(?=\|)",
            re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE),
        )
    ]
    assert [cell for cell in cells if len(cell) > 160] == []


WITH_PYTHON = [p for p in RUN_HERE if any(b.language == "python" and not b.reason for b in blocks(p))]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=name)
def test_python_runs(page, tmp_path):
    """The Python of a page is one program, and its tests are tests."""
    program = "\n\n".join(b.text for b in blocks(page) if b.language == "python" and not b.reason)
    (tmp_path / "test_page.py").write_text(program + "\n\ndef test_the_page_itself():\n    pass\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_page.py"],
        cwd=tmp_path,
        env={**os.environ, "PENSTOCK_ENGINES": "local"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


STREAMS = {
    "reports": StreamInfo("reports", Schema.parse("time TIMESTAMP, vid INT, spd INT, seg INT")),
    "fined": StreamInfo("fined", Schema.parse("time TIMESTAMP, vid INT, amount INT")),
}
READ = {"json": json.loads, "yaml": yaml.safe_load, "sql": lambda text: parse(text, STREAMS)}
OTHERS = [(page, b) for page in RUN_HERE for b in blocks(page) if b.language in READ]


@pytest.mark.parametrize(
    ("page", "block"), OTHERS, ids=lambda each: getattr(each, "line", None) or name(each)
)
def test_what_is_no_program_can_be_read(page, block):
    assert READ[block.language](block.text)


def test_pages_that_other_tests_run_are_named_there():
    for page, test in ELSEWHERE.items():
        assert page.rsplit("/", 1)[-1] in (ROOT / test).read_text()
