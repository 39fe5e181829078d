import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.engine.local import DeadLetter, LocalResult
from penstock.model.errors import PenstockError
from penstock.model.writing.network import Network
from penstock.testing import (
    HandClock,
    assert_same_result,
    assert_same_rows,
    collect,
    crash_at,
    engines,
    rows_source,
    run_network,
    same_rows,
    values,
)
from penstock.testing.crash import parse_plan
from penstock.testing.suite import chosen_engines

SCRIPT = """
from penstock.testing.crash import crash_point
for step in range(3):
    crash_point("other")
    print("step", step, flush=True)
    crash_point("done")
"""


def _run(environment=None):
    return subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False
    )


def test_a_process_dies_the_nth_time_it_reaches_the_point():
    dead = _run(crash_at("done", 2))
    assert dead.returncode == -signal.SIGKILL
    assert dead.stdout.split("\n")[:-1] == ["step 0", "step 1"]


def test_another_point_or_none_does_nothing():
    assert _run(crash_at("elsewhere")).returncode == 0
    assert _run().returncode == 0


@pytest.mark.parametrize("text", [":1", "done:0", "done:-1", "done:x"])
def test_a_plan_that_cannot_be_read(text):
    with pytest.raises(ValueError, match="expected 'point' or 'point:n' with n of 1 or more"):
        parse_plan(text)


def test_crash_points_pull_in_nothing():
    code = "import sys, penstock.testing.crash; print('pyarrow' in sys.modules, 'pyspark' in sys.modules)"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "False False"
    )


def test_the_clock_stands_still_until_moved():
    clock = HandClock(5)
    assert clock.now() == clock.now() == 5
    clock.advance(0.5)
    assert clock.now() == 500_005
    with pytest.raises(ValueError, match="cannot go back by 1000000 us"):
        clock.advance(-1)


def test_same_rows_counts_and_compares_floats_loosely():
    assert same_rows([{"x": 1.0}, {"x": float("nan")}], [{"x": float("nan")}, {"x": 1.0 + 1e-12}])
    assert not same_rows([{"x": 1}, {"x": 1}], [{"x": 1}])
    assert not same_rows([{"x": True}], [{"x": 1}])
    assert not same_rows([{"x": 1}], [{"x": 1.0}])
    assert not same_rows([{"x": None}], [{"x": 0.0}])
    assert not same_rows([{"x": 1}], [{"y": 1}])


def test_differences_are_shown():
    with pytest.raises(AssertionError, match=r"rows differ: 1 too many, 1 missing\n  \+ .*2.*\n  - .*3.*"):
        assert_same_rows([{"x": 1}, {"x": 2}], [{"x": 1}, {"x": 3}])


def test_results_differ_by_dead_letters_too():
    letter = DeadLetter("{}", "late", "s", 3, "s", 0)
    assert_same_result(
        LocalResult({}, {}, [letter]), LocalResult({}, {}, [DeadLetter("", "zu spät", "", 3, "s", 7)])
    )
    with pytest.raises(AssertionError, match="dead letters differ"):
        assert_same_result(LocalResult({}, {}, [letter]), LocalResult())


def _network(sink):
    net = Network("kit")
    net.source("cars", rows_source("v INT")).filter("v > 1").output("fast", to=sink)
    return net


@engines("local")
def test_run_network_and_its_sinks(engine):
    sink = collect()
    result = run_network(_network(sink), [{"cars": [{"v": 1}, {"v": 2}]}, {"cars": [(3,)]}], engine=engine)
    assert values(result.outputs["fast"]) == [(2,), (3,)]
    assert sink.rows == result.outputs["fast"]


def test_engines_are_chosen_by_name():
    assert chosen_engines({}) == ("local",)
    with pytest.raises(PenstockError, match="names no engine 'sparc'\n  hint:     did you mean 'spark'"):
        chosen_engines({"PENSTOCK_ENGINES": "sparc"})
    with pytest.raises(PenstockError, match="no engine 'lokal'\n  hint:     did you mean 'local'"):
        run_network(_network(collect()), [], engine="lokal")


@pytest.mark.slow
def test_the_guide_runs(tmp_path):
    """Every Python block of docs/testing.md that holds a test is run as a test file."""
    text = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
    blocks = [part.split("```")[0] for part in text.split("```python\n")[1:]]
    (tmp_path / "conftest.py").write_text(next(block for block in blocks if "testing.plugin" in block))
    tests = [block for block in blocks if "def test_" in block]
    assert len(tests) >= 3
    for place, block in enumerate(tests):
        (tmp_path / f"test_guide_{place}.py").write_text(block)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout
