"""Figures for Prometheus: names, labels, histograms that only grow; the Grafana dashboard uses only these."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from urllib.request import urlopen

import pytest

from penstock.control.report import REPORT, OutputReport, QosReport, SourceReport, ValveReport
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.decisions import Decisions
from penstock.store.catalog.record_types import OutputSecond
from web.recorded import NOW, record

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")

from prometheus_client.parser import text_string_to_metric_families

from penstock.http.server import serving
from penstock.web import metrics as metrics_room
from penstock.web.look.watched import RecordedNetwork
from penstock.web.metrics.collector import NetworkCollector, metrics_text
from penstock.web.routes.metrics import metrics_app

ROOT = Path(__file__).parents[2]
DASHBOARD = Path(metrics_room.__file__).parent.parent / "grafana" / "penstock.json"
NAMES = {
    "penstock_box_tuples": {"network", "box", "direction"},
    "penstock_capacity_cores": {"network"},
    "penstock_dead_letters": {"box", "reason"},
    "penstock_load_cores": {"network"},
    "penstock_output_latency_seconds": {"network", "output"},
    "penstock_output_share_ratio": {"network", "output"},
    "penstock_output_utility_ratio": {"network", "output"},
    "penstock_point_bytes": {"network", "point"},
    "penstock_shed_tuples": {"network", "source"},
    "penstock_source_lag_seconds": {"network", "source"},
    "penstock_source_offered_rate": {"network", "source"},
    "penstock_source_waiting_tuples": {"network", "source"},
    "penstock_state_bytes": {"network", "subnetwork"},
    "penstock_train_seconds": {"subnetwork", "phase"},
    "penstock_valve_share_ratio": {"network", "at", "grain"},
}


@pytest.fixture
def collector(tmp_path: Path) -> NetworkCollector:
    (tmp_path / "queries" / "slow" / "state").mkdir(parents=True)
    (tmp_path / "queries" / "slow" / "state" / "part").write_bytes(b"12345")
    return NetworkCollector(RecordedNetwork(record(tmp_path)))


def families(collector: NetworkCollector) -> dict:
    text = metrics_text(collector).decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


def test_names_and_labels_are_those_of_the_documents(collector):
    found = families(collector)
    assert set(found) == set(NAMES)
    for name, labels in NAMES.items():
        assert found[name].documentation
        for sample in found[name].samples:
            assert set(sample.labels) - {"le"} == labels, name


def test_figures(collector):
    text = metrics_text(collector).decode()
    for line in (
        'penstock_box_tuples_total{box="cars",direction="in",network="tolls"} 10.0',
        'penstock_output_utility_ratio{network="tolls",output="slow"} 0.5',
        'penstock_source_lag_seconds{network="tolls",source="cars"} 7.5',
        'penstock_source_offered_rate{network="tolls",source="cars"} 4.0',
        'penstock_source_waiting_tuples{network="tolls",source="cars"} 6.0',
        'penstock_output_share_ratio{network="tolls",output="slow"} 1.0',
        'penstock_state_bytes{network="tolls",subnetwork="slow"} 5.0',
        'penstock_output_latency_seconds_count{network="tolls",output="slow"} 2.0',
        'penstock_train_seconds_sum{phase="run",subnetwork="slow"} 1.0',
    ):
        assert line in text, line


def test_without_control_there_are_no_valves_and_no_load(collector):
    found = families(collector)
    names = ("penstock_valve_share_ratio", "penstock_load_cores", "penstock_capacity_cores")
    assert [found[name].samples for name in names] == [[], [], []], "unknown is no 0"


def test_what_control_tells_is_what_the_console_and_qos_show_tell(collector, tmp_path):
    report = QosReport(
        (OutputReport("slow", share=0.5),),
        (SourceReport("cars", 10, 4, 6, 8.0, 3.0, 42, 0.7),),
        (ValveReport("recent", 0.3, "tuples"), ValveReport("recent", 0.3, "tuples")),
        load=3.1,
        capacity=2.0,
    )
    Decisions(Catalog(tmp_path / "catalog.db")).keep_state(REPORT, float(NOW), report.plain())
    text = metrics_text(collector).decode()
    for line in (
        'penstock_output_share_ratio{network="tolls",output="slow"} 0.5',
        'penstock_source_offered_rate{network="tolls",source="cars"} 8.0',
        'penstock_source_waiting_tuples{network="tolls",source="cars"} 42.0',
        'penstock_valve_share_ratio{at="recent",grain="tuples",network="tolls"} 0.3',
        'penstock_load_cores{network="tolls"} 3.1',
        'penstock_capacity_cores{network="tolls"} 2.0',
    ):
        assert text.count(line) == 1, line


def test_a_histogram_counts_each_second_once(collector, tmp_path):
    metrics_text(collector)
    metrics_text(collector)
    Catalog(tmp_path / "catalog.db").record_second(NOW + 1, [], [OutputSecond("slow", NOW + 1, ((0.2, 5),))])
    samples = families(collector)["penstock_output_latency_seconds"].samples
    counts = {s.labels.get("le"): s.value for s in samples if s.name.endswith("_bucket")}
    assert counts["0.1"] == 0
    assert counts["0.25"] == 5
    assert counts["+Inf"] == 7


def test_every_metric_of_the_dashboard_exists(collector):
    text = metrics_text(collector).decode()
    used = set(re.findall(r"penstock_\w+", DASHBOARD.read_text()))
    assert {name.removesuffix("_total") for name in used if name.endswith("_total")} <= set(NAMES)
    for name in used - {"penstock_dead_letters_total"}:  # no letter yet, so no series
        assert re.search(rf"^{name}(\{{| )", text, re.MULTILINE) or f"# TYPE {name} " in text, name
    assert json.loads(DASHBOARD.read_text())["title"] == "Penstock"


def test_metrics_without_a_page(tmp_path):
    with serving(metrics_app(RecordedNetwork(record(tmp_path)))) as url, urlopen(f"{url}/metrics") as answer:
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert b"penstock_box_tuples_total" in answer.read()


@pytest.mark.slow  # it may have to fetch promtool
def test_promtool_finds_no_fault(collector):
    found = subprocess.run([ROOT / "scripts/promtool.sh"], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    check = [found.stdout.strip(), "check", "metrics"]
    told = subprocess.run(check, input=metrics_text(collector), capture_output=True, check=False)
    assert (told.returncode, told.stdout + told.stderr) == (0, b"")
