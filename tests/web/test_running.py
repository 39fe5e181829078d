"""The console of a network that runs on Spark: look, watch, hold and step, ask, edit, set a QoS, undo."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import penstock as ps
from runtime.streams import put, rows_of, source, until

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")


class Client:
    """Talks to a console."""

    def __init__(self, url: str, running: ps.Runtime, folder: Path) -> None:
        self.url, self.running, self.folder = url, running, folder
        self.files = 0

    def get(self, path: str) -> Any:
        with urlopen(self.url + path, timeout=60) as answer:
            return json.load(answer)

    def post(self, path: str, status: int = 200, **body: Any) -> Any:
        body.setdefault("version", self.get("/api/network")["version"])
        headers = {"content-type": "application/json"}
        request = Request(self.url + path, json.dumps(body).encode(), headers)
        code, told = _sent(request)
        until_ = time.monotonic() + 60
        # All tests here are one client. Together they may be faster than one client may be.
        while code == 429 and time.monotonic() < until_:
            time.sleep(0.2)
            code, told = _sent(request)
        assert code in ((200, 201) if status == 200 else (status,)), told
        return told

    def put(self, count: int = 10) -> None:
        put(self.folder / "cars", f"f{self.files:03}", rows_of(self.files * 100, count))
        self.files += 1

    def until(self, condition: Callable[[], bool]) -> None:
        until(self.running, condition)


def _sent(request: Request) -> tuple[int, Any]:
    try:
        with urlopen(request, timeout=120) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        return error.code, json.load(error)


@pytest.fixture(scope="module")
def console(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("console")
    net = ps.Network("traffic")
    kept = source(net, folder, idle=None).filter("v >= 0", name="valid").connection_point("kept")
    qos = ps.QoS(delay=[(0, 1), (5, 1), (30, 0)])
    net.output(
        "low", kept.filter("v < 50", name="chosen"), to=ps.parquet(str(folder / "out" / "low")), qos=qos
    )
    with ps.Runtime(net, spark, folder / "checkpoint") as running, ps.Console(running, port=0) as shown:
        client = Client(shown.url, running, folder)
        client.put()
        assert running.wait_idle(timeout=120)
        yield client


def test_the_figures_of_a_run(console: Client):
    status = console.get("/api/status")
    assert status["state"] == "running"
    assert status["changeable"]
    assert status["boxes"]["cars"]["rows_in"] >= 10
    assert status["arrows"]["cars:valid:0"]["serves"] == ["low"]
    assert status["points"]["kept"]["rows"] >= 10
    assert console.get("/api/network")["editable"]


def test_an_arrow_is_watched_while_somebody_looks(console: Client):
    path = "/api/arrows/valid:kept:0/tuples"
    assert console.get(path)["rows"] == []
    console.put(5)
    console.until(lambda: len(console.get(path)["rows"]) == 5)
    row = console.get(path)["rows"][0]
    assert set(row["tuple"]) == {"time", "k", "v", "_ts"}
    kept = console.get("/api/arrows/kept:chosen:0/tuples")
    assert not kept["watched"], "read from the table of the point"
    assert len(kept["rows"]) >= 5
    with pytest.raises(HTTPError) as error:
        console.get("/api/arrows/valid:kept:0/tuples?condition=spede+%3C+1")
    assert error.value.code == 400
    with pytest.raises(HTTPError) as error:
        console.get("/api/arrows/no:such:0/tuples")
    assert error.value.code == 404


def test_hold_step_release(console: Client):
    held = console.post("/api/hold", subnetwork="kept", seconds=60)
    assert held["by"] == "somebody here"
    assert console.get("/api/status")["held"][0]["subnetwork"] == "kept"
    console.put(4)
    stepped = console.post("/api/step", subnetwork="kept", tuples=1)
    assert stepped["rows"] == 1
    boxes = {box["box"]: box for box in stepped["boxes"]}
    assert (boxes["cars"]["took"], boxes["valid"]["gave"]) == (1, 1)
    assert len(boxes["valid"]["tuples"]) == 1
    console.post("/api/release", subnetwork="kept")
    assert console.running.wait_idle(timeout=60)
    assert console.get("/api/status")["held"] == []
    console.post("/api/step", 400, subnetwork="kept")
    console.post("/api/hold", 404, subnetwork="nobody")


def test_a_breakpoint_holds(console: Client):
    made = console.post("/api/breakpoints", arrow="valid:kept:0", condition="v >= 0")
    console.put(3)
    console.until(lambda: bool(console.get("/api/status")["held"]))
    assert "breakpoint" in console.get("/api/status")["held"][0]["why"]
    request = Request(f"{console.url}/api/breakpoints/{made['id']}", method="DELETE")
    assert urlopen(request).status == 204
    console.post("/api/release", subnetwork="kept")


def test_a_question_brings_history_then_what_is_new(console: Client):
    assert console.running.wait_idle(timeout=60)
    before = console.get("/api/status")["boxes"]["kept"]["rows_in"]
    asked = console.post("/api/attach", point="kept", query="SELECT k, v FROM kept WHERE v >= 0")
    name = asked["name"]
    console.until(lambda: console.get(f"/api/attached/{name}/rows")["total"] == before)
    console.put(2)
    console.until(lambda: console.get(f"/api/attached/{name}/rows")["total"] == before + 2)
    assert set(console.get(f"/api/attached/{name}/rows")["rows"][0]["tuple"]) == {"k", "v", "_ts"}
    console.post("/api/detach", name=name)
    assert name not in console.running.queries
    wrong = console.post("/api/attach", 400, point="kept", query="SELECT spede FROM kept")
    assert (wrong["line"], wrong["column"]) == (1, 8)
    console.post("/api/detach", 400, name="low")


def test_an_edit_is_told_made_and_undone(console: Client):
    version = console.get("/api/network")["version"]
    step = {"do": "change", "name": "chosen", "box": {"filter": "v < 20"}}
    plan = console.post("/api/edit/preview", steps=[step])
    assert plan["ok"]
    assert plan["words"] == ["filter 'chosen': v < 50 becomes v < 20"]
    assert {sub["name"]: sub["change"] for sub in plan["subnetworks"]} == {
        "kept": "unchanged",
        "low": "changed",
    }
    assert plan["effects"][-1] == "nobody else notices"
    made = console.post("/api/edit/apply", steps=[step])
    assert made["version"] == version + 1
    assert made["blips"]["low"] > 0
    assert "v < 20" in console.get("/api/network")["yaml"]
    moved = console.post("/api/edit/apply", 409, steps=[step], version=version)
    assert moved["difference"] == ["filter 'chosen': v < 50 becomes v < 20"]
    assert moved["version"] == version + 1
    plan = console.post("/api/edit/preview", steps=[{**step, "box": {"filter": "v < 9"}}])
    assert plan["subnetworks"][1]["blip"] == pytest.approx(made["blips"]["low"], abs=0.001), "measured"
    console.post("/api/edit/undo")
    assert "v < 50" in console.get("/api/network")["yaml"]
    newest = console.get("/api/versions")["versions"][0]
    assert newest["by"] == "somebody here"


def test_a_wrong_edit_changes_nothing(console: Client):
    text = console.get("/api/network")["yaml"]
    plan = console.post("/api/edit/preview", yaml=text.replace("v < 50", "vee < 50"))
    assert not plan["ok"]
    assert plan["error"]["box"] == "chosen"
    assert text.splitlines()[plan["error"]["line"] - 1].strip() in ("chosen:", "filter: v < 50")
    console.post("/api/edit/apply", 400, yaml=text.replace("v < 50", "vee < 50"))
    console.post("/api/edit/apply", 400, yaml="nonsense")
    assert console.get("/api/network")["yaml"] == text
    assert console.get("/api/status")["state"] == "running"


def test_a_qos_is_judged_then_set_without_a_pause(console: Client):
    trains = console.running.queries["low"].last
    graph = {"delay": [[0, 1], [1, 1], [2, 0]]}
    # Seconds come into the catalog once they are over.
    console.until(lambda: len(console.post("/api/qos/low/judge", qos=graph)["seconds"]) > 0)
    version = console.post("/api/qos/low", qos=graph)["version"]
    assert console.get("/api/network")["version"] == version
    nodes = {node["name"]: node for node in console.get("/api/network")["nodes"]}
    assert nodes["low"]["qos"]["threshold"] == 1.0
    assert console.running.queries["low"].last >= trains
    console.post("/api/qos/nobody", 404, qos=graph)
    console.post("/api/qos/low", 400, qos={"delay": [[0, 0.5]]})


@pytest.mark.slow  # the service of standing queries starts
def test_standing_queries_have_the_same_calls_under_api(console: Client):
    asked = console.post("/api/queries", query="SELECT v FROM kept WHERE v >= 0 BEGIN now - 1 hour END now")
    handle = asked["handle"]
    assert console.get("/api/queries")[0]["handle"] == handle
    assert console.get(f"/api/queries/{handle}/result")["count"] > 0
    assert "kept" in [stream["stream"] for stream in console.get("/api/streams")]
    request = Request(f"{console.url}/api/queries/{handle}", method="DELETE")
    assert urlopen(request).status == 204


def test_a_page_is_told_of_events(console: Client):
    with urlopen(console.url + "/api/events", timeout=60) as stream:
        until_ = time.monotonic() + 60
        seen: set[str] = set()
        console.post("/api/hold", subnetwork="low")
        while not {"status", "held"} <= seen and time.monotonic() < until_:
            line = stream.readline().decode()
            if line.startswith("event: "):
                seen.add(line.removeprefix("event: ").strip())
    console.post("/api/release", subnetwork="low")
    assert {"status", "held"} <= seen
