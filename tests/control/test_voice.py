"""What control warns of comes to the console of a command: once, in a sentence, without a trace."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

from penstock.control.voice import LOG, warnings_said

ROOT = Path(__file__).parents[2]
DYING = """
import sys
import time
from pathlib import Path

import penstock as ps
from penstock.control.voice import warnings_said
from tests.control.loop.test_control import FakeRun


def broken():
    raise ValueError("no such column")


with warnings_said(lambda text: print(text, file=sys.stderr)):
    control = ps.Control()
    control.look = broken
    control.begin(FakeRun(Path(sys.argv[1])))
    until = time.monotonic() + 30
    while control.failure is None and time.monotonic() < until:
        time.sleep(0.05)
    control.end()
"""


def test_a_control_that_dies_says_so_in_one_sentence(tmp_path):
    """In a process of its own: under pytest, Python's last resort does not write."""
    command = [sys.executable, "-c", DYING, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert [line for line in done.stderr.splitlines() if "no such column" in line] == [
        "warning: control has failed, all valves are open and trains leave as they come: no such column"
    ]


def test_each_warning_is_said_once_and_decisions_are_not():
    said: list[str] = []
    with warnings_said(said.append):
        LOG.warning("%s waits", "alarms")
        LOG.getChild("loop").warning("control looks again")
        LOG.info("scores to 30 %")
        logging.getLogger("penstock").warning("something else")
    LOG.warning("nobody listens")
    assert said == ["warning: alarms waits", "warning: control looks again"]
