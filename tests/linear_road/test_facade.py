"""The public names of `penstock.linear_road`: all there, none of them a folder, none imported before it is
used.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock import linear_road


@pytest.mark.parametrize("name", linear_road.__all__)
def test_each_name_is_there_and_documented(name: str) -> None:
    assert getattr(linear_road, name).__doc__
    assert name in str(linear_road.__doc__) or name in ("InputError", "Verdict")
    assert not (Path(linear_road.__file__).parent / name).exists()


def test_the_kit_needs_no_spark() -> None:
    code = (
        "import sys; from penstock.linear_road import generate_traffic, drive_input, validate_answers; "
        "sys.exit('pyspark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
