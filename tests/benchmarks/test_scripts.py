"""Every benchmark can be imported, says what its figure is and how long it takes, and records through the one
writer.
"""

from __future__ import annotations

import argparse
import ast
import json
from importlib import import_module
from pathlib import Path

import pytest
from benchmarks.common import results
from benchmarks.common.results import recording

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(path for path in (ROOT / "benchmarks").glob("*/*.py") if path.name != "__init__.py")
SCRIPTS = [path for path in MODULES if "with recording(" in path.read_text(encoding="utf-8")]
KEYS = {
    "benchmark", "command", "commit", "dirty", "started", "seconds", "machine", "versions", "load", "quick",
    "seed", "config", "outcome", "failure", "wrong", "warm_up", "figures",
}  # fmt: skip


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


@pytest.fixture
def chosen(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    monkeypatch.setattr(results.facts, "ROOT", tmp_path)
    return argparse.Namespace(quick=True, seed=7, no_result=False)


def written(folder: Path) -> dict:
    (file,) = folder.glob("*/*.json")
    assert file.parent.name.isdigit()
    assert file.stem.startswith("engine-test-")
    return json.loads(file.read_text())


def test_every_module_can_be_imported():
    for path in MODULES:
        import_module(name_of(path))


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_a_script_says_what_it_measures(path):
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert "\nFigure: " in doc
    assert "\nTime: " in doc
    assert "options(__doc__)" in path.read_text(encoding="utf-8")


def test_the_steps_of_the_profile_are_functions_that_exist():
    for module, name in import_module("benchmarks.linear_road.profile").STEPS.values():
        assert f"def {name}(" in Path(import_module(module).__file__).read_text(encoding="utf-8"), module


def test_a_result_holds_everything(chosen, tmp_path):
    with recording("engine-test", chosen, rows=3) as record:
        record.warm_up = {"seconds": 1.5}
        record.figures = {"ratio": 0.123456789, "none": float("nan")}
    result = written(tmp_path)
    assert set(result) == KEYS
    assert record.exit_code == 0
    assert result["outcome"] == "ok"
    assert result["figures"] == {"ratio": 0.12346, "none": None}
    assert (result["seed"], result["config"]) == (7, {"rows": 3})
    assert {"cores", "memory_gb", "processor", "kernel"} <= set(result["machine"])
    assert {"python", "pyspark", "java", "numpy", "pyarrow", "numba", "duckdb"} <= set(result["versions"])
    assert set(result["load"]) == {"before", "after"}


def test_a_failure_is_recorded_with_what_was_measured(chosen, tmp_path):
    def fail() -> None:
        with recording("engine-test", chosen) as record:
            record.figures = {"done": 1}
            raise ZeroDivisionError("division by zero")

    with pytest.raises(ZeroDivisionError):
        fail()
    result = written(tmp_path)
    assert result["outcome"] == "failed"
    assert result["failure"] == "ZeroDivisionError: division by zero"
    assert result["figures"] == {"done": 1}


def test_wrong_answers_end_with_1(chosen, tmp_path, capsys):
    with recording("engine-test", chosen) as record:
        record.found_wrong("two rows differ")
    assert record.exit_code == 1
    assert written(tmp_path)["wrong"] == ["two rows differ"]
    assert "WRONG: two rows differ" in capsys.readouterr().out


def test_no_result_writes_nothing(chosen, tmp_path):
    chosen.no_result = True
    with recording("engine-test", chosen):
        pass
    assert list(tmp_path.iterdir()) == []


def test_every_result_has_one_form():
    for file in (ROOT / "benchmarks" / "results").glob("*/*.json"):
        result = json.loads(file.read_text(encoding="utf-8"))
        assert set(result) >= KEYS, file
        assert set(result) <= {*KEYS, "written", "converted_from", "note"}, file
        assert file.name.startswith(f"{result['benchmark']}"), file


@pytest.mark.parametrize("name", ["growth", "recovery"])
def test_a_quick_rating_is_small(name, tmp_path, monkeypatch):
    script = import_module(f"benchmarks.linear_road.{name}")
    monkeypatch.setattr("sys.argv", [name, "--quick"])
    plan = script.plan_of(script.parse(), tmp_path)
    assert (plan.base, plan.traffic_minutes, plan.days) == (1, 20, 7)
