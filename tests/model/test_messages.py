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
CASE_LINE = re.escape(str(HERE / "wrong_networks")) + r"/(\w+\.py):(\d+)"


def message(name: str) -> str:
    """The error's text. Lines count from the start of the case, so new cases move nothing."""
    function = CASES[name]
    with pytest.raises(NetworkError) as caught:
        function()
    code = function.__code__

    def place(match: re.Match[str]) -> str:
        own = match[1] == Path(code.co_filename).name
        return f"{match[1]}:{name}+{int(match[2]) - code.co_firstlineno}" if own else f"{match[1]}:cars"

    return re.sub(CASE_LINE, place, str(caught.value)) + "\n"


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
    assert re.search(rf"\w+\.py:(cars\b|{name}\+\d)|<yaml>:\d+", message(name))


def test_no_golden_text_is_left_over():
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(CASES)
