"""`Console`: a running network in a browser, beside its runtime in the same process.

with ps.Runtime(network, checkpoint="checkpoint") as running, ps.Console(running) as console:
    print(console.url)
    running.wait()
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from penstock.http import require_web
from penstock.model.errors import PenstockError
from penstock.runtime import Runtime

PORT = 8780


class Console:
    """Serves the page and the API of a runtime from `start` to `stop`; `with` does both.

    The port is taken at once, so that one in use is refused before anything starts; 0 takes any free one.
    Other addresses than those of this machine need `tokens` (NAME=SECRET). Clients with `read_tokens` look
    only. `names` are other host names by which clients reach it.
    """

    def __init__(
        self,
        runtime: Runtime,
        *,
        port: int = PORT,
        host: str = "127.0.0.1",
        tokens: Iterable[str] = (),
        read_tokens: Iterable[str] = (),
        names: Iterable[str] = (),
    ) -> None:
        require_web()
        from penstock.http.access import Access
        from penstock.http.server import take_port, url_of

        self._runtime = runtime
        self._access = Access.of(host, tokens, names, read_tokens)
        self._listener = take_port(host, port)
        self.url = url_of(self._listener)
        self._end = ExitStack()

    def start(self) -> Self:
        """Serve; the runtime must be running."""
        from penstock.http.server import serving_on
        from penstock.web.app import console_app
        from penstock.web.look.watched import RunningNetwork
        from penstock.web.service import ConsoleService

        if self._runtime.records is None:
            raise PenstockError(
                f"network '{self._runtime.network.name}' is not running, so there is nothing to show",
                hint="start() the runtime first",
            )
        watched = RunningNetwork(self._runtime)
        service = ConsoleService(watched)
        self._end.callback(watched.catalog.close)
        self._end.callback(service.end)
        self._end.enter_context(serving_on(console_app(service, self._access), self._listener))
        return self

    def stop(self) -> None:
        """End the server, and let go what clients hold."""
        self._end.close()
        self._listener.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
