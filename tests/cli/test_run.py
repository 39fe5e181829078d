"""`penstock run` and `query --follow` as processes of their own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from cli.test_look import NETWORK
from runtime.streams import csv_rows, put


def penstock(*arguments, **options):
    command = [sys.executable, "-m", "penstock.cli.main", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **options
    )


def finish(process, timeout=240):
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err


@pytest.fixture
def net(tmp_path):
    path = tmp_path / "tolls.py"
    path.write_text(NETWORK.replace("{folder}", str(tmp_path)))
    put(tmp_path / "cars", "0", [(n, n % 2, n) for n in range(100)])
    return path


@pytest.mark.slow
def test_run_once(net, tmp_path):
    put(tmp_path / "cars", "1", [(100, 1, "x")])
    code, out, err = finish(
        penstock(
            "run",
            net,
            "--once",
            "--close",
            "--checkpoint",
            tmp_path / "checkpoint",
            "--train",
            30,
            cwd=tmp_path,
        )
    )
    assert code == 0, err
    assert sorted((r["k"], r["n"]) for r in csv_rows(tmp_path / "out", "k INT, time STRING, n INT")) == [
        ("0", "15"),
        ("0", "30"),
        ("1", "15"),
        ("1", "30"),
    ]
    assert "101 tuples in" in out
    assert "out: latency p50" in out
    assert f"dead letters: 1; see: penstock dead-letters {tmp_path / 'checkpoint'}" in out


@pytest.mark.slow
def test_dead_letter_limit_fails_the_run(net, tmp_path):
    put(tmp_path / "cars", "1", [(100, 1, "x"), (100, 1, "y")])
    code, _, err = finish(
        penstock("run", net, "--once", "--dead-letter-limit", 1, "--checkpoint", tmp_path / "checkpoint")
    )
    assert code == 2
    assert "2 tuples went to the dead letters, the limit is 1; most often: malformed" in err
    assert "Traceback" not in err


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_follow_while_a_run_goes_on(net, tmp_path):
    place = tmp_path / "checkpoint"
    run = penstock("run", net, "--quiet", "--checkpoint", place)
    follow = None
    try:
        end = time.monotonic() + 200
        while not list((place / "points" / "minutes").glob("**/*.parquet")) and time.monotonic() < end:
            assert run.poll() is None, run.communicate()[1]
            time.sleep(0.2)
        follow = penstock(
            "query", place, "SELECT k, n FROM minutes WHERE k = 1", "--follow", "--format", "json"
        )
        first = follow.stdout.readline()
        assert json.loads(first) == {"k": 1, "n": 30}
        put(tmp_path / "cars", "1", [(n, n % 2, 50) for n in range(100, 300)])
        lines = [json.loads(follow.stdout.readline()) for _ in range(3)]
        assert [line["k"] for line in lines] == [1, 1, 1]
        follow.send_signal(signal.SIGINT)
        code, rest, err = finish(follow, 60)
        assert code == 0, err
        assert rest == ""
        assert "Traceback" not in err
        run.send_signal(signal.SIGINT)
        code, out, err = finish(run, 60)
        assert code == 0, err
        assert f"stopped; the same command goes on from {place}" in out
        assert "Traceback" not in err
    finally:
        for process in (run, follow):
            if process is not None and process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def descendants(pid):
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


def until(condition, process, seconds=200):
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, "it has ended"
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.1)


def java_of(pid):
    """The JVMs that a process has started, directly or not."""
    pids = []
    for child in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # Spark runs small programs all the time
            pids += [child.pid] if "java" in child.name().lower() else []
    return pids


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_restart_outlives_worker_and_jvm(net, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    log = tmp_path / "log.txt"
    command = [sys.executable, "-m", "penstock.cli.main", "run", str(net), "--restart", "--quiet"]
    with log.open("w") as said:
        run = subprocess.Popen(
            [*command, "--checkpoint", str(checkpoint)], stdout=said, stderr=said, start_new_session=True
        )
    try:
        until(lambda: list((tmp_path / "out").glob("*.csv")), run)
        (jvm,) = java_of(run.pid)
        for worker in psutil.Process(jvm).children(recursive=True):  # the daemon and its workers
            with contextlib.suppress(psutil.NoSuchProcess):
                worker.kill()
        put(tmp_path / "cars", "1", [(n, n % 2, n % 50) for n in range(100, 200)])
        before = len(list((tmp_path / "out").glob("*.csv")))
        until(lambda: len(list((tmp_path / "out").glob("*.csv"))) > before, run)
        assert java_of(run.pid) == [jvm], f"a lost worker must not end the run: {log.read_text()}"
        os.kill(jvm, signal.SIGKILL)
        put(tmp_path / "cars", "2", [(n, n % 2, n % 50) for n in range(200, 300)])
        before = len(list((tmp_path / "out").glob("*.csv")))
        until(lambda: len(list((tmp_path / "out").glob("*.csv"))) > before, run)
        run.send_signal(signal.SIGTERM)
        code = run.wait(timeout=240)
    finally:
        for pid in [*descendants(run.pid), run.pid] if run.poll() is None else []:
            os.kill(pid, signal.SIGKILL)
    err = log.read_text()
    assert code == 0, err
    assert "ended with exit code 1; starting again in 1 s" in err
    assert "Spark's JVM is gone" in err
    assert "Traceback" not in err
    windows = csv_rows(tmp_path / "out", "k INT, time STRING, n INT")
    assert len({(row["k"], row["time"]) for row in windows}) == len(windows), "a window came twice"
    assert len(windows) == 2 * 4, "minutes 0 to 3 of two keys; the last one is open"


MENDED = """
network: mended
boxes:
  cars:
    source: {{csv: {folder}/cars, schema: "time TIMESTAMP, k {type}", options: {{settle: "0"}}}}
    timestamp: time
  out:
    output: {{csv: {folder}/out}}
    from: cars
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_refused_lines_go_in_again(tmp_path):
    net, checkpoint = tmp_path / "net.yaml", tmp_path / "checkpoint"

    def command(*words):
        return finish(penstock(*words, cwd=tmp_path))

    net.write_text(MENDED.format(folder=tmp_path, type="INT"))
    put(tmp_path / "cars", "0", [(0, "x"), (1, "y")])
    code, _, err = command("run", net, "--once", "--quiet", "--checkpoint", checkpoint)
    assert code == 3, err
    assert "every tuple of this run was refused: 2 of 2" in err
    net.write_text(MENDED.format(folder=tmp_path, type="STRING"))
    for given in ("2 lines given in again", "nothing to give in again"):
        code, out, err = command("dead-letters", checkpoint, "--replay", net)
        assert code == 0, err
        assert given in out + err
    code, _, err = command("run", net, "--once", "--quiet", "--checkpoint", checkpoint)
    assert code == 0, err
    assert sorted(row["k"] for row in csv_rows(tmp_path / "out", "time STRING, k STRING")) == ["x", "y"]
