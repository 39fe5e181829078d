"""The wheel, installed into empty environments as anybody would: first alone, then with Spark."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOISE = re.compile(r"WARN|log4j|log level|nanobind|Traceback|hostname")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


def run(*command, **options):
    """A command that must succeed; nothing of this interpreter's own paths leaks into it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in command],
        env={**environment, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
        **options,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """The sdist, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, cwd=ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(distributions):
    return next(distributions.glob("penstock-*.whl"))


class Environment:
    """An empty virtual environment."""

    def __init__(self, folder):
        self.folder = folder
        self.bin = folder / "venv/bin"
        run(sys.executable, "-m", "venv", folder / "venv")

    def install(self, *what):
        run(self.bin / "pip", "install", "--quiet", "--disable-pip-version-check", *what)

    def packages(self):
        return run(self.bin / "pip", "list", "--format", "freeze").stdout

    def penstock(self, *words):
        """A command: it may show progress, but nothing that its libraries have to say of themselves."""
        done = run(self.bin / "penstock", *words, cwd=self.folder)
        assert not NOISE.search(done.stdout + done.stderr), done.stderr
        return done.stdout


def test_sdist_and_wheel_hold_what_they_should(distributions):
    import tarfile
    import zipfile

    with zipfile.ZipFile(next(distributions.glob("*.whl"))) as wheel:
        names = wheel.namelist()
        java = wheel.getinfo("penstock/engine/spark/jvm/bin/java")
    assert "penstock/engine/spark/jvm/log4j2.properties" in names
    assert "penstock/py.typed" in names
    assert java.external_attr >> 16 & 0o111, "the wrapper of java must stay executable"
    with tarfile.open(next(distributions.glob("*.tar.gz"))) as sdist:
        inside = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"README.md", "LICENSE", "src/penstock/__init__.py", "docs/tutorial.md"} <= inside
    assert not {name for name in inside if name.startswith("benchmarks/results/")}


def test_the_core_alone(wheel, tmp_path):
    """Networks, the reference engine and the Linear Road kit, without Spark."""
    core = Environment(tmp_path)
    core.install(wheel)
    assert "pyspark" not in core.packages()

    net = ROOT / "examples/traffic.yaml"
    assert core.penstock("check", net).startswith("traffic: sound.")
    assert "segment_minutes" in core.penstock("explain", net)
    assert core.penstock("draw", net, "-o", "net.svg") == "wrote net.svg\n"
    core.penstock("lr", "generate", "--xways", "0.5", "--minutes", "2", "--out", "city")
    core.penstock("lr", "history", "--input", "city", "--days", "1", "--out", "past")
    core.penstock("lr", "validate", "--input", "city", "--history", "past", "--expected", "answers.csv")
    assert (tmp_path / "answers.csv").stat().st_size > 0


def test_the_demo_from_the_wheel(wheel, tmp_path):
    """With Spark: Linear Road from end to end."""
    whole = Environment(tmp_path)
    whole.install(f"{wheel}[spark]")
    whole.penstock("demo", "--short", "--out", "demo")
    assert "<svg" in (tmp_path / "demo/report.html").read_text()
