"""The page itself: files of this package, under a policy that lets it load nothing from elsewhere."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException

STATIC = Path(__file__).parent / "static"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".json": "application/json",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}
_NO_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Penstock</title>
<h1>The page is not built</h1><p>The API is here: <a href="/docs">/docs</a>.
Build the page with <code>scripts/page.sh</code>.</p></html>"""


def is_page(path: str) -> bool:
    """Whether a path is the page or a part of it: these need no token, because they hold no data."""
    return path in ("/", "/health", "/favicon.ico", "/api/login") or path.startswith("/static/")


def add_page(app: FastAPI) -> None:
    """Serve the page at `/` and its files below `/static/`."""

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        index = STATIC / "index.html"
        text = index.read_text() if index.exists() else _NO_PAGE
        return HTMLResponse(text, headers={"content-security-policy": POLICY})

    @app.get("/static/{name:path}", include_in_schema=False)
    async def file(name: str) -> Response:
        return _file(name)

    @app.get("/favicon.ico", include_in_schema=False)
    async def icon() -> Response:
        return _file("favicon.svg") if (STATIC / "favicon.svg").exists() else Response(status_code=204)


def _file(name: str) -> Response:
    path = (STATIC / name).resolve()
    # Only files of the page, whatever dots the name has.
    if not path.is_relative_to(STATIC) or not path.is_file() or path.suffix not in _KINDS:
        raise HTTPException(404, "the page has no such file")
    headers = {"content-security-policy": POLICY}
    return Response(path.read_bytes(), media_type=_KINDS[path.suffix], headers=headers)
