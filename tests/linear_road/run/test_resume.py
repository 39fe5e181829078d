"""`validate` and `describe` killed with SIGKILL at many places: the same command goes on and
says the same.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from penstock.linear_road.describe.describe import describe
from penstock.linear_road.describe.show import figures
from penstock.linear_road.traffic.generate import generate
from penstock.linear_road.validate import validate

# The process dies the n-th time it calls a function of the kit.
DIES = """
import os, signal, sys
from importlib import import_module
from pathlib import Path
module, name, times = import_module(sys.argv[1]), sys.argv[2], int(sys.argv[3])
whole, calls = getattr(module, name), []
def dies(*args, **kwargs):
    calls.append(1)
    if len(calls) == times:
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(*args, **kwargs)
setattr(module, name, dies)
"""
SMALL = """
from penstock.linear_road.rows import read_blocks as reading
from penstock.linear_road.validate import lines
from penstock.linear_road.validate.rules import roads
lines.BLOCK_BYTES, lines.BATCH_ROWS, roads.COMMIT_SECONDS = 1 << 17, 3000, 0
reading.CHUNK_BYTES, reading.CHUNK_ROWS = 1 << 17, 3000
"""
VALIDATE = """
from penstock.linear_road.validate import validate
validate(Path(sys.argv[4]), expected=Path(sys.argv[5]), work=Path(sys.argv[6]))
"""
DESCRIBE = """
from penstock.linear_road.describe import describe
describe.KEEP_SECONDS = 0
describe.describe(Path(sys.argv[4]), work=Path(sys.argv[6]))
"""
_ORACLE = "penstock.linear_road.validate"


@pytest.fixture(scope="module", params=["csv", "parquet"])
def source(request, tmp_path_factory):
    """Two expressways with a row that repeats another, in the form asked for."""
    out = tmp_path_factory.mktemp("input")
    generate(out, xways=1.5, minutes=8, seed=5, form=request.param)
    if request.param == "csv":
        file = out / json.loads((out / "manifest.json").read_text())["files"][0]
        rows = file.read_text().splitlines(keepends=True)
        file.write_text("".join([*rows[:400], rows[399], "nonsense\n", *rows[400:]]))
    return out


def die(script: str, *words: object) -> None:
    found = subprocess.run([sys.executable, "-c", script, *map(str, words)], check=False, timeout=120)
    assert found.returncode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "name", "times"),
    [
        (f"{_ORACLE}.rules.roads", "_add", 3),
        (f"{_ORACLE}.rules.trips", "find_entries", 2),
        (f"{_ORACLE}.rules.tolls", "quote", 1),
        (f"{_ORACLE}.validation", "write_expected", 1),
    ],
)
def test_a_killed_validation_goes_on(source, tmp_path, module, name, times):
    work, out, fresh = tmp_path / "work", tmp_path / "expected.csv", tmp_path / "fresh.csv"
    work.mkdir()
    die(DIES + SMALL + VALIDATE, module, name, times, source, out, work)
    assert not out.exists()
    assert list(work.iterdir())
    whole, resumed = validate(source, expected=fresh), validate(source, expected=out, work=work)
    assert (whole.resumed, resumed.resumed) == (False, True)
    assert out.read_bytes() == fresh.read_bytes()
    assert resumed.refused == whole.refused
    assert resumed.refused_by_why == whole.refused_by_why
    assert not list(work.iterdir())


@pytest.mark.slow
def test_a_killed_description_goes_on(source, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    die(DIES + SMALL + DESCRIBE, "penstock.linear_road.describe.describe", "_half", 40, source, "-", work)
    assert list(work.glob("describe-*/counted.pickle"))
    steps: list[int] = []
    resumed = describe(source, lambda _step, done, _of: steps.append(done), work=work)
    whole: list[int] = []
    assert figures(resumed) == figures(describe(source, lambda _step, done, _of: whole.append(done)))
    assert steps[-1] == whole[-1]
    assert not list(work.iterdir())


def test_a_changed_input_starts_anew(tmp_path):
    generate(tmp_path / "in", xways=0.5, minutes=2)
    with pytest.raises(KeyboardInterrupt):
        validate(tmp_path / "in", work=tmp_path / "work", progress=_stop_at_accounts)
    file = next((tmp_path / "in").glob("rows-*"))
    file.write_text(file.read_text() + "nonsense\n")
    verdict = validate(tmp_path / "in", work=tmp_path / "work")
    assert (verdict.resumed, verdict.refused_by_why) == (False, {"not 15 integers": 1})


def _stop_at_accounts(step: str, _share: float) -> None:
    if step == "accounts":
        raise KeyboardInterrupt
