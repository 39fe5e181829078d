"""The page at /docs: every route of a service in plain HTML. It loads nothing, and needs no script."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from hashlib import sha256
from html import escape

from fastapi import FastAPI
from fastapi.responses import HTMLResponse

from penstock.model.json_types import JsonMapping

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem }
h2 { border-top: 1px solid #ccc; padding-top: 1rem } code, pre { background: #f4f4f4; padding: .1rem .3rem }
table { border-collapse: collapse }
td, th { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top }
"""
_DIGEST = base64.b64encode(sha256(_STYLE.encode()).digest()).decode()
_POLICY = f"default-src 'none'; style-src 'sha256-{_DIGEST}'; frame-ancestors 'none'; base-uri 'none'"

Parts = JsonMapping
"""A part of an OpenAPI description, which is JSON."""


def add_api_page(app: FastAPI) -> None:
    """Serve the page at /docs; the same description as JSON is at /openapi.json."""

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(api_page(app.openapi()), headers={"content-security-policy": _POLICY})


def api_page(described: Parts) -> str:
    """The page of an OpenAPI description.

    >>> "<h1>Tolls</h1>" in api_page({"info": {"title": "Tolls"}, "paths": {}})
    True
    """
    about = described["info"]
    title = escape(about["title"])
    lines = ["<!doctype html>", '<html lang="en"><head><meta charset="utf-8">']
    lines += [f"<title>{title}</title><style>{_STYLE}</style></head><body>", f"<h1>{title}</h1>"]
    lines.append(f'<p>{escape(about.get("description", ""))} <a href="/openapi.json">OpenAPI as JSON</a></p>')
    for path, methods in described["paths"].items():
        for method, route in methods.items():
            lines += _route(described, f"{method.upper()} {path}", route)
    return "\n".join([*lines, "</body></html>"])


def _route(described: Parts, name: str, route: Parts) -> Iterator[str]:
    yield f"<h2><code>{escape(name)}</code></h2>"
    yield f"<p>{escape(route.get('summary', ''))}</p>"
    if route.get("description"):
        yield f"<p>{escape(route['description'])}</p>"
    rows = [(each["name"], each["in"], each.get("description", "")) for each in route.get("parameters", ())]
    rows += [(name, "body", text) for name, text in _body(described, route)]
    if rows:
        cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
        yield f"<table><tr><th>name<th>in<th>meaning</tr>{''.join(f'<tr>{c}</tr>' for c in cells)}</table>"


def _body(described: Parts, route: Parts) -> Iterator[tuple[str, str]]:
    """The fields of a JSON body."""
    content = route.get("requestBody", {}).get("content", {}).get("application/json", {})
    name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
    fields = described.get("components", {}).get("schemas", {}).get(name, {}).get("properties", {})
    for field, about in fields.items():
        yield field, about.get("description", "")
