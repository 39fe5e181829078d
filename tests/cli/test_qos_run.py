"""`penstock qos show`, `why`, `map`; the options of `run --qos`; `control:` in YAML. No Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import penstock as ps
from penstock.cli.main import penstock_app
from penstock.cli.qos.report_file import has_ended
from penstock.control import options
from penstock.control.control import REPORT, ROAD_MAP
from penstock.control.options import control_for
from penstock.control.report import (
    OutputReport,
    QosReport,
    SourceReport,
    SubnetworkReport,
    ValveReport,
)
from penstock.model.control_settings import ControlSettings
from penstock.model.errors import PenstockError
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.decisions import Decisions
from penstock.store.catalog.record_types import Decision
from penstock.store.ownership import owned, sign_of_life

QOS_REPORT = QosReport(
    (OutputReport("scores", 2.0, 0.45, 0.8, 0.4, 1.9, 0.3, True, None), OutputReport("alarms")),
    (SourceReport("cars", 1000, 700, 300, 5000.0, 1500.0, 42, 0.7),),
    (ValveReport("cars->score", 0.3, "tuples"),),
    (SubnetworkReport("alarms", 0.5, 42, True),),
    3.1,
    2.0,
)
SHOWN = """\
as of N s ago; the run has ended
load 3.10 of 2.00 CPU-s a second
scores: utility 0.45 now, 0.80 in the last minute; delay p50 0.40 s, p99 1.90 s; share 30 %; \
in its zone; inexact
alarms: nothing was due; share 100 %; exact since 1970-01-01T00:00:00Z
cars: 1,000 offered (5,000/s), 700 let in, 300 shed (1,500/s); waiting 42, the oldest for 0.7 s
valve at cars->score: keeps 30 % of tuples
alarms: priority 0.5, waiting 42, no train runs
"""
STILL = replace(QOS_REPORT, subnetworks=(SubnetworkReport("alarms", 0.5, 42, False),))
ENDED = STILL.plain() | {"as_of": 100.0, "ended": True, "without_control": False}
WHY = """\
1970-01-01T00:01:40Z scores to 30 %: 440,000/s offered (until 1970-01-01T00:02:00Z)
  expected load 1.31; realised load 1.29
1970-01-01T00:02:00Z scores open again
  expected load 0.9; realised never measured
1970-01-01T00:02:05Z bulk: trains of at most 80,000 tuples
"""


def penstock(*words):
    command = [str(word) for word in words]
    return CliRunner().invoke(penstock_app(command), command)


@pytest.fixture
def checkpoint(tmp_path):
    catalog = Catalog(tmp_path / "catalog.db")
    decisions = Decisions(catalog)
    decisions.keep_state(REPORT, 100.0, QOS_REPORT.plain())
    rows = [
        {"load": 1.0, "lost": 0.0, "shares": {"alarms": 1.0, "scores": 1.0}},
        {"load": 0.4, "lost": 0.3, "shares": {"alarms": 1.0, "scores": 0.2}},
    ]
    decisions.keep_state(ROAD_MAP, 100.0, {"load": 3.0, "rows": rows})
    shed = Decision(100.0, "shed", "scores", "scores to 30 %: 440,000/s offered", ("scores",))
    shed = decisions.record(
        Decision(**{**vars(shed), "numbers": {"share": 0.3}, "expected": {"load": 1.31}, "until": 120.0})
    )
    decisions.realised(shed.id, {"load": 1.29})
    decisions.record(Decision(120.0, "open", "scores", "scores open again", ("scores",), {}, {"load": 0.9}))
    decisions.record(Decision(125.0, "train", "bulk", "bulk: trains of at most 80,000 tuples"))
    catalog.close()
    return tmp_path


def test_show(checkpoint):
    shown = penstock("qos", "show", checkpoint)
    first, _, rest = shown.output.partition("\n")
    assert first.startswith("as of ")
    assert rest == SHOWN.partition("\n")[2]
    assert json.loads(penstock("qos", "show", checkpoint, "--format", "json").output) == ENDED


@pytest.mark.timeout(30)
def test_following_a_run_that_has_ended_comes_to_an_end(checkpoint):
    shown = penstock("qos", "show", checkpoint, "--follow")
    assert shown.exit_code == 0
    assert shown.stdout.count("load 3.10 of 2.00") == 1
    plain = penstock("qos", "show", checkpoint, "--follow", "--format", "json")
    assert json.loads(plain.stdout) == ENDED
    assert plain.stderr == "the run has ended\n"


def test_a_run_that_is_late_with_its_report_has_not_ended(checkpoint):
    """Its owner has not said so, and it may be busy."""
    with owned(checkpoint) as owner:
        now = time.time()
        began(checkpoint, owner, now - 600)
        assert [has_ended(checkpoint, now - ago) for ago in (0, 10, 60)] == [False, False, True]
    assert has_ended(checkpoint, now)


def test_a_run_that_has_just_begun_has_not_ended(checkpoint):
    """The last report is that of the run before: Spark starts before control reports."""
    with owned(checkpoint) as owner:
        now = time.time()
        for ago, ended in ((0, False), (20, False), (40, True)):
            began(checkpoint, owner, now - ago)
            assert has_ended(checkpoint, now - 60) is ended


@pytest.mark.parametrize(
    ("ago", "said"),
    [
        (10, "; the run has ended; another has begun, and tells nothing yet"),
        (40, "; the run has ended; a run without control is going on"),
    ],
)
def test_what_a_run_before_has_told_is_not_taken_for_now(checkpoint, ago, said):
    with owned(checkpoint) as owner:
        began(checkpoint, owner, time.time() - ago)
        for command in ("show", "map"):
            assert penstock("qos", command, checkpoint).output.partition("\n")[0].endswith(said)
        assert "a train runs" not in penstock("qos", "show", checkpoint).output
        told = json.loads(penstock("qos", "show", checkpoint, "--format", "json").output)
    assert (told["without_control"], told["ended"]) == (ago > 30, ago > 30)
    assert told["subnetworks"][0]["running"] is False


def test_a_run_that_tells_is_shown_as_it_is(checkpoint):
    with owned(checkpoint):
        catalog = Catalog(checkpoint / "catalog.db")
        Decisions(catalog).keep_state(REPORT, time.time() + 1, QOS_REPORT.plain())
        catalog.close()
        told = json.loads(penstock("qos", "show", checkpoint, "--format", "json").output)
        assert (told["ended"], told["subnetworks"][0]["running"]) == (False, True)
        assert "as of" not in penstock("qos", "show", checkpoint).output


def test_a_run_that_was_killed_has_ended_at_once(checkpoint):
    dying = "import os, sys; from pathlib import Path; from penstock.store.ownership import own"
    dying += "; own(Path(sys.argv[1])); os._exit(9)"
    subprocess.run([sys.executable, "-c", dying, str(checkpoint)], check=False)
    assert has_ended(checkpoint, time.time() + 1)
    sign = sign_of_life(checkpoint)
    assert sign.alive is False
    assert sign == replace(sign, alive=True), "who waits for its counter must not take its death for life"


def began(checkpoint, owner, at):
    os.utime(checkpoint / "owners" / f"{owner.epoch:06d}.json", (at, at))


def test_why(checkpoint):
    assert penstock("qos", "why", checkpoint).output == WHY
    assert "trains" not in penstock("qos", "why", checkpoint, "scores").output
    at = penstock("qos", "why", checkpoint, "--at", "1970-01-01T00:01:50Z").output
    assert at.startswith("1970-01-01T00:01:40Z scores to 30 %")
    assert penstock("qos", "why", checkpoint, "--at", "50").output == "no decision was in force at 50\n"
    plain = json.loads(penstock("qos", "why", checkpoint, "--format", "json").output)
    assert plain[0] == {
        "time": 100.0,
        "kind": "shed",
        "subject": "scores",
        "sentence": "scores to 30 %: 440,000/s offered",
        "outputs": ["scores"],
        "numbers": {"share": 0.3},
        "expected": {"load": 1.31},
        "realised": {"load": 1.29},
        "until": 120.0,
        "id": 1,
    }


def test_why_knows_what_show_lists(checkpoint):
    """An attached query is part of no network, and nothing may have been decided about it yet."""
    assert penstock("qos", "why", checkpoint, "alarms").output == "no decision\n"


def test_map(checkpoint):
    first, _, rest = penstock("qos", "map", checkpoint).output.partition("\n")
    assert first.startswith("as of ")
    assert first.endswith(" s ago; the run has ended")
    assert rest == (
        "load 100 % (3.00 CPU-s a second): nothing is dropped\n"
        "load  40 % (1.20 CPU-s a second): scores 20 %; costs 0.3 utility\n"
    )
    plain = json.loads(penstock("qos", "map", checkpoint, "--format", "json").output)
    assert (plain["time"], len(plain["rows"])) == (100.0, 2)


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ({}, "nothing may be shed: no output has a loss graph"),
        ({"shed": False, "why": {"cars": "output 'alarms' has no loss graph"}}, "was told so (--no-shed"),
        (
            {"shed": True, "why": dict.fromkeys(("cars", "cars->fast"), "output 'alarms' has no loss graph")},
            "nothing is shed at cars, cars->fast: output 'alarms' has no loss graph",
        ),
    ],
)
def test_map_says_why_nothing_may_be_shed(checkpoint, kept, said):
    decisions = Decisions(Catalog(checkpoint / "catalog.db"))
    rows = [{"load": 1.0, "lost": 0.0, "shares": {"alarms": 1.0}}]
    decisions.keep_state(ROAD_MAP, 100.0, {"load": 3.0, "rows": rows, **kept})
    _, _, told = penstock("qos", "map", checkpoint).output.splitlines()
    assert said in told


@pytest.mark.parametrize("command", ["show", "why", "map"])
def test_what_cannot_be_shown_is_refused_in_a_sentence(tmp_path, command):
    missing = penstock("qos", command, tmp_path / "nowhere")
    assert (missing.exit_code, "is no checkpoint" in missing.output) == (2, True)
    Catalog(tmp_path / "catalog.db").close()
    without = penstock("qos", command, tmp_path)
    assert (without.exit_code, "was never run under control" in without.output) == (2, True)
    assert "penstock run NET --qos" in without.output
    form = penstock("qos", command, tmp_path, "--format", "xml")
    assert (form.exit_code, "no format 'xml'" in form.output) == (2, True)


def test_a_catalog_of_an_older_version_is_refused_in_a_sentence(tmp_path):
    import sqlite3

    db = sqlite3.connect(tmp_path / "catalog.db")
    db.execute("PRAGMA user_version = 5")
    db.close()
    refused = penstock("qos", "show", tmp_path)
    assert refused.exit_code == 2
    assert "was written by another version" in refused.output
    assert "Traceback" not in refused.output


def test_unknown_outputs_and_times_are_refused(checkpoint):
    output = penstock("qos", "why", checkpoint, "score")
    assert (output.exit_code, "no output 'score'" in output.output, "scores" in output.output) == (
        2,
        True,
        True,
    )
    for text in ("noon", "nan", "inf"):
        at = penstock("qos", "why", checkpoint, "--at", text)
        assert (at.exit_code, f"--at {text}: no time" in at.output) == (2, True)


YAML = """network: n
control: {headroom: 0.8, priority: feedback, shed: false}
boxes:
  ticks:
    source: {rate: 5}
  all:
    output: {console: 20}
    from: ticks
"""


def test_control_in_yaml_both_ways():
    net = ps.from_yaml(YAML)
    assert net.control == ControlSettings(0.8, "feedback", shed=False)
    assert ps.to_yaml(net) == YAML
    assert ps.from_yaml(ps.to_yaml(net)) == net
    plain = ps.from_yaml(YAML.replace("control: {headroom: 0.8, priority: feedback, shed: false}\n", ""))
    assert plain != net
    assert plain.control is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{headroom: 1.5}", "the headroom is out of range"),
        ("{priority: stat}", "no priority 'stat'"),
        ("{shed: perhaps}", "shed: is neither true nor false"),
        ("{sched: true}", "unknown key 'sched'"),
    ],
)
def test_bad_control_in_yaml_names_its_line(text, said):
    with pytest.raises(PenstockError, match=r"<yaml>:2: .*" + said):
        ps.from_yaml(YAML.replace("{headroom: 0.8, priority: feedback, shed: false}", text))


def test_options_count_before_the_text_of_the_network():
    net = ps.from_yaml(YAML)
    assert control_for(net, qos=False).settings == net.control
    changed = control_for(net, True, 0.5, "fifo", observe=True)
    assert changed.settings == ControlSettings(0.5, "fifo", shed=False, observe=True)
    away = ps.from_yaml(YAML.replace("shed: false", "shed: false, optimize: true, observe: true"))
    back = control_for(away, False, shed=True, observe=False, optimize=False)
    assert back.settings == ControlSettings(0.8, "feedback")
    net.control = None
    assert control_for(net, qos=False) is None
    with pytest.raises(PenstockError, match="--priority has no effect without --qos"):
        control_for(net, False, None, "fifo")


def test_run_refuses_bad_options_before_anything_starts(tmp_path):
    (tmp_path / "net.yaml").write_text(YAML.replace("control", "# control"))

    def run(*words):
        return penstock("run", tmp_path / "net.yaml", "--checkpoint", tmp_path / "cp", *words)

    assert run("--qos", "--priority", "stat").output == (
        "no priority 'stat'\n"
        "  expected: one of: state, feedback, round-robin, fifo\n"
        "  hint:     did you mean 'state'?\n"
    )
    assert run("--qos", "--headroom", "2").output == (
        "the headroom is out of range\n  found:    2\n  expected: above 0, up to 1\n"
    )
    assert "--observe has no effect without --qos" in run("--observe").output
    assert "--no-shed has no effect without --qos" in run("--no-shed").output
    impossible = """
    qos: {delay: [[0, 1], [0.05, 1], [1, 0]]}
"""
    (tmp_path / "net.yaml").write_text(YAML.replace("control", "# control") + impossible.lstrip("\n"))
    refused = run("--qos")
    assert (refused.exit_code, "all cannot be good at any rate" in refused.output) == (2, True)
    assert "a delay of at least 0.12 s" in refused.output
    assert not (tmp_path / "cp").exists()


def test_options_that_take_back_what_the_network_says_reach_the_run(tmp_path, monkeypatch):
    taken = []

    def kept(network, *settings, **options):
        taken.append(options)
        raise PenstockError("far enough")

    monkeypatch.setattr(options, "control_for", kept)
    (tmp_path / "net.yaml").write_text(YAML)
    for words in ((), ("--shed", "--no-observe", "--no-optimize"), ("--no-shed", "--observe", "--optimize")):
        assert "far enough" in penstock("run", tmp_path / "net.yaml", *words).output
    assert [tuple(each.values()) for each in taken] == [
        (None, None, None),
        (True, False, False),
        (False, True, True),
    ]
