"""`penstock qos check` from a checkpoint: sentences, JSON, exit codes, refusals. No Spark."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from penstock.cli.main import penstock_app
from penstock.control.report import REPORT
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.decisions import Decisions
from penstock.store.catalog.record_types import BoxCount, TrainRecord

NET = """
network: n
boxes:
  cars:
    source: {csv: FROM, schema: "time TIMESTAMP, spd INT"}
    timestamp: time
  fast:
    filter: spd > 90
    from: cars
  alarms:
    output: {csv: TO}
    from: fast
    qos:
      delay: [[0.0, 1.0], [2.0, 1.0], [10.0, 0.0]]
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "in").mkdir()
    text = NET.replace("FROM", str(tmp_path / "in")).replace("TO", str(tmp_path / "out"))
    (tmp_path / "net.yaml").write_text(text)
    catalog = Catalog(tmp_path / "checkpoint" / "catalog.db")
    for number, rows in enumerate([1000, 10_000, 50_000, 100_000] * 3):
        took = 0.2 + 2e-6 * rows
        boxes = (BoxCount("fast", rows, rows // 10),)
        catalog.record_train(
            TrainRecord("alarms", number, float(number), number + took, rows, boxes, cpu=0.2 + 4e-6 * rows)
        )
    catalog.close()
    return tmp_path


def check(files, *words):
    command = ["qos", "check", str(files / "net.yaml"), *words]
    return CliRunner().invoke(penstock_app(command), command)


def test_fine_and_not_fine(files):
    fine = check(files, "--rate", "cars=100_000", "--checkpoint", str(files / "checkpoint"), "--cores", "2")
    assert (fine.exit_code, "alarms: fine" in fine.output) == (0, True)
    bad = check(files, "--rate", "cars=450000", "--checkpoint", str(files / "checkpoint"), "--cores", "2")
    assert bad.exit_code == 1
    assert "alarms cannot be good up to 2 s" in bad.output


def test_a_rate_without_end_is_told_in_few_digits(files):
    told = check(files, "--rate", "cars=1e300", "--checkpoint", str(files / "checkpoint"), "--cores", "2")
    assert "alarms: 1e+300 tuples/s" in told.output
    assert max(map(len, told.output.splitlines())) < 200


def test_json_has_every_figure(files):
    words = ("--rate", "cars=450000", "--checkpoint", str(files / "checkpoint"), "--cores", "2")
    answer = json.loads(check(files, *words, "--format", "json").output)
    assert answer["feasible"] is False
    assert answer["load"] == pytest.approx(1.8)
    assert answer["outputs"][0]["name"] == "alarms"
    assert answer["outputs"][0]["usable"] == pytest.approx(0.75)


def test_what_was_shed_does_not_make_a_network_look_cheaper(files):
    """Three of four trains lost most of the tuples that a costly box would have got."""
    catalog = Catalog(files / "checkpoint" / "catalog.db")
    for number, rows in enumerate([20_000, 40_000, 60_000, 80_000] * 8, 12):
        scored = rows if number % 4 == 0 else rows // 10
        boxes = (BoxCount("fast", scored, scored // 10, wall=1.0, cpu=2e-5 * scored),)
        used = 0.2 + 1e-6 * rows + 2e-5 * scored
        catalog.record_train(
            TrainRecord("alarms", number, float(number), number + used / 1.5, rows, boxes, cpu=used)
        )
    Decisions(catalog).keep_state(REPORT, 0.0, {})
    catalog.close()
    words = ("--rate", "cars=100000", "--checkpoint", str(files / "checkpoint"), "--cores", "2")
    answer = json.loads(check(files, *words, "--format", "json").output)
    assert answer["load"] == pytest.approx(2.1, rel=0.1)
    assert answer["feasible"] is False


def test_two_trains_do_not_tell_what_is_fixed(files):
    """The first train of a JVM took 10 s: that is no reason to say that 2 s can never be met."""
    catalog = Catalog(files / "few" / "catalog.db")
    for number, took in enumerate([9.9, 5.1]):
        boxes = (BoxCount("fast", 80_000, 8_000, wall=1.0, cpu=2.4),)
        catalog.record_train(
            TrainRecord("alarms", number, float(number), number + took, 80_000, boxes, cpu=took / 2)
        )
    catalog.close()
    words = ("--rate", "cars=1000", "--checkpoint", str(files / "few"), "--cores", "2")
    answer = check(files, *words)
    assert answer.exit_code == 0, answer.output
    assert "what a train of 'alarms' takes without tuples is not known" in answer.output
    plain = json.loads(check(files, *words, "--format", "json").output)
    assert (plain["subnetworks"][0]["fixed"], plain["outputs"][0]["fixed"]) == (None, None)
    box = next(each["load"] for each in plain["boxes"] if each["box"] == "fast")
    assert plain["subnetworks"][0]["load"] >= box > 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--rate", "car=5", "--checkpoint", "CP"), "no source 'car'"),
        (("--rate", "cars=many", "--checkpoint", "CP"), "--rate cars=many: no rate"),
        (("--rate", "cars=-1", "--checkpoint", "CP"), "no rate"),
        (("--rate", "car=5"), "no source 'car'"),
        (("--rate", "cars=5", "--checkpoint", "CP", "--calibrate"), "costs come from two places"),
        (("--rate", "cars=5", "--checkpoint", "nowhere"), "nowhere is no checkpoint"),
        (
            ("--rate", "cars=5", "--checkpoint", "CP", "--headroom", "1.5"),
            "the headroom is out of range\n  found:    1.5\n",
        ),
        (("--rate", "cars=5", "--checkpoint", "CP", "--format", "xml"), "no format 'xml'"),
        (("--rate", "cars=1", "--rate", "cars=9e5", "--checkpoint", "CP"), "source 'cars' has two rates"),
        (("--rate", "cars=5", "--seconds", "nan"), "a calibration of nan s"),
        (("--rate", "cars=5", "--seconds", "inf"), "a calibration of inf s"),
        (("--rate", "cars=5", "--calibrate", "--seconds", "-5"), "a calibration of -5 s"),
        (
            ("--rate", "cars=5", "--checkpoint", "CP", "--seconds", "5"),
            "--seconds has no effect with --checkpoint",
        ),
    ],
)
def test_refusals(files, words, text):
    given = [str(files / "checkpoint") if word == "CP" else word for word in words]
    answer = check(files, *given)
    assert answer.exit_code == 2
    assert text in answer.output
    assert "Traceback" not in answer.output
