"""A command that fails on the way is started again: with pauses that grow, and not for ever."""

from __future__ import annotations

import signal
import sys
import threading

import pytest

from penstock.cli.printable import printable, printable_line
from penstock.process.restarting import RestartPolicy, keep_running
from penstock.process.stop_signal import StopSignal

QUICK = RestartPolicy((1,), limit=4, first_pause=0.0)


def child(folder, *codes):
    """A command that ends with these codes, one after the other; a negative one is a signal."""
    counter = folder / "runs"
    counter.write_text("0")
    code = (
        "import os, pathlib, sys\n"
        f"path = pathlib.Path({str(counter)!r}); n = int(path.read_text()); path.write_text(str(n + 1))\n"
        f"code = {list(codes)!r}[n]\n"
        "os.kill(os.getpid(), -code) if code < 0 else sys.exit(code)\n"
    )
    return [sys.executable, "-c", code], counter


@pytest.mark.parametrize(
    ("codes", "code", "runs"),
    [
        ((0,), 0, 1),
        ((1, -9, 1, 0), 0, 4),  # failed, killed, failed, done
        ((2,), 2, 1),  # refused: it would be again
        ((1, 1, 1, 1, 0), 1, 4),  # given up
        ((-9, -9, -9, -9, 0), 9, 4),
    ],
)
def test_a_failing_command_is_started_again(tmp_path, codes, code, runs):
    command, counter = child(tmp_path, *codes)
    said = []
    assert keep_running(command, QUICK, StopSignal(), said.append) == code
    assert int(counter.read_text()) == runs
    assert len(said) == (runs if runs == QUICK.limit and code else runs - 1)


def test_a_signal_is_passed_on(tmp_path):
    ready = tmp_path / "ready"
    waiting = f"import pathlib, signal; pathlib.Path({str(ready)!r}).touch(); signal.pause()"
    stop = StopSignal()

    def stop_when_ready():
        while not ready.exists():
            pass
        stop.set()

    threading.Thread(target=stop_when_ready, daemon=True).start()
    assert keep_running([sys.executable, "-c", waiting], QUICK, stop, print) == signal.SIGTERM


def test_terminal_escapes_are_shown():
    assert printable("a\x1b[31mb\x07\x9b\u202e\n") == "a\\x1b[31mb\\x07\\x9b\\u202e\n"
    assert printable_line("a\r\nb") == "a\\x0d\\nb"
    assert printable("Zürich 東京") == "Zürich 東京"
