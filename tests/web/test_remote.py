"""`penstock attach` and `penstock apply` against a console whose network is played, so no Spark is needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from typer.testing import CliRunner

import penstock as ps
from penstock.cli.main import penstock_app
from penstock.http.server import serving
from web.recorded import network


@pytest.fixture
def console() -> Iterator[tuple[str, list[tuple[str, dict[str, Any]]]]]:
    """A console that notes what it is asked."""
    app, asked = FastAPI(), []

    @app.get("/api/network")
    def version() -> dict[str, Any]:
        return {"version": 7}

    @app.get("/api/attached/{name}/rows")
    def rows(name: str, after: int = 0) -> dict[str, Any]:
        return {"rows": [{"n": n, "tuple": {"vid": n}} for n in range(after, after + 2)], "next": after + 2}

    @app.post("/api/{what:path}")
    def post(what: str, body: dict[str, Any]) -> dict[str, Any]:
        asked.append((what, body))
        good = {"ok": True, "error": None, "needs_new_checkpoint": None}
        told = {"words": ["filter 'chosen': a becomes b"], "effects": ["nobody else notices"]}
        return {
            "name": "query_1",
            "view": bool(body.get("keep")),
            "version": 8,
            "blips": {"slow": 0.5},
            **good,
            **told,
        }

    with serving(app) as url:
        yield url, asked


def run(*words: str, typed: str = "") -> tuple[int, str]:
    result = CliRunner().invoke(penstock_app(words), list(words), input=typed)
    return result.exit_code, result.output


def test_attach_prints_rows_and_detaches(console):
    url, asked = console
    code, said = run("attach", url, "recent", "SELECT vid FROM recent", "--limit", "3")
    assert code == 0, said
    assert said.count('{"vid":') == 3
    assert [what for what, _ in asked] == ["attach", "detach"]
    assert asked[0][1]["version"] == 7
    code, said = run("attach", url, "recent", "SELECT vid FROM recent", "--keep", "2 hours")
    assert "view 'query_1' is attached" in said


def test_apply_tells_asks_and_does(console, tmp_path: Path):
    url, asked = console
    file = tmp_path / "net.yaml"
    file.write_text(ps.to_yaml(network()))
    code, said = run("apply", url, str(file), typed="n\n")
    assert code == 1
    assert "nobody else notices" in said
    assert [what for what, _ in asked] == ["edit/preview"]
    code, said = run("apply", url, str(file), "--yes")
    assert code == 0, said
    assert "version 8 runs; pauses: slow 0.50 s" in said
    assert asked[-1][1]["yaml"] == ps.to_yaml(network())


def test_where_no_console_is_the_command_says_what_to_do(tmp_path: Path):
    code, said = run("attach", "http://127.0.0.1:9", "recent", "SELECT 1")
    assert code == 2
    assert "no console answers at" in said
    assert "penstock run NET --console" in said
    code, said = run("attach", "ftp://x", "recent", "SELECT 1")
    assert "is no URL" in said
