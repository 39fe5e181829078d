"""The examples do what they say."""

from __future__ import annotations

import importlib.util
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from cli.test_look import call
from penstock.cli.load import load_network
from penstock.model.text.yaml_form import from_yaml, to_yaml
from penstock.model.writing.network import Network
from runtime.streams import parquet_rows

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name, *arguments, cwd):
    command = [sys.executable, str(EXAMPLES / name), *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stderr
    return done.stdout


def test_every_example_has_a_test():
    tested = {
        "linear_road.py",
        "sensors.py",
        "crossings.py",
        "traffic.py",
        "traffic.yaml",
        "standing.py",
        "overload.py",
    }
    assert {p.name for p in EXAMPLES.iterdir() if p.suffix in (".py", ".yaml")} == tested


def test_the_text_form_is_sound_and_comes_back():
    result = call("check", EXAMPLES / "traffic.yaml")
    assert result.exit_code == 0
    assert result.output.startswith("traffic: sound.")
    net = from_yaml(EXAMPLES / "traffic.yaml")
    assert isinstance(net, Network)
    assert from_yaml(to_yaml(net)) == net


# The long ones would not fit into half an hour with all other slow tests.
soak_only = pytest.mark.skipif(os.environ.get("PENSTOCK_SOAK") != "1", reason="in `make soak` only")


@pytest.mark.slow
@pytest.mark.timeout(500)
@soak_only
def test_linear_road(tmp_path):
    said = run("linear_road.py", tmp_path / "road", cwd=tmp_path)
    assert "toll notice: " in said
    answers = (tmp_path / "road" / "run" / "answers.csv").read_text().splitlines()
    assert {line[0] for line in answers} >= set("0234")


@pytest.mark.slow
@pytest.mark.timeout(500)
@soak_only
def test_sensors(tmp_path):
    said = run("sensors.py", tmp_path / "demo", cwd=tmp_path)
    assert "it answers from history: " in said
    assert "and goes on live: " in said
    # the doors of sensor 7 are ajar in every fifth minute from the second on: 2, 7, 12, 17, 22, 27
    assert said.count("suspect: ") == 6
    assert said.count(",north") == 6
    assert "30 rows were rubbish" in said
    assert (tmp_path / "demo" / "network.svg").read_text().startswith("<svg")


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_traffic(tmp_path):
    said = run("traffic.py", cwd=tmp_path)
    # segment 3 crawls in every minute that is over; the ad-hoc query at the point sees just that
    seen = [line for line in said.splitlines() if line.startswith("slow now: ")]
    assert len(seen) == 9
    assert all("seg=3" in line for line in seen)
    jams = parquet_rows(tmp_path / "out" / "traffic" / "jams")
    assert [row["seg"] for row in jams] == [3] * 9


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_crossings(tmp_path):
    dice = random.Random(2)
    place, expected, lines = {}, 0, []
    for second in range(0, 300, 30):
        for vid in range(40):
            seg, lane = dice.randrange(3), dice.randrange(5)
            lines.append(f"0,{second},{vid},50,0,{lane},0,{seg},{seg * 5280},-1,-1,-1,-1,-1,-1")
            if lane != 4:
                expected += vid in place and place[vid] != seg
                place[vid] = seg
    (tmp_path / "rows.dat").write_text("\n".join(lines) + "\n")
    said = run("crossings.py", tmp_path / "rows.dat", tmp_path / "out", cwd=tmp_path)
    assert f"{expected:,} crossings in " in said


def test_python_and_text_are_the_same_network():
    made = load_network(f"{EXAMPLES / 'traffic.py'}:net")
    assert to_yaml(made) == to_yaml(from_yaml(EXAMPLES / "traffic.yaml"))


@pytest.mark.slow
@pytest.mark.timeout(500)
@soak_only
def test_overload(tmp_path):
    said = run("overload.py", tmp_path / "out", "--seconds", 30, cwd=tmp_path)
    assert " tuples a second fit; " in said
    assert (tmp_path / "out" / "overload.svg").read_text().startswith("<?xml")


def imported(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["overload", "sensors"])
def test_an_example_removes_only_what_it_has_made(name, tmp_path):
    module, folder = imported(name), tmp_path / "data"
    (folder / "mine").mkdir(parents=True)
    (folder / "mine.txt").write_text("mine")
    module.make_room(folder)
    (folder / module.MADE[0]).mkdir()
    (folder / module.MADE[0] / "old.csv").write_text("old")
    module.make_room(folder)
    assert {path.name for path in folder.iterdir()} == {"mine", "mine.txt", "checkpoint"}
    (folder / "checkpoint").rmdir()
    (folder / module.MADE[0]).mkdir()
    with pytest.raises(SystemExit, match="is not of this example"):
        module.make_room(folder)
    with pytest.raises(SystemExit, match=r"mine\.txt is no folder"):
        module.make_room(folder / "mine.txt")


@pytest.mark.parametrize("words", [("--seconds", "0"), ("--seconds", "nan"), ("--warm-up", "-1")])
def test_an_overload_without_any_seconds_is_refused(words, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["overload.py", str(tmp_path / "out"), *words])
    with pytest.raises(SystemExit) as left:
        imported("overload").main()
    assert left.value.code == 2
    assert "--seconds must be 1 or more" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_standing(tmp_path):
    said = run("standing.py", cwd=tmp_path)
    # a report every ten seconds, both ends of the five minutes included
    assert said.count("'n': 31") == 2
    assert "did you mean 'reports'?" in said
