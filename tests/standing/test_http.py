"""The service over HTTP and from the command line; tuples are put in by hand, so that no Spark is needed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import penstock as ps
from penstock.cli.main import penstock_app
from penstock.standing.errors import LimitError, NotRetainedError, UnknownHandleError
from penstock.standing.limits import Limits
from penstock.standing.serving.service import StandingQueries

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")


ARROW = "application/vnd.apache.arrow.stream"


class ByHand(StandingQueries):
    """Streams are not followed: the test inserts tuples itself."""

    def _need(self, streams: Any) -> None:
        """Nothing is loaded."""


def service_at(
    folder: Path, *, queries: int = 3, point: str = "reports", kind: type[ByHand] = ByHand
) -> ByHand:
    net = ps.Network("n")
    source = net.source("cars", ps.csv("in", "time TIMESTAMP, vid INT, spd DOUBLE"), timestamp="time")
    source.connection_point(point, keep="1 hour")
    runtime: Any = SimpleNamespace(
        network=net,
        checkpoint=folder,
        records=object(),
        queries={},
        check=lambda: None,
        settings=SimpleNamespace(take_over=False),
        on_train=lambda _listener: None,
    )
    return kind(runtime, limits=Limits(queries=queries, rows=100))


def put(service: StandingQueries, first: int, count: int) -> None:
    at = np.arange(first, first + count)
    columns = {
        "time": pa.array(at * 1_000_000, pa.int64()).cast(pa.timestamp("us", "UTC")),
        "vid": at.astype(np.int32),
        "spd": np.where(at == 3, np.nan, at.astype(float)),
    }
    service.engine.insert("reports", pa.table({**columns, "_ts": at * 1_000_000, "_seq": at}))


def die(service: ByHand) -> None:
    """As kill -9 would: nothing is ended but what the system ends, such as locks."""
    ownership = getattr(service, "_ownership", None)
    if ownership is not None:
        ownership.release()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ByHand]:
    made = service_at(tmp_path)
    put(made, 0, 10)
    yield made
    made.stop()


@pytest.fixture
def url(service: ByHand) -> Iterator[str]:
    from penstock.http.server import serving
    from penstock.standing.serving.routes import standing_app

    with serving(standing_app(service)) as address:
        yield address


def ask(url: str, method: str = "GET", body: Any = None, **headers: str) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urlopen(
        Request(url, data, {"Content-Type": "application/json", **headers}, method=method)
    ) as answer:
        return answer.read()


def command(url: str, *words: str) -> Any:
    full = ["standing", "--url", url, *words]
    return CliRunner().invoke(penstock_app(full), full, env={"COLUMNS": "200"})


def test_register_invoke_list_unregister(url: str) -> None:
    made = json.loads(
        ask(
            f"{url}/queries",
            "POST",
            {"query": "SELECT vid, spd FROM reports WHERE vid > 1 BEGIN now - 6 seconds", "client": "me"},
        )
    )
    assert made["mode"] == "P"
    answer = json.loads(ask(f"{url}/queries/{made['handle']}/result"))
    assert answer["rows"][0] == {"vid": 3, "spd": "NaN"}
    assert [row["vid"] for row in answer["rows"]] == list(range(3, 10))
    past = json.loads(ask(f"{url}/queries/{made['handle']}/result?at=4"))
    assert [row["vid"] for row in past["rows"]] == [2, 3, 4]
    arrow = ask(f"{url}/queries/{made['handle']}/result", Accept="application/vnd.apache.arrow.stream")
    assert pa.ipc.open_stream(arrow).read_all().num_rows == 7
    assert [q["handle"] for q in json.loads(ask(f"{url}/queries?client=me"))] == [made["handle"]]
    ask(f"{url}/queries/{made['handle']}", "DELETE")
    assert json.loads(ask(f"{url}/queries")) == []
    assert json.loads(ask(f"{url}/health"))["ok"]
    assert {s["stream"] for s in json.loads(ask(f"{url}/streams"))} == {"cars", "reports"}
    paths = json.loads(ask(f"{url}/openapi.json"))["paths"]
    assert {"/queries", "/queries/{handle}/result", "/queries/{handle}/changes"} <= set(paths)


@pytest.mark.parametrize(
    ("path", "method", "body", "status", "text"),
    [
        ("/queries", "POST", {"query": "SELECT vid FROM report"}, 400, "did you mean 'reports'?"),
        ("/queries/q-none/result", "GET", None, 404, "no standing query 'q-none'"),
        ("/queries/{here}/result?at=nan", "GET", None, 400, "'nan' is not a time"),
        ("/queries/{here}/result?at=inf", "GET", None, 400, "'inf' is not a time"),
        ("/queries/{here}/result?at=1e300", "GET", None, 400, "is not a time"),
        ("/queries/q-none", "DELETE", None, 404, "no standing query"),
        ("/queries", "POST", {}, 400, "query"),
    ],
)
def test_refusals_have_a_status_and_parts(
    url: str, service: ByHand, path: str, method: str, body: Any, status: int, text: str
) -> None:
    from urllib.error import HTTPError

    path = path.format(here=service.register("SELECT vid FROM reports").id)

    with pytest.raises(HTTPError) as refusal:
        ask(url + path, method, body)
    assert refusal.value.code == status
    assert text in refusal.value.read().decode()


def test_what_fails_underneath_is_told(url: str, service: ByHand, monkeypatch: pytest.MonkeyPatch) -> None:
    from urllib.error import HTTPError

    def broken(*_: Any) -> None:
        raise ps.PenstockError("there is no connection point 'reports'")

    monkeypatch.setattr(service, "_need", broken)
    with pytest.raises(HTTPError, match="503") as refusal:
        ask(f"{url}/queries", "POST", {"query": "SELECT vid FROM reports"})
    assert "no connection point" in refusal.value.read().decode()


def test_limits_have_a_status_of_their_own(url: str, service: ByHand) -> None:
    from urllib.error import HTTPError

    handle = service.register("SELECT vid FROM reports").id
    put(service, 10, 200)
    with pytest.raises(HTTPError, match="429"):
        ask(f"{url}/queries/{handle}/result")
    for _ in range(2):
        ask(f"{url}/queries", "POST", {"query": "SELECT vid FROM reports"})
    with pytest.raises(HTTPError, match="429"):
        ask(f"{url}/queries", "POST", {"query": "SELECT vid FROM reports"})


def test_the_stream_of_changes(url: str, service: ByHand) -> None:
    handle = service.register("SELECT vid FROM reports BEGIN now - 1 second").id
    with urlopen(f"{url}/queries/{handle}/changes") as answer:
        events = (json.loads(line[6:]) for line in answer if line.startswith(b"data: "))
        assert [row["vid"] for row in next(events)["added"]] == [8, 9]
        put(service, 10, 1)
        change = next(events)
        assert (change["added"], change["removed"]) == ([{"vid": 10}], [{"vid": 8}])
        service.unregister(handle)
        assert next(events) == {}


def test_many_followers_leave_room_for_others(url: str, service: ByHand) -> None:
    handle = service.register("SELECT vid FROM reports BEGIN now - 1 second").id
    followers = [urlopen(f"{url}/queries/{handle}/changes") for _ in range(60)]
    try:
        # the pool has fewer threads than there are followers: if each held one, this would never answer
        assert len(json.loads(ask(f"{url}/queries/{handle}/result"))["rows"]) == 2
        put(service, 10, 1)
        for answer in followers:
            events = (json.loads(line[6:]) for line in answer if line.startswith(b"data: "))
            next(events)
            assert next(events)["added"] == [{"vid": 10}]
    finally:
        for answer in followers:
            answer.close()
    # one thread for all followers; those of tests before may be about to end
    assert sum(thread.name == "wakeups" for thread in threading.enumerate()) < len(followers)


def test_follow_says_what_went_wrong_and_ends(url: str, service: ByHand) -> None:
    handle = service.register("SELECT vid FROM reports").id
    put(service, 10, 200)
    done = command(url, "follow", handle)
    assert done.exit_code == 2
    assert "the answer has 210 rows" in done.stderr


def test_the_command_line(url: str) -> None:
    handle = command(
        url, "register", "SELECT vid FROM reports WHERE vid > 7", "--client", "me"
    ).stdout.strip()
    assert command(url, "invoke", handle, "--format", "csv").stdout == "vid\n8\n9\n"
    assert command(url, "invoke", handle, "--at", "8", "--format", "json").stdout == '{"vid": 8}\n'
    assert handle in command(url, "list").stdout
    assert "reports" in command(url, "streams").stdout
    assert command(url, "unregister", handle).exit_code == 0
    gone = command(url, "invoke", handle)
    assert gone.exit_code == 2
    assert "no standing query" in gone.stderr
    wrong = command(url, "register", "SELECT vid FROM report")
    assert "did you mean 'reports'?" in wrong.stderr


def test_what_tuples_hold_is_shown_and_not_sent_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    from penstock.cli.standing.client import _show

    rows = [{"s": "\x1b[2J\x1b]0;owned\x07", "t": "[red]x[/"}, {"s": None, "t": 3}]
    for form in ("table", "json"):
        _show(["s", "t"], rows, form)
        said = capsys.readouterr().out
        assert "\x1b" not in said
        assert "[red]x[/" in said


def test_no_service_there() -> None:
    assert "penstock standing serve" in command("http://127.0.0.1:9", "list").stderr


def test_handles_survive_a_restart(tmp_path: Path) -> None:
    first = service_at(tmp_path)
    kept = first.register("SELECT vid FROM reports WHERE vid > 7", client="me", mode="C").id
    gone = first.register("SELECT vid FROM reports").id
    first.unregister(gone)
    die(first)
    second = service_at(tmp_path)
    put(second, 0, 10)
    assert second.invoke(kept)["vid"].to_pylist() == [8, 9]
    assert [(q["handle"], q["mode"], q["client"]) for q in second.list()] == [(kept, "C", "me")]


def test_a_lowered_limit_or_an_old_landmark_does_not_keep_the_service_down(tmp_path: Path) -> None:
    class Thinned(ByHand):
        """As after a long pause: retention has gone on while the service was down."""

        def _need(self, streams: Any) -> None:
            if streams and not self.engine.view.prefixes["reports"].rows:
                put(self, 7000, 10)
                self.engine.set_lost("reports", 5000 * 1_000_000)

    first = service_at(tmp_path)
    put(first, 0, 10)
    old = first.register("SELECT vid FROM reports WHERE vid > 2 BEGIN 5 END now").id
    young = first.register("SELECT vid FROM reports WHERE vid > 2 BEGIN now - 1 second").id
    die(first)
    second = service_at(tmp_path, queries=1, kind=Thinned)
    assert second.invoke(young)["vid"].to_pylist() == [7008, 7009]
    with pytest.raises(NotRetainedError):
        second.invoke(old)
    with pytest.raises(LimitError):
        second.register("SELECT vid FROM reports")
    assert [each["broken"] for each in second.list()] == [None, None]


def test_what_no_longer_fits_is_listed_and_can_be_removed(tmp_path: Path) -> None:
    first = service_at(tmp_path)
    gone = first.register("SELECT vid FROM reports", client="me").id
    die(first)
    second = service_at(tmp_path, point="others")
    [listed] = second.list("me")
    assert listed["handle"] == gone
    assert "no stream 'reports'" in listed["broken"]
    with pytest.raises(UnknownHandleError, match="does not fit the network"):
        second.invoke(gone)
    second.unregister(gone)
    assert second.list() == []
