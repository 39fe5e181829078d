"""`penstock standing`: serve standing queries over HTTP, and talk to such a service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from penstock.cli.lazy_commands import fill

COMMANDS = {
    "serve": ("penstock.cli.standing.serve", "serve"),
    "register": ("penstock.cli.standing.client", "register"),
    "invoke": ("penstock.cli.standing.client", "invoke"),
    "list": ("penstock.cli.standing.client", "list_queries"),
    "unregister": ("penstock.cli.standing.client", "unregister"),
    "follow": ("penstock.cli.standing.client", "follow"),
    "streams": ("penstock.cli.standing.client", "streams"),
}
PORT = 8765
_HELP = """Standing queries: register once, invoke any time, over old data and new.

Start a service with `penstock standing serve NET`, then talk to it from anywhere on this machine:

penstock standing register "SELECT vid, spd FROM reports WHERE spd < 20 BEGIN now - 10 minutes END now"

penstock standing invoke HANDLE
"""


@dataclass(frozen=True)
class Service:
    """The service that a client command talks to, and the secret that it shows there."""

    url: str
    token: str


def standing_app(words: Sequence[str] = ()) -> typer.Typer:
    """Build the topic `standing` with only the commands that these words need."""
    app = typer.Typer(help=_HELP, no_args_is_help=True)
    app.callback()(_group)
    return fill(app, COMMANDS, words)


def _group(
    context: typer.Context,
    url: Annotated[
        str, typer.Option(help="The service to talk to.", envvar="PENSTOCK_STANDING_URL")
    ] = f"http://127.0.0.1:{PORT}",
    token: Annotated[
        str,
        typer.Option(
            metavar="SECRET",
            help="The secret of your token, if the service has tokens.",
            envvar="PENSTOCK_TOKEN",
            show_envvar=True,
        ),
    ] = "",
) -> None:
    context.obj = Service(url.rstrip("/"), token)


_group.__doc__ = _HELP
