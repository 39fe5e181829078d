"""`penstock console`: look at a checkpoint in a browser, while another process runs its network or later."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.console.options import (
    PORT,
    AllowHostOption,
    ConsoleOptions,
    HostOption,
    OpenOption,
    PortOption,
    ReadTokenOption,
    TokenOption,
)
from penstock.cli.refusals import refusals
from penstock.http import require_web
from penstock.process.stop_signal import StopSignal


def console(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="CHECKPOINT", help="The directory given to `penstock run --checkpoint`.")
    ],
    port: PortOption = PORT,
    open_: OpenOption = False,
    host: HostOption = "127.0.0.1",
    token: TokenOption = None,
    read_token: ReadTokenOption = None,
    allow_host: AllowHostOption = None,
) -> None:
    """Show a checkpoint in a browser: its network, its last figures, its history. Ctrl-C stops.

    Nothing can be changed here. To steer or edit a network, run it with `penstock run NET --console`.
    """
    with refusals():
        require_web()
        from penstock.http.access import Access
        from penstock.http.server import serving_on, take_port
        from penstock.web.app import console_app
        from penstock.web.look.watched import RecordedNetwork
        from penstock.web.service import ConsoleService

        options = ConsoleOptions(port, host, open_, token or (), read_token or (), allow_host or ())
        given = options.arguments()
        access = Access.of(host, given["tokens"], given["names"], given["read_tokens"])
        watched = RecordedNetwork(checkpoint)
        listener = take_port(host, port)
        app = console_app(ConsoleService(watched), access)
        with StopSignal().on_signals() as stop, serving_on(app, listener) as url:
            typer.echo("looking only: the network does not run in this process", err=True)
            options.tell(url)
            stop.wait()
