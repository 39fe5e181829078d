"""`/metrics` for Prometheus: on the console's server, or alone."""

from __future__ import annotations

from fastapi import FastAPI, Response

from penstock import __version__
from penstock.http.access import Access
from penstock.http.error_bodies import answer_errors
from penstock.http.guard import Guard
from penstock.http.slow_work import SlowWork
from penstock.web.look.watched import Watched
from penstock.web.metrics.collector import CONTENT_TYPE, NetworkCollector, metrics_text

_SECONDS = 20.0


def add_metrics(app: FastAPI, watched: Watched) -> None:
    """Add the route."""
    collector = NetworkCollector(watched)
    scraping = SlowWork("metrics", threads=1, waiting=10)

    @app.get("/metrics", summary="Figures for Prometheus")
    async def metrics() -> Response:
        text = await scraping.run(lambda: metrics_text(collector), _SECONDS)
        return Response(text, media_type=CONTENT_TYPE)


def metrics_app(watched: Watched, access: Access | None = None) -> FastAPI:
    """The figures without a page."""
    app = FastAPI(title="Penstock metrics", version=__version__, docs_url=None, redoc_url=None)
    app.add_middleware(Guard, access=access)
    answer_errors(app, ())
    add_metrics(app, watched)
    return app
