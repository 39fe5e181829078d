"""docs/tutorial.md, done as it says: from an empty folder to a query on a running network."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pages.code_blocks import DOCS, blocks

PAGE = DOCS / "tutorial.md"


def script(folder):
    """The page as a shell script: files are saved where the page says so, the rest is typed in."""
    lines = ["set -eu"]
    for number, block in enumerate(blocks(PAGE)):
        if block.reason:
            continue
        if block.title:
            (folder / f".page-{number}").write_text(block.text)
            lines.append(f"cp .page-{number} {block.title}")
        else:
            assert block.language == "shell", f"line {block.line}: neither a file nor a command"
            lines.append(block.text)
    return "\n".join(lines)


@pytest.fixture
def commands(tmp_path):
    """`penstock` and `python` as after an install."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, words in (("python", ""), ("penstock", "-m penstock.cli.main")):
        (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_tutorial_does_what_it_says(commands, tmp_path):
    folder = tmp_path / "empty"
    folder.mkdir()
    done = subprocess.run(
        ["bash", "-c", script(folder)],
        cwd=folder,
        env={**os.environ, "PATH": f"{commands}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    said = done.stdout
    assert done.returncode == 0, said + done.stderr
    assert "2026-01-01 00:00:00,0,0," in said
    assert "refused, as it should be" in said
    assert "did you mean 'speed'?" in done.stderr
    assert (folder / "road.svg").read_text().startswith("<svg")
    assert said.count("\n3,2026-01-01") >= 3
    assert "WARN" not in said + done.stderr
