"""docs/design.md is a map: what it names exists, and a walk stays short."""

from __future__ import annotations

import re
import tomllib
from itertools import pairwise

import pytest

from pages.code_blocks import DOCS, ROOT

TEXT = (DOCS / "design.md").read_text()
SOURCE = ROOT / "src/penstock"
TREE = re.search(r"```text\n(.*?)```", TEXT, re.DOTALL)[1]
PATHS = sorted(set(re.findall(r"`([\w/]+(?:\.py|/))`", TEXT)))


@pytest.mark.parametrize("path", PATHS)
def test_what_the_map_names_exists(path):
    assert (SOURCE / path).exists() or (ROOT / path).exists()


@pytest.mark.parametrize("folder", ["src", "docs"])
def test_modules_named_elsewhere_exist(folder):
    """Prose and docstrings name a module by its folder and file, as `store/durable.py`."""
    modules = {f"/{file.relative_to(ROOT)}" for file in ROOT.rglob("*/*.py") if ".venv" not in file.parts}
    gone = {
        (str(file.relative_to(ROOT)), path)
        for file in (ROOT / folder).rglob("*.[mp][dy]")
        for path in re.findall(r"`([\w/]+/\w+\.py)`", file.read_text())
        if not any(module.endswith(f"/{path}") for module in modules)
    }
    assert not gone


def test_every_folder_is_on_the_map():
    folders = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert set(re.findall(r"^(\w+)/", TREE, re.MULTILINE)) == folders
    assert len(TREE.splitlines()) <= 45, "the map must fit one screen"


def test_folders_of_folders_are_on_the_map():
    inner = {path.name for path in (*SOURCE.glob("*/*/"), *SOURCE.glob("engine/spark/*/")) if path.is_dir()}
    assert inner - {"__pycache__"} <= set(re.findall(r"\b(\w+)/", TREE))


def test_the_map_has_the_order_that_imports_have():
    contract, *_ = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [set(re.findall(r"penstock\.(\w+)", layer)) for layer in contract["layers"]]
    depth = {name: number for number, layer in enumerate(layers) for name in layer}
    depths = [depth[name] for name in re.findall(r"^(\w+)/", TREE, re.MULTILINE) if name in depth]
    assert depths == sorted(depths)


def test_a_tuple_changes_folders_at_most_ten_times():
    walk = re.search(r"## Walk 1.*?^1\. (.*?)(?=^## )", TEXT, re.DOTALL | re.MULTILINE)[1]
    folders = [path.rpartition("/")[0] for path in re.findall(r"`([\w/]+\.py)`", walk)]
    changes = sum(before != after for before, after in pairwise(folders))
    assert changes <= 10
