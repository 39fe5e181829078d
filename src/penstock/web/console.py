"""`Console`: a running network in a browser, beside its runtime in the same process.

with ps.Runtime(network, checkpoint="checkpoint") as running, ps.Console(running) as console:
    print(console.url)
    running.wait()
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from socket import socket
from types import TracebackType
from typing import TYPE_CHECKING, Self

from penstock.http import require_web
from penstock.model.errors import PenstockError
from penstock.runtime import Runtime

if TYPE_CHECKING:
    from penstock.http.access import Access

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
        self._end.enter_context(serving_runtime(self._runtime, self._access, self._listener))
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


@contextmanager
def serving_runtime(runtime: Runtime, access: Access, listener: socket) -> Iterator[str]:
    """Serve the console of a running network on a port that was taken before, and give the URL."""
    from penstock.http.server import serving_on
    from penstock.web.app import console_app
    from penstock.web.look.watched import RunningNetwork
    from penstock.web.service import ConsoleService

    if runtime.records is None:
        raise PenstockError(
            f"network '{runtime.network.name}' is not running, so there is nothing to show",
            hint="start() the runtime first",
        )
    watched = RunningNetwork(runtime)
    service = ConsoleService(watched)
    with ExitStack() as end:
        end.callback(watched.catalog.close)
        end.callback(service.end)
        yield end.enter_context(serving_on(console_app(service, access), listener))
