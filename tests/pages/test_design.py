"""docs/design.md is a map: what it names exists, and a walk stays short."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from pages.code_blocks import DOCS, ROOT

TEXT = (DOCS / "design.md").read_text()
SOURCE = ROOT / "src/penstock"
PATHS = sorted(set(re.findall(r"`([\w/]+(?:\.py|/))`", TEXT)))


@pytest.mark.parametrize("path", PATHS)
def test_what_the_map_names_exists(path):
    assert (SOURCE / path).exists()


def test_every_folder_is_on_the_map():
    tree = re.search(r"```text\n(.*?)```", TEXT, re.DOTALL)[1]
    on_the_map = set(re.findall(r"^(\w+)/", tree, re.MULTILINE))
    folders = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert on_the_map == folders
    assert len(tree.splitlines()) <= 45, "the map must fit one screen"


def test_a_tuple_changes_folders_at_most_ten_times():
    walk = re.search(r"## Walk 1.*?^1\. (.*?)(?=^## )", TEXT, re.DOTALL | re.MULTILINE)[1]
    folders = [path.rpartition("/")[0] for path in re.findall(r"`([\w/]+\.py)`", walk)]
    changes = sum(before != after for before, after in pairwise(folders))
    assert changes <= 10
