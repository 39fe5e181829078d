"""Who gets in: hosts, origins, tokens for looking only, cookies, sizes, rates; and what errors tell."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from web.recorded import record

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from penstock.http.access import Access
from penstock.http.server import serving
from penstock.web.app import console_app
from penstock.web.look.watched import RecordedNetwork
from penstock.web.service import ConsoleService

CHANGES, LOOKS = "0123456789abcdef", "fedcba9876543210"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Any:
    service = ConsoleService(RecordedNetwork(record(tmp_path_factory.mktemp("manners"))))
    access = Access.of("127.0.0.1", [f"ann={CHANGES}"], (), [f"bob={LOOKS}"])
    with serving(console_app(service, access)) as url:
        yield url.removeprefix("http://")


def ask(
    address: str, path: str, method: str = "GET", body: Any = None, **headers: str
) -> tuple[int, dict[str, str], Any]:
    connection = HTTPConnection(address, timeout=30)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None:
        sent.setdefault("content-type", "application/json")
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    connection.request(method, path, data, sent)
    answer = connection.getresponse()
    text = answer.read()
    kind = answer.headers.get("content-type", "")
    told = json.loads(text) if kind.startswith("application/json") else text
    return answer.status, {name.lower(): value for name, value in answer.headers.items()}, told


def test_the_page_is_open_and_the_data_is_not(address):
    assert ask(address, "/")[0] == 200
    assert ask(address, "/health")[0] == 200
    for path in ("/api/network", "/api/status", "/api/events", "/metrics", "/docs", "/api/dead-letters.csv"):
        assert ask(address, path)[0] == 401, path
    assert ask(address, "/api/network", authorization=f"Bearer {LOOKS}")[0] == 200


def test_a_token_for_looking_changes_nothing(address):
    writes = ["/api/hold", "/api/step", "/api/release", "/api/attach", "/api/detach", "/api/edit/preview"]
    writes += ["/api/edit/apply", "/api/edit/undo", "/api/qos/slow", "/api/breakpoints"]
    for path in writes:
        status, _, told = ask(address, path, "POST", {"version": 1}, authorization=f"Bearer {LOOKS}")
        assert status == 403, path
        assert "looking only" in told["problem"]
    assert ask(address, "/api/bookmarks/x", "PUT", {"view": 1}, authorization=f"Bearer {LOOKS}")[0] == 403


def test_a_token_becomes_a_cookie_that_scripts_cannot_read(address):
    status, headers, told = ask(address, "/api/login", "POST", {"token": CHANGES})
    assert (status, told) == (200, {"name": "ann", "may_change": True})
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    _, _, me = ask(address, "/api/me", cookie=cookie.partition(";")[0])
    assert me == {"name": "ann", "may_change": True, "tokens": True}
    assert ask(address, "/api/login", "POST", {"token": "wrong wrong wrong"})[0] == 401


def test_other_hosts_and_sites_are_refused(address):
    token = f"Bearer {CHANGES}"
    assert ask(address, "/api/status", host="evil.example", authorization=token)[0] == 421
    for headers in ({"origin": "https://evil.example"}, {"sec_fetch_site": "cross-site"}):
        status, answer, _ = ask(address, "/api/hold", "POST", {"version": 1}, authorization=token, **headers)
        assert status == 403
        assert "access-control-allow-origin" not in answer
    assert ask(address, "/api/login", "POST", {"token": CHANGES}, origin="https://evil.example")[0] == 403
    form = {"content_type": "application/x-www-form-urlencoded"}
    assert ask(address, "/api/hold", "POST", b"a=b", authorization=token, **form)[0] == 415


def test_sizes_are_limited(address):
    connection = HTTPConnection(address, timeout=30)
    connection.putrequest("POST", "/api/edit/preview")
    for name, value in (("authorization", f"Bearer {CHANGES}"), ("content-length", str(2 << 20))):
        connection.putheader(name, value)
    connection.endheaders()  # the answer comes before the body
    assert connection.getresponse().status == 413


@pytest.mark.parametrize(
    "name", ["../app.py", "..%2fapp.py", "%2e%2e/app.py", "/etc/passwd", "a/../../app.py"]
)
def test_nothing_but_the_page_is_served(address, name):
    status, _, told = ask(address, f"/static/{name}")
    assert status in (401, 404)
    assert b"import" not in (told if isinstance(told, bytes) else b"")


def test_refusals_say_what_to_do_and_show_no_trace(address):
    token = f"Bearer {CHANGES}"
    status, _, told = ask(
        address, "/api/hold", "POST", {"version": 1, "subnetwork": "slow"}, authorization=token
    )
    assert status == 409
    assert "penstock run NET --console" in told["hint"]
    for path, body in (("/api/hold", {}), ("/api/attach", {"version": "x"}), ("/api/edit/apply", [])):
        status, _, told = ask(address, path, "POST", body, authorization=token)
        assert status == 400, told
        assert "Traceback" not in json.dumps(told)
    assert ask(address, "/api/nothing", authorization=token)[0] == 404


@pytest.mark.parametrize(
    "query",
    [
        "SELECT " + "(" * 5_000 + "1" + ")" * 5_000 + " FROM recent",
        "SELECT vid FROM recent WHERE " + "NOT " * 4_000 + "true",
        "a: " + "[" * 5_000 + "]" * 5_000,
        "a: {filter: '" + "(" * 5_000 + "'}",
        "\x00",
        "SELECT vid FROM recent WHERE vid IN (" + "1," * 5_000 + "1)",
    ],
)
def test_hostile_queries_get_an_answer_in_words(address, query):
    body = {"point": "recent", "query": query}
    status, _, told = ask(address, "/api/attach/check", "POST", body, authorization=f"Bearer {CHANGES}")
    assert status in (200, 400, 429), told
    assert "Traceback" not in json.dumps(told)


def test_a_refused_query_names_no_file_of_the_server(address):
    body = {"point": "recent", "query": "SELECT spede FROM recent"}
    _, _, told = ask(address, "/api/attach/check", "POST", body, authorization=f"Bearer {CHANGES}")
    assert told["error"]["error"].startswith("box 'select_1': spede = 'spede': unknown column 'spede'")
    assert (told["error"]["line"], told["error"]["column"]) == (1, 8)
    assert ".py" not in json.dumps(told)


def test_a_client_that_changes_too_often_is_slowed_down(tmp_path: Path):
    service = ConsoleService(RecordedNetwork(record(tmp_path)))
    with serving(console_app(service)) as url:
        host = url.removeprefix("http://")
        answers = [ask(host, "/api/bookmarks/x", "PUT", {"view": 1})[0] for _ in range(40)]
    assert answers[0] == 200
    assert 429 in answers


def test_the_page_may_load_nothing_from_elsewhere(address):
    _, headers, _ = ask(address, "/")
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy
    assert "http" not in policy
    assert headers["x-frame-options"] == "DENY"
