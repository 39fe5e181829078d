"""The guard: host names, pages of other sites, tokens, bodies, and the headers of every answer."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator

import pytest

from penstock.http.limits import ServerLimits
from penstock.model.errors import PenstockError

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from fastapi import FastAPI, Request

from penstock.http.access import Access, Token
from penstock.http.api_page import add_api_page
from penstock.http.error_bodies import answer_errors
from penstock.http.guard import Guard
from penstock.http.rates import ChangeRates
from penstock.http.server import serving

SECRET = "a-secret-of-board-0123"
OTHER = "a-secret-of-phone-4567"
ACCESS = Access.of("127.0.0.1", [f"board={SECRET}", f"phone={OTHER}"], ["proxy.example"])
JSON = {"Content-Type": "application/json"}


def small_app(access: Access) -> FastAPI:
    app = FastAPI(docs_url=None, redoc_url=None)
    app.add_middleware(Guard, access=access, limits=ServerLimits(body_bytes=1000, bodies_bytes=5000))
    answer_errors(app, [])
    add_api_page(app)

    @app.get("/owner")
    @app.post("/owner")
    async def owner(request: Request) -> str:
        return str(request.state.owner)

    @app.get("/health")
    async def health() -> bool:
        return True

    @app.get("/broken")
    async def broken() -> None:
        raise PenstockError("cannot read /home/me/data/x.parquet\n  at line 7")

    @app.get("/bug")
    async def bug() -> None:
        raise ZeroDivisionError("/home/me/secret")

    return app


@pytest.fixture(scope="module")
def open_at() -> Iterator[str]:
    with serving(small_app(Access.of("127.0.0.1"))) as url:
        yield url.removeprefix("http://")


@pytest.fixture(scope="module")
def closed_at() -> Iterator[str]:
    with serving(small_app(ACCESS)) as url:
        yield url.removeprefix("http://")


def ask(at: str, method: str = "GET", path: str = "/owner", body: bytes | None = None, **headers: str):
    client = http.client.HTTPConnection(at, timeout=30)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    client.request(method, path, body, {**(JSON if body else {}), **named})
    answer = client.getresponse()
    text = answer.read().decode()
    client.close()
    return answer, text


def status(*words: object, **headers: str) -> int:
    return ask(*words, **headers)[0].status  # type: ignore[arg-type]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:80", "localhost", "LOCALHOST:8765", "[::1]:1"])
def test_own_names_are_answered(open_at: str, host: str) -> None:
    assert status(open_at, Host=host) == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "localhost.evil.example", "", "127.0.0.1.nip.io"]
)
def test_a_name_that_was_made_to_point_here_is_refused(open_at: str, host: str) -> None:
    assert status(open_at, Host=host) == 421


def test_a_proxy_may_have_a_name(closed_at: str) -> None:
    assert status(closed_at, Host="proxy.example", Authorization=f"Bearer {SECRET}") == 200
    assert status(closed_at, Host="other.example", Authorization=f"Bearer {SECRET}") == 421


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"},
    ],
)
def test_a_page_of_another_site_is_refused(open_at: str, method: str, headers: dict[str, str]) -> None:
    assert status(open_at, method, **headers) == 403


def test_own_pages_and_links_are_answered(open_at: str) -> None:
    assert status(open_at, "POST", Origin=f"http://{open_at}", Sec_Fetch_Site="same-origin") == 200
    assert status(open_at, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate") == 200
    assert status(open_at, "POST", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate") == 403


def test_there_is_no_cors(open_at: str) -> None:
    preflight, _ = ask(
        open_at, "OPTIONS", Access_Control_Request_Method="POST", Origin="https://evil.example"
    )
    assert preflight.status == 403
    answer, _ = ask(open_at)
    assert not [name for name, _ in answer.getheaders() if name.lower().startswith("access-control")]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_form_is_refused(open_at: str, kind: str) -> None:
    assert status(open_at, "POST", "/owner", b"{}", Content_Type=kind) == 415


def test_a_token_names_its_owner(closed_at: str) -> None:
    for secret, name in ((SECRET, "board"), (OTHER, "phone")):
        assert ask(closed_at, Authorization=f"Bearer {secret}")[1] == f'"{name}"'
        assert ask(closed_at, Cookie=f"a=b; penstock_token={secret}")[1] == f'"{name}"'
    assert ask(closed_at, Authorization=f"bearer  {SECRET}")[0].status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Basic {SECRET}"},
        {"Authorization": "Bearer "},
        {"Authorization": f"Bearer {SECRET}x"},
        {"Authorization": f"Bearer board={SECRET}"},
        {"Cookie": "penstock_token="},
        {"Cookie": "penstock_token"},
        {"Cookie": f"other={SECRET}"},
    ],
)
def test_a_stranger_is_refused(closed_at: str, headers: dict[str, str]) -> None:
    answer, text = ask(closed_at, **headers)
    assert answer.status == 401
    assert answer.getheader("WWW-Authenticate") == "Bearer"
    assert SECRET not in text
    assert status(closed_at, "GET", "/docs", **headers) == 401
    assert status(closed_at, "GET", "/health", **headers) == 200


def test_every_token_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """No early end: the time says nothing about which token was nearly met."""
    from starlette.datastructures import Headers

    compared = []
    monkeypatch.setattr("hmac.compare_digest", lambda one, other: compared.append(one) or one == other)
    for secret in (SECRET, OTHER, "none"):
        ACCESS.owner(Headers({"authorization": f"Bearer {secret}"}))
    assert len(compared) == 3 * len(ACCESS.tokens)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "a.example"])
def test_an_open_address_needs_a_token(host: str) -> None:
    with pytest.raises(PenstockError, match="can be reached from other machines"):
        Access.of(host)
    assert Access.of(host, [f"board={SECRET}"]).tokens


@pytest.mark.parametrize(
    "text", ["board", "board=", "board=short", f"={SECRET}", f"a b={SECRET}", f"a/b={SECRET}"]
)
def test_a_bad_token_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(PenstockError, match="NAME=SECRET") as caught:
        Token.parse(text)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("length", ["1001", "99999999999999999999999", "-1", "x"])
def test_a_length_that_is_too_large_or_none_is_refused(open_at: str, length: str) -> None:
    client = http.client.HTTPConnection(open_at, timeout=30)
    client.putrequest("POST", "/owner")
    client.putheader("Content-Length", length)
    client.putheader("Content-Type", "application/json")
    client.endheaders()
    assert client.getresponse().status in (400, 413)
    client.close()


def test_errors_from_inside_show_no_path_and_no_trace(open_at: str) -> None:
    answer, text = ask(open_at, "GET", "/broken")
    assert answer.status == 503
    assert json.loads(text)["error"] == "cannot read …"
    answer, text = ask(open_at, "GET", "/bug")
    assert (answer.status, json.loads(text)["error"]) == (500, "the service failed")
    assert "home" not in text
    assert json.loads(ask(open_at, "GET", "/nowhere")[1])["kind"] == "refused"


def test_the_page_of_routes_loads_nothing(open_at: str) -> None:
    answer, text = ask(open_at, "GET", "/docs")
    assert answer.status == 200
    assert "GET /owner" in text
    assert "<script" not in text
    assert "http:" not in text
    assert "https:" not in text
    assert "default-src 'none'" in str(answer.getheader("Content-Security-Policy"))


def test_every_answer_tells_browsers_what_not_to_do(open_at: str) -> None:
    for path in ("/owner", "/nowhere", "/docs"):
        headers = ask(open_at, "GET", path)[0]
        assert headers.getheader("X-Content-Type-Options") == "nosniff"
        assert headers.getheader("X-Frame-Options") == "DENY"
        assert headers.getheader("Cache-Control") == "no-store"
        assert "frame-ancestors 'none'" in str(headers.getheader("Content-Security-Policy"))
        assert headers.getheader("Server") is None


def test_a_token_for_looking_changes_nothing():
    access = Access.of("127.0.0.1", [f"board={SECRET}"], read_tokens=[f"wall={OTHER}"])
    with serving(small_app(access)) as url:
        at = url.removeprefix("http://")
        for secret, status in ((SECRET, 200), (OTHER, 403)):
            headers = {"Authorization": f"Bearer {secret}", **JSON}
            assert _status(at, "GET", "/owner", headers) == 200
            assert _status(at, "POST", "/owner", headers) == status


def test_changes_of_one_client_have_a_rate():
    app = FastAPI(docs_url=None, redoc_url=None)
    rates = ChangeRates(per_second=0.001, burst=2)
    app.add_middleware(Guard, access=ACCESS, is_open=lambda path: path == "/change", rates=rates)

    @app.get("/change")
    @app.post("/change")
    async def change() -> bool:
        return True

    with serving(app) as url:
        at = url.removeprefix("http://")
        assert [_status(at, "POST", "/change", JSON) for _ in range(3)] == [200, 200, 429]
        assert _status(at, "GET", "/change", JSON) == 200
        other = {"Authorization": f"Bearer {OTHER}", **JSON}
        assert _status(at, "POST", "/change", other) == 200, "another client has its own"


def _status(at: str, method: str, path: str, headers: dict[str, str]) -> int:
    connection = http.client.HTTPConnection(at, timeout=120)
    try:
        connection.request(method, path, headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()
