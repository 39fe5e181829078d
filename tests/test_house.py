"""The house stays small: no folder above 15 modules, no file above 500 lines."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = 15
LINES = 500
ROOMS = ("src", "benchmarks", "tests")
FOLDERS = sorted({f.parent.relative_to(ROOT) for room in ROOMS for f in (ROOT / room).rglob("*.py")})


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_a_folder_has_at_most_fifteen_modules(folder):
    modules = [file.name for file in (ROOT / folder).glob("*.py") if file.name != "__init__.py"]
    assert len(modules) <= MODULES, f"{folder} has {len(modules)} modules: fold it by topic"


def test_a_file_has_at_most_500_lines():
    long = {
        str(file.relative_to(ROOT)): lines
        for room in ROOMS
        for file in (ROOT / room).rglob("*.py")
        if (lines := len(file.read_text().splitlines())) > LINES
    }
    assert not long
