"""Answers say how old they are, and are refused when the network has failed or lags."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pyarrow as pa
import pytest

import penstock as ps
from penstock.standing.errors import StaleError
from penstock.standing.serving.freshness import Freshness, Sign, sign_of
from penstock.standing.serving.points_only_runtime import sign_elsewhere
from penstock.store.ownership import Timing, own, sign_of_life
from standing.test_http import ARROW, ByHand, ask, command, put, service_at

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from penstock.http.server import serving
from penstock.standing.serving.routes import standing_app

TEXT = "SELECT vid FROM reports WHERE vid > 7"


@dataclass
class Query:
    """A sub-network's query, moved by hand."""

    looks: int = 0
    last: int = 0
    busy: bool = False
    finished: threading.Event = field(default_factory=threading.Event)

    def drained(self) -> bool:
        return not self.busy


class Network:
    """A runtime, moved by hand."""

    def __init__(self, **queries: Query) -> None:
        self.queries = queries
        self.error: Exception | None = None
        self.now = 100.0

    def signs(self) -> dict[str, Sign]:
        return {name: sign_of(query) for name, query in self.queries.items()}

    def check(self) -> None:
        if self.error is not None:
            raise self.error


def watched(network: Network, stale_after: float | None = 10.0) -> Freshness:
    freshness = Freshness(network.signs, network.check, stale_after, lambda: network.now)
    freshness.look()
    return freshness


def test_looking_in_vain_and_running_trains_are_progress() -> None:
    query = Query()
    network = Network(cars=query)
    freshness = watched(network)
    network.now += 3
    assert freshness.check() == 3
    query.looks += 1
    freshness.look()
    assert freshness.check() == 0
    network.now += 4
    query.last, query.busy = 1, True
    freshness.look()
    assert freshness.check() == 4  # a train runs: nothing of it is visible yet
    query.busy = False
    freshness.look()
    assert freshness.check() == 0


def test_an_answer_is_as_old_as_the_slowest_part() -> None:
    fast, slow = Query(), Query()
    network = Network(fast=fast, slow=slow)
    freshness = watched(network)
    network.now += 9
    fast.looks += 1
    freshness.look()
    assert freshness.check() == 9
    network.now += 2
    with pytest.raises(StaleError, match="no progress for 11 seconds"):
        freshness.check()
    slow.looks += 1
    freshness.look()
    assert freshness.check() == 2  # it goes on by itself


def test_what_has_ended_or_left_does_not_grow_old() -> None:
    ended, gone = Query(), Query()
    ended.finished.set()
    network = Network(ended=ended, gone=gone)
    freshness = watched(network)
    network.now += 60
    del network.queries["gone"]
    freshness.look()
    assert freshness.check() == 0


def test_without_a_limit_only_the_age_is_told() -> None:
    network = Network(cars=Query())
    freshness = watched(network, None)
    network.now += 10_000
    assert freshness.check() == 10_000


@pytest.mark.parametrize(
    "error", [ps.PenstockError("worker lost in /home/me/x"), RuntimeError("py4j is gone")]
)
def test_a_failure_stays_and_its_cause_is_not_told(error: Exception) -> None:
    network = Network(cars=Query())
    freshness = watched(network)
    network.error = error
    freshness.look()
    with pytest.raises(StaleError, match="the network has failed") as caught:
        freshness.check()
    assert "home" not in str(caught.value)
    assert freshness.failed.is_set()
    assert str(error) in str(freshness.failure)


def test_a_network_elsewhere_shows_its_life_in_the_checkpoint(tmp_path: Path) -> None:
    now = [0.0]
    freshness = Freshness(lambda: {"network": sign_elsewhere(tmp_path)}, lambda: None, 10.0, lambda: now[0])

    def later(seconds: float) -> float:
        now[0] += seconds
        freshness.look()
        return freshness.age()

    assert later(5) == 0  # nobody has ever run it: what is there is all there is
    owner = own(tmp_path, timing=Timing(beat=0.01))
    assert later(5) == 0
    first = sign_of_life(tmp_path)
    while sign_of_life(tmp_path) == first:  # it counts in a thread of its own
        pass
    assert later(5) == 0
    owner._ended.set()  # as kill -9: it counts no more, and has not said that it ends
    owner._beats.join()
    later(0)
    assert later(9) == 9
    assert later(9) == 18
    with pytest.raises(StaleError, match="the network lags"):
        freshness.check()
    owner._ended.clear()
    owner.release()  # a clean end
    assert later(60) == 0
    assert freshness.check() == 0


# -- in the service


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ByHand]:
    service = service_at(tmp_path)
    put(service, 0, 10)
    yield service
    service.stop()


@pytest.fixture
def url(service: ByHand) -> Iterator[str]:
    with serving(standing_app(service)) as address:
        yield address


def fail(service: ByHand) -> None:
    def check() -> None:
        raise ps.PenstockError("sub-network 'cars' failed: java.io.IOException: /data/x")

    service.freshness._check = check
    assert service.freshness.failed.wait(120)


def refusal(url: str) -> tuple[int, dict[str, Any]]:
    with pytest.raises(HTTPError) as caught:
        ask(url)
    return caught.value.code, json.loads(caught.value.read())


def test_every_answer_says_as_of_and_age(url: str, service: ByHand) -> None:
    handle = service.register(TEXT).id
    answer = json.loads(ask(f"{url}/queries/{handle}/result"))
    assert answer["as_of"] == "1970-01-01T00:00:09.000000+00:00"
    assert 0 <= answer["age"] < 120
    past = json.loads(ask(f"{url}/queries/{handle}/result?at=8"))
    assert past["as_of"] == "1970-01-01T00:00:08.000000+00:00"
    table = pa.ipc.open_stream(ask(f"{url}/queries/{handle}/result", Accept=ARROW)).read_all()
    assert table.schema.metadata[b"as_of"].decode() == answer["as_of"]
    assert float(table.schema.metadata[b"age"]) >= 0
    assert service.invoke(handle).schema.metadata[b"as_of"].decode() == answer["as_of"]
    assert "as of 1970-01-01T00:00:09.000000+00:00, " in command(url, "invoke", handle).stderr


def test_before_the_first_tuple_there_is_no_time(tmp_path: Path) -> None:
    service = service_at(tmp_path)
    with serving(standing_app(service)) as url:
        handle = service.register(TEXT).id
        assert json.loads(ask(f"{url}/queries/{handle}/result"))["as_of"] is None
        assert "as of no tuple" in command(url, "invoke", handle).stderr
    service.stop()


def test_a_failed_network_has_no_answers(url: str, service: ByHand) -> None:
    """Before, the last rows were given as 200 for ever."""
    handle = service.register(TEXT).id
    with urlopen(f"{url}/queries/{handle}/changes") as answer:
        events = (line for line in answer if line.startswith((b"event: ", b"data: ")))
        assert next(events) == b"event: change\n"
        next(events)
        fail(service)
        assert next(events) == b"event: error\n"
        assert "the network has failed" in json.loads(next(events)[6:])["error"]
        assert not list(events)
    for path in (f"/queries/{handle}/result", f"/queries/{handle}/changes", "/health"):
        status, body = refusal(url + path)
        assert status == 503
        assert "the network has failed" in body["error"]
        assert "/data/x" not in json.dumps(body)
    assert "the network has failed" in command(url, "invoke", handle).stderr
    with pytest.raises(StaleError):
        service.invoke(handle)


def test_a_failed_network_ends_the_command(
    service: ByHand, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import typer

    from penstock.cli.standing import serve
    from penstock.http.access import Access
    from penstock.http.server import take_port

    monkeypatch.setattr(serve, "LAST_WORDS", 0.0)
    monkeypatch.setattr("penstock.standing.serving.service.StandingQueries", lambda *_, **__: service)
    monkeypatch.setattr("penstock.process.stop_signal.StopSignal.take_signals", lambda _: None)
    fail(service)
    with pytest.raises(typer.Exit) as ended:
        serve._serve(service.runtime, take_port("127.0.0.1", 0), Access(), {})
    assert ended.value.exit_code == 1
    assert "the network has failed, so the service has ended" in capsys.readouterr().err
