"""`penstock check`, `explain`, `draw`: nothing is run.

Errors are text with exit code 2, never a traceback.
"""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from penstock.cli.main import penstock_app

NETWORK = """
import penstock as ps

net = ps.Network("tolls")
cars = net.source("cars", ps.csv("{folder}/cars", schema="time TIMESTAMP, k INT, v INT"), timestamp="time")
by_k = cars.filter("v < 90", name="valid").group_by("k", name="by_k")
minutes = by_k.tumble("1 minute", n="count(*)", name="windows")
point = minutes.connection_point("minutes", key="k")
net.output("out", point.filter("n > 1", name="busy"), to=ps.csv("{folder}/out"))


def made():
    return net
"""


def call(*arguments):
    words = [str(a) for a in arguments]
    result = CliRunner().invoke(penstock_app(words), words)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result


@pytest.fixture
def net(tmp_path):
    path = tmp_path / "tolls.py"
    path.write_text(NETWORK.replace("{folder}", str(tmp_path)))
    return path


@pytest.mark.parametrize("name", ["", ":net", ":made"])
def test_check(net, name):
    result = call("check", f"{net}{name}")
    assert result.exit_code == 0
    assert result.output == (
        "tolls: sound. 1 source(s), 5 box(es) and point(s), 1 output(s), 2 sub-network(s): minutes, out\n"
    )


def test_explain_shows_the_layout(net):
    result = call("explain", net)
    assert result.exit_code == 0
    assert "cars" in result.output.partition("on Spark")[0]
    layout = result.output.partition("on Spark")[2]
    assert "reads cars; writes minutes" in layout
    assert "native: valid, by_k" in layout
    assert "stage (by k): windows" in layout
    assert "reads minutes; writes out" in layout


def test_explain_tells_how_state_is_kept_by_the_durability(tmp_path):
    """Files of a feed may be gone after a power cut, if its writer has not flushed them."""
    path = tmp_path / "fed.py"
    path.write_text(
        "from penstock.testing.columns import SCHEMA, decode\n"
        "import penstock as ps\n"
        "net = ps.Network('fed')\n"
        "feed = ps.feed('in', SCHEMA, decode=decode, keys='road')\n"
        "rows = net.source('rows', feed, timestamp='second', whole=True)\n"
        "rows.group_by('road').tumble('1 minute', n='count(*)').output('out', to=ps.csv('out'))\n"
    )
    given = ("explain", f"{path}:net", "--recovery", "10 seconds")
    assert "snapshots in the background" in call(*given).output
    assert "a delta with every train; the input of 'rows'" in call(*given, "--durability", "power").output
    assert call(*given, "--durability", "storm").exit_code == 2


def test_explain_tells_how_state_is_kept_on_a_cluster(tmp_path, monkeypatch):
    path = tmp_path / "net.yaml"
    path.write_text(
        SHEDDING.replace("    timestamp", "    stays: true\n    timestamp").replace("shed: keys", "")
    )
    given = ("explain", path, "--recovery", "10 seconds", "--durability", "power")
    assert "snapshots in the background" in call(*given, "--master", "local[2]").output
    torn = "a delta with every train; after a power cut, files that a cluster's workers wrote may be torn"
    assert torn in call(*given, "--master", "spark://elsewhere:7077").output
    assert "snapshots in the background" in call(*given[:4], "--master", "spark://elsewhere:7077").output
    monkeypatch.setenv("MASTER", "spark://elsewhere:7077")  # as `penstock run` does without --master
    assert torn in call(*given).output


SHEDDING = """network: n
boxes:
  cars:
    source: {csv: in, schema: "time TIMESTAMP, spd INT"}
    timestamp: time
  tens:
    tumble: 10 seconds
    from: cars
    aggregates: {n: count(*)}
    shed: keys
  means:
    output: {csv: out/means}
    from: tens
    qos: {delay: [[0, 1], [5, 1], [30, 0]], loss: [[0, 0], [100, 1]]}
"""


def test_explain_tells_what_may_be_shed_and_why_not(tmp_path):
    path = tmp_path / "net.yaml"
    alarms = "  alarms:\n    output: {csv: out/alarms}\n    from: cars\n"
    path.write_text(SHEDDING.replace("    shed: keys\n", "") + alarms)
    shown = call("explain", path).output.partition("under overload (--qos)\n")[2]
    assert shown.splitlines() == [
        "  cars: nothing is shed: output 'alarms' has no loss graph",
        "  cars->tens: windows may be shed",
    ]


@pytest.mark.parametrize("command", [("check",), ("run", "--qos")])
def test_a_grain_that_no_place_can_have_is_refused(tmp_path, command):
    path = tmp_path / "net.yaml"
    path.write_text(SHEDDING)
    words, options = command[:1], command[1:]
    result = call(*words, path, *options)
    assert result.exit_code == 2
    assert result.output.startswith(f"{path}:6: box 'tens': shed: keys, but nothing in front of this tumble")


@pytest.mark.parametrize(
    ("name", "begins"), [("net.svg", "<svg"), ("net.mmd", "flowchart"), ("net.html", "<")]
)
def test_draw(net, tmp_path, name, begins):
    result = call("draw", net, "-o", tmp_path / name)
    assert result.exit_code == 0
    assert result.output == f"wrote {tmp_path / name}\n"
    assert begins in (tmp_path / name).read_text()[:200]


def test_draw_and_check_yaml(net, tmp_path):
    from penstock.cli.load import load_network
    from penstock.model.text.yaml_form import to_yaml

    path = tmp_path / "tolls.yaml"
    path.write_text(to_yaml(load_network(str(net))))
    assert call("check", path).output == call("check", net).output


FOLDER = object()
WRONG = {
    "nowhere.py": (None, "there is no file"),
    "net.txt": ("x", "is neither a Python nor a YAML file\n  expected: file.py:name or a YAML file"),
    "none.py": ("x = 1\n", "has no Network at its top level"),
    "column.py": (
        NETWORK.replace("v < 90", "speed < 90"),
        "box 'valid': predicate 'speed < 90': unknown column 'speed'",
    ),
    "broken.yaml": ("network: [", "broken.yaml"),
    "latin.yaml": (
        "network: n\n# \xff\n".encode("latin-1"),
        "latin.yaml:2: not UTF-8\n  found:    byte 0xff",
    ),
    "zero.yaml": ("network: n\n\0", "zero.yaml:2: not YAML\n  found:    the character #0"),
    "folder.yaml": (FOLDER, "folder.yaml:1: a directory"),
    "folder.py": (FOLDER, "folder.py is a directory"),
    "syntax.py": ("x = 1\ndef f(:\n", "syntax.py:2: no Python: invalid syntax\n  found:    def f(:"),
    "raises.py": (
        "x = 0\ny = 1 / x\n",
        "raises.py:2: ZeroDivisionError: division by zero\n  found:    y = 1 / x",
    ),
    "deeper.py": (
        "import json\n\njson.loads('{')\n",
        "deeper.py:3: JSONDecodeError: Expecting property name",
    ),
    "leaves.py": ("import sys\nsys.exit(0)\n", "leaves.py:2: SystemExit: 0"),
    "number.py": (
        NETWORK.replace('n="count(*)"', "n=1"),
        "box 'windows': n: wrong kind of value\n  found:    1 (int)",
    ),
}


@pytest.mark.parametrize("command", ["check", "explain", "draw", "run"])
@pytest.mark.parametrize("name", WRONG)
def test_errors_are_text(tmp_path, name, command):
    text, message = WRONG[name]
    if text is FOLDER:
        (tmp_path / name).mkdir()
    elif isinstance(text, bytes):
        (tmp_path / name).write_bytes(text)
    elif text is not None:
        (tmp_path / name).write_text(text)
    result = call(command, tmp_path / name)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


def test_what_a_function_of_the_file_raises(tmp_path):
    path = tmp_path / "made.py"
    path.write_text("def made():\n    return {}['x']\n")
    result = call("check", f"{path}:made")
    assert (result.exit_code, result.output) == (
        2,
        f"{path}:2: KeyError: 'x'\n  found:    return {{}}['x']\n",
    )


def test_a_file_with_a_colon_in_its_name(net):
    odd = net.rename(net.with_name("a:b.py"))
    assert call("check", odd).exit_code == 0
    assert call("check", f"{odd}:net").exit_code == 0


def test_a_name_that_is_not_there(net):
    result = call("check", f"{net}:nett")
    assert result.exit_code == 2
    assert "has no Network named 'nett'\n  found:    net\n  hint:     did you mean 'net'" in result.output


def test_draw_to_something_else(net, tmp_path):
    result = call("draw", net, "-o", tmp_path / "net.png")
    assert result.exit_code == 2
    assert result.output == "cannot draw to '.png'\n  expected: one of: .svg, .mmd, .html\n"


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT * FROM minutes", "is no checkpoint: there is no such directory"),
    ],
)
def test_query_of_nothing(tmp_path, sql, message):
    result = call("query", tmp_path / "nowhere", sql)
    assert result.exit_code == 2
    assert message in result.output


def test_version():
    assert call("--version").output.startswith("penstock ")


def test_a_grain_that_cannot_be_had_is_no_sound_network(tmp_path):
    path = tmp_path / "net.yaml"
    path.write_text(
        f"""network: n
boxes:
  cars:
    source: {{csv: {tmp_path}/in, schema: "time TIMESTAMP, spd INT"}}
    timestamp: time
  tens:
    tumble: 10 seconds
    aggregates: {{speed: avg(spd)}}
    from: cars
    shed: keys
  means:
    output: {{csv: {tmp_path}/out}}
    from: tens
    qos: {{delay: [[0, 1], [5, 1], [30, 0]], loss: [[0, 0], [50, 0.9], [100, 1]]}}
"""
    )
    refused = call("check", path)
    assert refused.exit_code == 2
    assert (
        "net.yaml:6: box 'tens': shed: keys, but nothing in front of this tumble can be shed so"
        in refused.output
    )
    assert "at 'cars': " in refused.output
    path.write_text(path.read_text().replace("shed: keys", "shed: windows"))
    assert call("check", path).exit_code == 0
