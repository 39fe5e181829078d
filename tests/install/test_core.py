"""`pip install penstock` without Spark: what the core gives, and what it says about what it lacks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NET = str(ROOT / "examples/traffic.yaml")

# None in `sys.modules` plays an environment where a package was never installed.
WITHOUT_SPARK = "import sys; sys.modules.update(pyspark=None, py4j=None, pandas=None)\n"
COMMAND = "from penstock.cli.main import app; app()"


def run(program, *words, **environment):
    """A fresh interpreter in which there is no Spark."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK + program, *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--help"], "explain"),
        (["lr", "--help"], "validate"),
        (["standing", "--help"], "serve"),
        (["check", NET], "traffic"),
        (["explain", NET], "segment_minutes"),
        (["draw", NET, "-o", "{out}"], "wrote"),
        (["lr", "generate", "--help"], "expressways"),
    ],
)
def test_commands_of_the_core_need_no_spark(words, says, tmp_path):
    done = run(COMMAND, *(word.format(out=tmp_path / "net.svg") for word in words))
    assert (done.returncode, done.stderr) == (0, "")
    assert says in done.stdout


def test_the_reference_engine_needs_no_spark():
    done = run(
        """
import penstock as ps
from penstock.testing import collect, rows_source, run_network, values
net = ps.Network("n")
cars = net.source("cars", rows_source("time TIMESTAMP, v INT"), timestamp="time")
cars.filter("v > 10").output("fast", to=collect())
print(values(run_network(net, [{"cars": [(1, 2), (2, 30)]}], engine="local").outputs["fast"], "v"))
"""
    )
    assert done.stderr == ""
    assert done.stdout == "[(30,)]\n"


def test_the_linear_road_network_can_be_drawn_without_spark():
    done = run(
        "from penstock.linear_road import road_network; print(len(road_network(None, 'in', 'out').nodes))"
    )
    assert done.stderr == ""
    assert int(done.stdout) > 10


@pytest.mark.parametrize(
    "words",
    [
        ["run", NET, "--once"],
        ["standing", "serve", NET],
    ],
    ids=["run", "standing-serve"],
)
def test_a_command_that_needs_spark_says_what_to_install(words):
    done = run(COMMAND, *words)
    assert done.returncode != 0
    assert "pip install 'penstock[spark]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["Runtime", "standing.StandingQueries"])
def test_a_name_that_needs_spark_says_what_to_install(name):
    done = run(f"import penstock.standing; penstock.{name}")
    assert "MissingPackageError: Running on Spark needs PySpark: pip install 'penstock[spark]'" in done.stderr


def test_a_machine_without_java_is_told_what_to_install(tmp_path, monkeypatch):
    from penstock.engine.spark import java
    from penstock.model.errors import MissingPackageError

    monkeypatch.setattr(java, "_candidates", lambda: iter([tmp_path]))
    with pytest.raises(MissingPackageError, match=r"Spark needs Java 17 or newer.*apt install openjdk-17"):
        java.find_java()


def test_a_java_that_is_too_old_is_passed_over(tmp_path, monkeypatch):
    from penstock.engine.spark import java

    for name, version in (("old", "11.0.2"), ("new", "21.0.1")):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin/java").touch(mode=0o755)
        (tmp_path / name / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="java.base"\n')
    monkeypatch.setattr(java, "_candidates", lambda: iter([tmp_path / "old", tmp_path / "new"]))
    assert java.find_java() == java.Java(tmp_path / "new", 21, has_vector_module=False)


def test_a_folder_is_imported_without_what_networks_are_written_with():
    done = run("from penstock import linear_road; import sys; print('penstock.model.api' in sys.modules)")
    assert (done.stdout, done.stderr) == ("False\n", "")
