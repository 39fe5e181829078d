"""CPU of a process tree, and how it is divided between trains."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from penstock.engine.contract.train_cpu import CpuUsed, TrainCpu
from penstock.process.process_cpu import ProcessTreeCpu, cpu_of

pytestmark = pytest.mark.skipif(not ProcessTreeCpu.possible(), reason="no clocks of other processes")


def test_our_own_clock_is_that_of_the_process():
    before = time.process_time()
    assert before <= cpu_of(os.getpid()) <= time.process_time()


def test_grandchildren_count_too():
    spin = "import time\nwhile time.process_time() < 0.15: pass"
    command = f"import subprocess, sys, time; subprocess.run([sys.executable, '-c', '''{spin}''']); input()"
    child = subprocess.Popen([sys.executable, "-c", command], stdin=subprocess.PIPE)
    try:
        meter = ProcessTreeCpu(child.pid)
        until = time.monotonic() + 120
        while meter.seconds() < 0.12 and time.monotonic() < until:
            time.sleep(0.005)
        assert meter.seconds() >= 0.12
    finally:
        child.communicate(b"\n")
    before = meter.seconds()
    assert meter.seconds() == before  # gone, and nothing is taken back


def test_trains_that_run_together_share_and_say_so():
    shown = [0.0]
    cpu = TrainCpu(lambda: shown[0])
    shown[0] = 7.0  # nobody's
    cpu.begin("a")
    shown[0] = 8.0
    cpu.begin("b")
    shown[0] = 10.0
    assert cpu.end("a") == CpuUsed(2.0, alone=False)
    shown[0] = 10.5
    assert cpu.end("b") == CpuUsed(1.5, alone=False)
    cpu.begin("a")
    shown[0] = 11.0
    assert cpu.end("a") == CpuUsed(0.5)
    assert cpu.end("a") is None
