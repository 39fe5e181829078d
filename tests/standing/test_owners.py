"""Each token sees its own queries, and nothing of those of others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from standing.test_http import ByHand, ask, command, die, put, service_at

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from penstock.http.access import Access
from penstock.http.server import serving
from penstock.standing.serving.routes import standing_app

SECRETS = {"ann": "the-secret-of-ann-0123", "bob": "the-secret-of-bob-4567"}
TEXT = "SELECT vid FROM reports WHERE vid > 7"


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    service = service_at(tmp_path)
    put(service, 0, 10)
    access = Access.of("127.0.0.1", [f"{name}={secret}" for name, secret in SECRETS.items()])
    with serving(standing_app(service, access)) as address:
        yield address
    service.stop()


def ask_as(name: str, url: str, method: str = "GET", body: Any = None) -> Any:
    text = ask(url, method, body, Authorization=f"Bearer {SECRETS[name]}")
    return json.loads(text) if text else None


def refused(name: str, url: str, method: str = "GET", body: Any = None) -> tuple[int, str]:
    with pytest.raises(HTTPError) as caught:
        ask_as(name, url, method, body)
    return caught.value.code, caught.value.read().decode()


def test_a_handle_of_another_owner_is_as_unknown_as_none(url: str) -> None:
    mine = ask_as("ann", f"{url}/queries", "POST", {"query": TEXT})
    handle = mine["handle"]
    assert mine["owner"] == "ann"
    assert len(ask_as("ann", f"{url}/queries/{handle}/result")["rows"]) == 2
    none = "q-" + "0" * 32
    for method, path in (
        ("GET", "/queries/{}"),
        ("GET", "/queries/{}/result"),
        ("POST", "/queries/{}/invoke"),
        ("GET", "/queries/{}/changes"),
        ("DELETE", "/queries/{}"),
    ):
        status, text = refused("bob", url + path.format(handle), method)
        other_status, other_text = refused("bob", url + path.format(none), method)
        assert status == other_status == 404
        assert text.replace(handle, none) == other_text
    assert ask_as("bob", f"{url}/queries") == []
    assert [query["handle"] for query in ask_as("ann", f"{url}/queries")] == [handle]
    ask_as("ann", f"{url}/queries/{handle}", "DELETE")


def test_the_limit_counts_for_an_owner_whatever_the_label(url: str) -> None:
    for label in "abc":
        ask_as("ann", f"{url}/queries", "POST", {"query": TEXT, "client": label})
    status, text = refused("ann", f"{url}/queries", "POST", {"query": TEXT, "client": "d"})
    assert status == 429
    assert "3 standing queries of ann" in text
    ask_as("bob", f"{url}/queries", "POST", {"query": TEXT})


def test_owners_survive_a_restart(tmp_path: Path) -> None:
    first = service_at(tmp_path)
    handle = first.register(TEXT, owner="ann").id
    die(first)
    second = service_at(tmp_path)
    assert [query["owner"] for query in second.list()] == ["ann"]
    assert second.handle(handle, "ann").id == handle
    assert second.list(owner="bob") == []


def test_a_broken_query_of_another_owner_is_unknown(tmp_path: Path) -> None:
    first = service_at(tmp_path)
    handle = first.register(TEXT, owner="ann").id
    die(first)
    second: ByHand = service_at(tmp_path, point="others")
    for owner, problem in (("ann", "does not fit the network"), ("bob", "no standing query")):
        with pytest.raises(Exception, match=problem):
            second.handle(handle, owner)
    with pytest.raises(Exception, match="no standing query"):
        second.unregister(handle, "bob")
    second.unregister(handle, "ann")
    assert second.list() == []


def test_the_command_line_shows_its_token(url: str) -> None:
    refusal = command(url, "list")
    assert refusal.exit_code == 2
    assert "--token or PENSTOCK_TOKEN" in refusal.stderr
    words = ("--token", SECRETS["ann"])
    handle = command(url, *words, "register", TEXT).stdout.strip()
    assert command(url, *words, "invoke", handle, "--format", "csv").stdout == "vid\n8\n9\n"
    assert handle not in command(url, "--token", SECRETS["bob"], "list").stdout


def test_health_tells_a_stranger_only_that_it_lives(url: str) -> None:
    assert json.loads(ask(f"{url}/health")) == {"ok": True}
    assert "queries" in ask_as("ann", f"{url}/health")
