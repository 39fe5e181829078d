"""What a console tells about a checkpoint."""

from __future__ import annotations

import json
import time
from pathlib import Path
from urllib.request import urlopen

import pytest

from penstock.control.control import REPORT
from penstock.control.optimizer.cycle import Optimizer
from penstock.control.report import OutputReport, QosReport, SubnetworkReport, ValveReport
from penstock.model.errors import PenstockError
from penstock.runtime import Runtime
from penstock.store.catalog.catalog import Catalog
from penstock.store.catalog.decisions import Decisions
from penstock.store.catalog.record_types import OutputSecond
from web.recorded import NOW, network, record

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from penstock.http.server import serving
from penstock.web.app import console_app
from penstock.web.look.second_rows import SecondRows
from penstock.web.look.status_json import StatusLook
from penstock.web.look.watched import RecordedNetwork
from penstock.web.service import ConsoleService


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return record(tmp_path)


def service_at(checkpoint: Path) -> ConsoleService:
    return ConsoleService(RecordedNetwork(checkpoint))


def test_the_network_is_the_picture_that_draw_shows(checkpoint):
    shown = service_at(checkpoint).network()
    svg = network().to_svg()
    assert shown["name"] == "tolls"
    assert shown["version"] == 1
    for arrow in shown["arrows"]:
        assert f'd="{arrow["path"]}"' in svg, arrow["id"]
    for node in shown["nodes"]:
        assert f'data-node="{node["name"]}"' in svg
    assert [arrow["id"] for arrow in shown["arrows"]] == [
        "cars:valid:0",
        "valid:recent:0",
        "recent:chosen:0",
        "chosen:slow:0",
    ]
    nodes = {node["name"]: node for node in shown["nodes"]}
    assert nodes["recent"]["keep"] == 7_200
    assert nodes["recent"]["look"] == "point"
    assert nodes["valid"]["subnetwork"] == "recent"
    assert nodes["slow"]["qos"]["threshold"] == 5
    assert shown["groups"][0]["manual"] == "only sound reports"
    assert not shown["editable"]
    assert "looks at a checkpoint" in shown["why_not"]


def test_a_closed_group_is_one_box(checkpoint):
    shown = service_at(checkpoint).network(["clean"])
    group = next(node for node in shown["nodes"] if node["look"] == "group")
    assert group["path"] == "clean"
    assert [(arrow["tail"], arrow["head"], arrow["members"]) for arrow in shown["arrows"]] == [
        ("clean/", "chosen", ["recent:chosen:0"]),
        ("chosen", "slow", ["chosen:slow:0"]),
    ]


def test_the_status_of_a_run_that_has_ended(checkpoint):
    status = service_at(checkpoint).status()
    assert status["state"] == "ended"
    assert not status["changeable"]
    assert status["boxes"]["cars"]["dead"] == 1
    assert {sub["name"]: sub["rows"] for sub in status["subnetworks"]} == {"recent": 10, "slow": 8}
    (output,) = status["outputs"]
    assert output["utility"] == pytest.approx(0.5), "17.5 s is half way from 5 to 30"
    assert output["in_zone"] is False
    first = status["arrows"]["cars:valid:0"]
    assert (first["waiting"], first["age"], first["rate"]) == (6, 7.5, None), "unknown is null, not 0"
    assert first["utility"] == pytest.approx(0.5), "what lies behind it"
    assert status["arrows"]["chosen:slow:0"]["waiting"] is None
    assert status["worst"][0] == "cars:valid:0", "the oldest waits there"
    assert status["sources"][0]["offered"] == 10
    assert status["qos"] is None


CONTROLLED = QosReport(
    (OutputReport("slow", share=0.5),),
    valves=(ValveReport("cars", 0.5, "tuples"),),
    subnetworks=(SubnetworkReport("slow", priority=2.5),),
    load=1.5,
    capacity=2.0,
)


def test_what_control_tells_stands_in_the_status(checkpoint):
    Decisions(Catalog(checkpoint / "catalog.db")).keep_state(REPORT, float(NOW), CONTROLLED.plain())
    status = service_at(checkpoint).status()
    assert status["qos"] == CONTROLLED.plain()
    assert (status["load"], status["capacity"], status["valves"][0]["at"]) == (1.5, 2.0, "cars")
    assert status["outputs"][0]["share"] == 0.5
    assert {sub["name"]: sub["priority"] for sub in status["subnetworks"]} == {"recent": None, "slow": 2.5}


def test_a_later_run_without_control_is_shown_as_it_is(checkpoint):
    Decisions(Catalog(checkpoint / "catalog.db")).keep_state(REPORT, NOW - 100.0, CONTROLLED.plain())
    status = service_at(checkpoint).status()
    assert (status["qos"], status["valves"], status["load"]) == (None, [], None)
    assert status["outputs"][0]["share"] == 1
    assert status["sources"][0]["offered_rate"] == 4.0


def test_the_last_trains_of_a_run_may_take_longer_than_its_last_report(checkpoint):
    catalog = Catalog(checkpoint / "catalog.db")
    catalog.record_location("slow", "query", "queries/slow", at=NOW - 200.0)
    Decisions(catalog).keep_state(REPORT, NOW - 100.0, CONTROLLED.plain())
    assert service_at(checkpoint).status()["qos"] == CONTROLLED.plain()
    catalog.record_location("slow", "query", "queries/slow", at=NOW - 50.0)  # started again
    assert service_at(checkpoint).status()["qos"] is None


def test_a_run_with_the_optimizer_alone_has_a_status(checkpoint, monkeypatch):
    runtime = Runtime(network(), checkpoint=checkpoint, control=Optimizer())
    monkeypatch.setattr(RecordedNetwork, "runtime", runtime)
    status = StatusLook(RecordedNetwork(checkpoint)).status()
    assert (status["qos"], status["valves"], status["load"]) == (None, [], None)


def test_a_network_without_a_text_shows_its_topology(tmp_path):
    net = network()
    catalog = Catalog(tmp_path / "catalog.db")
    catalog.record_network(net.name, net.explain(), net.nodes.values(), form="explain")
    shown = service_at(tmp_path).network()
    assert shown["yaml"] is None
    assert [node["name"] for node in shown["nodes"]] == list(net.nodes)
    assert all(node["columns"] is None for node in shown["nodes"])
    assert service_at(tmp_path).status()["state"] == "ended"


def test_what_is_no_checkpoint_is_refused(tmp_path):
    with pytest.raises(PenstockError, match="is no checkpoint"):
        RecordedNetwork(tmp_path / "nowhere")
    Catalog(tmp_path / "catalog.db").close()
    with pytest.raises(PenstockError, match="knows no network"):
        RecordedNetwork(tmp_path)


def test_routes_answer(checkpoint):
    with serving(console_app(service_at(checkpoint))) as url:

        def get(path: str) -> dict:
            with urlopen(url + path) as answer:
                return json.load(answer)

        assert get("/api/network")["version"] == 1
        assert get("/api/status")["network"] == "tolls"
        past = get("/api/history?seconds=60")
        assert past["outputs"]["slow"][0]["utility"] == pytest.approx(0.5)
        assert past["trains"]["recent"][0]["rows_in"] == 10
        assert get("/api/decisions") == {"decisions": []}
        assert get("/api/dead-letters") == {"total": 0, "reasons": [], "rows": []}
        with urlopen(url + "/") as page:
            assert "script-src 'self'" in page.headers["content-security-policy"]
            assert "unsafe" not in page.headers["content-security-policy"]


def test_a_page_gets_the_newest_status(checkpoint):
    with serving(console_app(service_at(checkpoint))) as url, urlopen(url + "/api/events") as stream:
        until = time.monotonic() + 120
        lines = []
        while time.monotonic() < until and not any(line.startswith("data:") for line in lines):
            lines.append(stream.readline().decode())
    assert "event: status\n" in lines
    status = json.loads(lines[-1].removeprefix("data: "))
    assert status["network"] == "tolls"


def test_a_second_that_became_another_is_shown_anew():
    over, going_on = OutputSecond("jams", 1, ((1.0, 3),)), OutputSecond("jams", 2, ((2.0, 1),))
    rows = SecondRows()
    before = rows.rows({"jams": (over, going_on)})["jams"]
    after = rows.rows({"jams": (over, OutputSecond("jams", 2, ((2.0, 1), (4.0, 9))))})["jams"]
    assert before == [[1, 3, 1.0, 1.0, None], [2, 1, 2.0, 2.0, None]]
    assert after == [[1, 3, 1.0, 1.0, None], [2, 10, 4.0, 4.0, None]]
    assert after[0] is before[0], "what is over is worked out once"
