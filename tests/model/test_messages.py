"""What errors say, compared as text. After a change on purpose: `PENSTOCK_GOLDEN=write pytest
tests/model/test_messages.py`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from model.wrong_networks import CASES
from penstock.model.errors import NetworkError

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
FILE = str(HERE / "wrong_networks.py")


def message(name: str) -> str:
    """The error's text. Lines count from the start of the case, so new cases move nothing."""
    function = CASES[name]
    with pytest.raises(NetworkError) as caught:
        function()
    first = function.__code__.co_firstlineno

    def place(match: re.Match[str]) -> str:
        offset = int(match[1]) - first
        return f"wrong_networks.py:{name}+{offset}" if offset > 0 else "wrong_networks.py:cars"

    return re.sub(re.escape(FILE) + r":(\d+)", place, str(caught.value)) + "\n"


@pytest.mark.parametrize("name", sorted(CASES))
def test_message(name):
    golden = GOLDEN / f"{name}.txt"
    said = message(name)
    if os.environ.get("PENSTOCK_GOLDEN") == "write":
        golden.write_text(said)
    assert said == golden.read_text()


@pytest.mark.parametrize("name", sorted(CASES))
def test_message_says_where(name):
    """A message names a line of this case (or of the helper that it calls), or a line of the YAML text."""
    assert re.search(r"wrong_networks.py:|<yaml>:\d+", message(name))


def test_no_golden_text_is_left_over():
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(CASES)
