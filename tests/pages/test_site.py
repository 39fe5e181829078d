"""The docs site builds without a warning, and the pages that are not on it have no broken links either."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys

import pytest

from pages.code_blocks import DOCS, ROOT


@pytest.mark.slow
def test_the_site_builds_strictly(tmp_path):
    """A broken link, a missing anchor, a page without a place in the menu or an unknown name is an error."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mkdocs",
            "build",
            "--strict",
            "--quiet",
            "--site-dir",
            str(tmp_path / "site"),
        ],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site/tutorial.html").exists()
    page = (tmp_path / "site/index.html").read_text()
    elsewhere = re.findall(r'(?:src|href)="(https?://[^"]+\.(?:js|css|woff2?))"', page)
    assert elsewhere == [], "the site must work without a network"


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_of_the_front_pages(page):
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", (ROOT / page).read_text())
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.parametrize(
    ("module", "page"),
    [
        ("penstock", "penstock.md"),
        ("penstock.testing", "testing.md"),
        ("penstock.standing", "standing.md"),
        ("penstock.linear_road", "linear-road.md"),
    ],
)
def test_every_public_name_is_in_the_reference(module, page):
    listed = set(re.findall(r"^::: \S+\.(\w+)$", (DOCS / "reference" / page).read_text(), re.MULTILINE))
    assert set(importlib.import_module(module).__all__) == listed
