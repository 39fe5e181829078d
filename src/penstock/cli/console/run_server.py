"""The console of a run: it takes its port before Spark starts, and ends before the run does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from socket import socket
from typing import TYPE_CHECKING

import typer

from penstock.cli.console.options import ConsoleOptions

if TYPE_CHECKING:
    from penstock.runtime import Runtime
    from penstock.web.console import Console


class RunServer:
    """What is served beside a run: nothing, a page, or figures for Prometheus alone."""

    def __init__(
        self, runtime: Runtime, options: ConsoleOptions, *, page: bool, metrics: int | None = None
    ) -> None:
        self._runtime, self._options, self._end = runtime, options, ExitStack()
        self._metrics = None if metrics is None else self._take_port(metrics)
        self._console: Console | None = None
        if page:
            from penstock.web.console import Console

            self._console = Console(runtime, **options.arguments())

    def _take_port(self, port: int) -> socket:
        from penstock.http import require_web

        require_web()
        from penstock.http.server import take_port

        return take_port("127.0.0.1", port)

    def start(self) -> None:
        """Serve, now that the network runs."""
        if self._metrics is not None:
            from penstock.http.server import serving_on
            from penstock.web.look.watched import RunningNetwork
            from penstock.web.routes.metrics import metrics_app

            watched = RunningNetwork(self._runtime)
            self._end.callback(watched.catalog.close)
            url = self._end.enter_context(serving_on(metrics_app(watched), self._metrics))
            typer.echo(f"metrics: {url}/metrics", err=True)
        if self._console is not None:
            self._end.enter_context(self._console)
            self._options.tell(self._console.url)

    def stop(self) -> None:
        """End the server."""
        self._end.close()


def console_beside(options: ConsoleOptions) -> Callable[[Runtime], AbstractContextManager[object]]:
    """Take the port now, before anything slow begins; what comes back serves a network once it runs."""
    from penstock.http import require_web

    require_web()
    from penstock.http.access import Access
    from penstock.http.server import take_port
    from penstock.web.console import serving_runtime

    given = options.arguments()
    access = Access.of(options.host, given["tokens"], given["names"], given["read_tokens"])
    listener = take_port(options.host, options.port)

    @contextmanager
    def serve(runtime: Runtime) -> Iterator[None]:
        with listener, serving_runtime(runtime, access, listener) as url:
            options.tell(url)
            yield

    return serve
